//! Calls of a session: what it watches from here on (rules 3 to 5).

use std::cmp::Ordering;

use prost::Message;
use sealog_proto::internal::{
    ControlReply, ControlRequest, TopicHead, control_reply::Verdict, control_request::Kind, failure,
};
use sha2::{Digest, Sha256};

use super::index::Watcher;
use super::rows::{self, Entry};
use super::sessions::{Id, Slot};
use super::{Debts, Key, Watch};
use crate::partition::read;
use crate::{CommandError, Fault, Nanos, Sql};

/// Bounds of the index. They keep it below about 50 MB of the isolate's 128: 8 bytes for each watch, some 100 for each
/// topic, and some 400 for each session.
const MAX_WATCHES: usize = 1_000_000;
const MAX_TOPICS: usize = 400_000;
const MAX_SESSIONS: usize = 20_000;

impl Watch {
    /// Command `control`: changes what a session watches, and reads the heads of what it adds.
    ///
    /// Idempotent by number. Writes one row when something changed. The session repeats it while it has no answer, with
    /// the same number and content, and sends one at a time. [`pump`](Self::pump) follows.
    pub fn control(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &ControlRequest,
    ) -> Result<ControlReply, CommandError> {
        let refused = |what: &str| CommandError::refused(failure::Kind::BadCommand, what);
        let id: Id =
            request.session.as_ref().try_into().map_err(|_| refused("a session's id has 32 bytes"))?;
        let entries = |watches: &[_]| watches.iter().map(rows::entry).collect::<Option<Vec<_>>>();
        let entries = entries(&request.remove).zip(entries(&request.add));
        let (remove, add) = entries.ok_or_else(|| refused("a watch names what is no topic"))?;
        self.calls = 0;
        self.load_watchers(sql)?;

        let slot = self.sessions.find(&id);
        let last = slot.map(|slot| self.sessions.get(slot)).transpose()?;
        let order = last.map_or(Ordering::Greater, |last| request.number.cmp(&last.number));
        let only = |verdict: Verdict| ControlReply {
            number: request.number,
            verdict: verdict.into(),
            ..ControlReply::default()
        };
        let mut reply = only(Verdict::Done);
        match (order, slot) {
            (Ordering::Less, _) => return Ok(only(Verdict::Superseded)),
            (Ordering::Equal, _) => {
                let same = last.is_some_and(|last| last.content == content(request));
                Fault::assert(same, "a repeated number says what it said before")?;
            }
            (Ordering::Greater, Some(slot)) if request.kind() == Kind::Bye => self.forget(sql, slot)?,
            (Ordering::Greater, None) if request.kind() == Kind::Bye => {}
            (Ordering::Greater, _) => {
                let (removed, added) = self.changes(slot, remove, &add);
                if !self.has_room(slot, &added) {
                    return Ok(only(Verdict::Full));
                }
                if request.kind() == Kind::Sync {
                    self.counters.repaired += added.len() as u64;
                    reply.repaired = u32::try_from(added.len()).unwrap_or(u32::MAX);
                }
                self.register(sql, now, slot, id, request, &removed, &added)?;
            }
        }
        reply.heads = heads(sql, request, &add)?;
        Ok(reply)
    }

    /// What of a call is a change: removals of watches that are here under the same generation, additions of those that
    /// are not here or older.
    fn changes(&self, slot: Option<Slot>, remove: Vec<Entry>, add: &[Entry]) -> (Vec<Entry>, Vec<Entry>) {
        let here = |key: &Key| slot.and_then(|slot| self.index.generation(key, slot));
        let removed = remove.into_iter().filter(|(key, generation)| here(key) == Some(*generation)).collect();
        let added =
            add.iter().copied().filter(|(key, generation)| here(key).is_none_or(|old| old < *generation));
        (removed, added.collect())
    }

