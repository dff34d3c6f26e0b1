//! What one step stores on watched topics, gathered while it runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;
use prost::Message;
use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::StoredEnvelope;

use super::Watch;
use super::index::Index;
use crate::key::Key;
use crate::partition::store;
use crate::{Fault, Sql};

/// The rows that a step stores on one watched topic.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) topic: Key,
    /// The head before the first of them.
    pub(super) previous: u64,
    /// Ascending: id, bytes in a message, and the row.
    pub(super) rows: Vec<(u64, usize, StoredEnvelope)>,
}

/// What a step stores, as far as somebody watches it. Of topics that nobody watches it asks nothing and keeps nothing.
#[derive(Debug)]
pub struct News<'a> {
    /// `None` while it is being loaded: the load itself finds these rows above the mark.
    index: Option<&'a Index>,
    /// The mark as it is, whether it may move, and the lowest id that is owed already.
    mark: u64,
    moves: bool,
    lowest: Option<u64>,
    runs: BTreeMap<Key, Run>,
}

/// What [`News`] gathered, for [`Watch::stored`].
#[derive(Debug)]
pub struct Gathered(pub(super) Vec<Run>);

impl Watch {
    /// For a step that begins.
    pub fn news(&self) -> News<'_> {
        News {
            index: self.knows_watchers().then_some(&self.index),
            mark: self.mark,
            moves: self.is_loaded(),
            lowest: self.debts.lowest(),
            runs: BTreeMap::new(),
        }
    }

    /// Raises the mark when the alarm rings and nothing is owed any more, and says so if that is to be written: with
    /// the alarm that is set for later (rule 8). Steps write it before their own rows are acknowledged; the next
    /// instance would tell the heads of those to everybody who has them.
    pub fn settle(&mut self, highest: u64) -> Result<Option<u64>, Fault> {
        if self.debts.lowest().is_some() {
            return Ok(None);
        }
        let before = self.mark;
        self.mark = self.news().mark(highest)?;
        Ok((self.mark > before).then_some(self.mark))
    }
}

impl News<'_> {
    /// The head of this topic is about to be raised. Reads where it stands, once in a step, when somebody watches it.
    pub fn before(&mut self, sql: &dyn Sql, topic: &[u8]) -> Result<(), Fault> {
        let Some(key) = self.watched(topic) else { return Ok(()) };
        if let Entry::Vacant(entry) = self.runs.entry(key) {
            let previous = store::head(sql, topic)?;
            entry.insert(Run { topic: key, previous, rows: Vec::new() });
        }
        Ok(())
    }

    /// This row is stored. Ascending by id.
    pub fn stored(&mut self, id: u64, meta: &EnvelopeMeta, body: &Bytes) -> Result<(), Fault> {
        let Some(key) = meta.topic.as_ref().and_then(|topic| self.watched(&topic.topic)) else {
            return Ok(());
        };
        let run = self
            .runs
            .get_mut(&key)
            .ok_or(Fault::Invariant("a watched topic's head is read before its row"))?;
        // A copy of its own: the fields of a request share one buffer, which would live as long as the last of them.
        let row = StoredEnvelope { meta: Some(meta.clone()), envelope: body.clone() };
        let bytes = Bytes::from(row.encode_to_vec());
        let length = bytes.len();
        let row = StoredEnvelope::decode(bytes).map_err(|_| Fault::Invariant("what was encoded decodes"))?;
        run.rows.push((id, length, row));
        Ok(())
    }

    /// The mark that is written with the rows (rule 8). `highest`: the newest id of the partition, these rows included.
    pub fn mark(&self, highest: u64) -> Result<u64, Fault> {
        if !self.moves {
            return Ok(self.mark);
        }
        let new = self.runs.values().filter_map(|run| run.rows.first()).map(|(id, ..)| *id);
        let lowest = self.lowest.into_iter().chain(new).min();
        let mark = lowest.map_or(highest, |id| id - 1);
        Fault::assert(
            mark >= self.mark && mark <= highest,
            "the mark never falls, and lies among the own ids",
        )?;
        Ok(mark)
    }

    /// Ends the gathering.
    pub fn finish(self) -> Gathered {
        Gathered(self.runs.into_values().collect())
    }

    fn watched(&self, topic: &[u8]) -> Option<Key> {
        let index = self.index.filter(|index| index.topics() > 0)?;
        Key::parse(topic).filter(|key| !index.watchers(key).is_empty())
    }
}
