//! The rows that somebody is still to be sent, each kept once.

use std::collections::{BTreeMap, VecDeque};

use sealog_proto::internal::StoredEnvelope;

use super::news::Run;
use crate::Fault;
use crate::key::Key;

/// Bytes of rows over all sessions (rule 9): an eighth of the isolate's 128 MB. Who waits longer than they last gets a
/// hint, and pulls.
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub(super) struct Recent {
    /// By id: the oldest goes first when they are too many.
    rows: BTreeMap<u64, Row>,
    topics: BTreeMap<Key, Tail>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Row {
    key: Key,
    pub(super) envelope: StoredEnvelope,
    /// Bytes in a message.
    pub(super) bytes: usize,
}

/// The newest rows of one topic: all of them above `from`.
#[derive(Debug)]
struct Tail {
    from: u64,
    ids: VecDeque<u64>,
    /// How many debts want some of them.
    wanted: usize,
}

impl Recent {
    /// Takes the rows of a step. They go with the last debt that wants them, so [`want`](Self::want) follows at once.
    pub(super) fn add(&mut self, run: Run) -> Result<(), Fault> {
        let tail = self.topics.entry(run.topic).or_insert_with(|| Tail {
            from: run.previous,
            ids: VecDeque::new(),
            wanted: 0,
        });
        let newest = tail.ids.back().copied().unwrap_or(tail.from);
        Fault::assert(newest == run.previous, "the rows of a watched topic follow each other")?;
        for (id, bytes, envelope) in run.rows {
            tail.ids.push_back(id);
            self.bytes += bytes;
            self.rows.insert(id, Row { key: run.topic, envelope, bytes });
        }
        while self.bytes > MAX_BYTES
            && let Some((id, row)) = self.rows.pop_first()
        {
            self.bytes -= row.bytes;
            if let Some(tail) = self.topics.get_mut(&row.key) {
                tail.ids.pop_front();
                tail.from = id;
            }
        }
        Ok(())
    }

    pub(super) fn want(&mut self, key: &Key) {
        if let Some(tail) = self.topics.get_mut(key) {
            tail.wanted += 1;
        }
    }

    pub(super) fn release(&mut self, key: &Key) {
        if let Some(tail) = self.topics.get_mut(key) {
            tail.wanted = tail.wanted.saturating_sub(1);
        }
        self.drop_unwanted(key);
    }

    /// Lets go of the rows of a topic, unless a debt wants them.
    pub(super) fn drop_unwanted(&mut self, key: &Key) {
        if self.topics.get(key).is_some_and(|tail| tail.wanted == 0)
            && let Some(tail) = self.topics.remove(key)
        {
            for id in tail.ids {
                self.bytes -= self.rows.remove(&id).map_or(0, |row| row.bytes);
            }
        }
    }

    /// All rows of a topic in (from, head], ascending; `None` when some of them are not kept any more.
    pub(super) fn range(&self, key: &Key, from: u64, head: u64) -> Option<impl Iterator<Item = (u64, &Row)>> {
        let tail = self.topics.get(key).filter(|tail| tail.from <= from)?;
        let first = tail.ids.partition_point(|id| *id <= from);
        let ids = tail.ids.range(first..).copied().take_while(move |id| *id <= head);
        Some(ids.filter_map(|id| self.rows.get(&id).map(|row| (id, row))))
    }
}