    fn has_room(&self, slot: Option<Slot>, added: &[Entry]) -> bool {
        let topics = added.iter().filter(|(key, _)| self.index.watchers(key).is_empty()).count();
        let sessions = usize::from(slot.is_none() && !added.is_empty());
        added.is_empty()
            || (self.index.watches() + added.len() <= MAX_WATCHES
                && self.index.topics() + topics <= MAX_TOPICS
                && self.sessions.len() + sessions <= MAX_SESSIONS)
    }

    #[allow(clippy::too_many_arguments)] // one call of a session, taken apart
    fn register(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        slot: Option<Slot>,
        id: Id,
        request: &ControlRequest,
        removed: &[Entry],
        added: &[Entry],
    ) -> Result<(), Fault> {
        let slot = match slot {
            Some(slot) => slot,
            // A session that watches nothing is not remembered: whatever a late call of it adds, the first push ends.
            None if added.is_empty() => return Ok(()),
            None => self.sessions.insert(id)?,
        };
        let session = self.sessions.get_mut(slot)?;
        session.number = request.number;
        session.content = content(request);
        if removed.is_empty() && added.is_empty() {
            return Ok(());
        }
        session.heard = now;
        self.change(sql, slot, removed, added)
    }

    /// Changes what a session watches: index, debts and rows. Of a session that watches nothing more, nothing stays.
    pub(super) fn change(
        &mut self,
        sql: &dyn Sql,
        slot: Slot,
        removed: &[Entry],
        added: &[Entry],
    ) -> Result<(), Fault> {
        let Self { index, sessions, debts, .. } = self;
        let session = sessions.get_mut(slot)?;
        for (key, _) in removed {
            session.live -= usize::from(index.remove(key, slot));
            debts.cancel(slot, *key);
        }
        for (key, generation) in added {
            let watcher = Watcher { session: slot, generation: *generation };
            match index.insert(*key, watcher) {
                // What the older registration is owed, the newer one reads as history.
                Some(_) => debts.cancel(slot, *key),
                None => session.live += 1,
            }
        }
        if session.live == 0 {
            return self.forget(sql, slot);
        }
        let mut rewritten = None;
        sql.transaction(&mut || {
            rewritten = rows::change(sql, session, removed, added)?;
            Ok(())
        })?;
        if let Some(live) = rewritten {
            let same = live.len() == session.live
                && live.iter().all(|(key, generation)| index.generation(key, slot) == Some(*generation));
            Fault::assert(same, "the index says what the rows say")?;
        }
        self.line_up(slot)
    }

    /// Forgets a session: its rows, its watches, and what it is owed (rule 10).
    pub(super) fn forget(&mut self, sql: &dyn Sql, slot: Slot) -> Result<(), Fault> {
        let Self { index, sessions, debts, lines, .. } = self;
        let mut session = sessions.remove(slot)?;
        lines.leave(slot, session.place);
        for (_, owed) in session.flight.take().map(|flight| flight.items).unwrap_or_default() {
            debts.settle(&owed);
        }
        sql.transaction(&mut || {
            for key in rows::live(sql, &session)?.keys() {
                index.remove(key, slot);
            }
            rows::delete(sql, &mut session)
        })?;
        cancel_all(debts, slot);
        Ok(())
    }
}

fn cancel_all(debts: &mut Debts, slot: Slot) {
    let owed: Vec<_> = debts.of(slot, None).map(|(key, _)| *key).collect();
    for key in owed {
        debts.cancel(slot, key);
    }
}

/// What tells two calls of one number apart (assertion f).
fn content(request: &ControlRequest) -> [u8; 8] {
    let digest = Sha256::digest(request.encode_to_vec());
    let mut content = [0; 8];
    content.copy_from_slice(&digest[..8]);
    content
}

fn heads(sql: &dyn Sql, request: &ControlRequest, add: &[Entry]) -> Result<Vec<TopicHead>, Fault> {
    let names: Vec<&[u8]> = add.iter().map(|(key, _)| key.as_slice()).collect();
    let heads = read::heads(sql, &names)?;
    let head = |topic: &[u8]| heads.get(topic).copied().unwrap_or(0);
    Ok(request.add.iter().map(|w| TopicHead { topic: w.topic.clone(), head: head(&w.topic) }).collect())
}
