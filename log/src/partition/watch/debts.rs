//! What is owed to whom: a push for each row of a watched topic, until its watcher acknowledges it.
//!
//! A debt is a range of a topic, not a list of rows: the rows themselves are kept once for all who wait for them.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::recent::Recent;
use super::sessions::Slot;
use crate::key::Key;

/// One topic's part of what a session is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owed {
    pub(super) generation: u32,
    /// The head before the first row that is owed; `None`: only the head is told, a *hint*.
    pub(super) from: Option<u64>,
    pub(super) head: u64,
    /// The lowest id that this stands for: the mark stays below it (rule 8).
    pub(super) low: u64,
}

impl Owed {
    pub(super) fn hint(generation: u32, head: u64, low: u64) -> Self {
        Self { generation, from: None, head, low }
    }

    /// What is owed when `later` joins it: the rows of both where one follows the other, else a hint of the higher head
    /// (rule 6).
    fn joined(self, later: Self) -> Self {
        let low = self.low.min(later.low);
        if self.generation == later.generation && self.from.is_some() && later.from == Some(self.head) {
            return Self { head: later.head, low, ..self };
        }
        Self::hint(self.generation.max(later.generation), self.head.max(later.head), low)
    }
}

#[derive(Debug, Default)]
pub(super) struct Debts {
    owed: BTreeMap<(Slot, Key), Owed>,
    /// The lowest ids of all debts, owed or in flight, with how many debts have each.
    lows: BTreeMap<u64, usize>,
    pub(super) recent: Recent,
}

impl Debts {
    /// How many are owed, those in flight left out.
    pub(super) fn len(&self) -> usize {
        self.owed.len()
    }

    /// The lowest id that is owed or in flight.
    pub(super) fn lowest(&self) -> Option<u64> {
        self.lows.first_key_value().map(|(low, _)| *low)
    }

    pub(super) fn is_owed(&self, slot: Slot) -> bool {
        self.of(slot, None).next().is_some()
    }

    /// What a session is owed, beginning behind the topic `resume` and ending with it.
    pub(super) fn of(&self, slot: Slot, resume: Option<Key>) -> impl Iterator<Item = (&Key, &Owed)> {
        let resume = resume.unwrap_or(Key::MAX);
        let first = self.owed.range((Bound::Excluded((slot, resume)), Bound::Included((slot, Key::MAX))));
        let rest = self.owed.range((slot, Key::MIN)..=(slot, resume));
        first.chain(rest).map(|((_, key), owed)| (key, owed))
    }

    /// Owes `new` too.
    pub(super) fn owe(&mut self, slot: Slot, key: Key, new: Owed) {
        let old = self.owed.get(&(slot, key)).copied();
        let owed = old.map_or(new, |old| old.joined(new));
        self.put(slot, key, owed, old);
    }

    /// Owes hints only from here on: their session has failed.
    pub(super) fn hints_only(&mut self, slot: Slot) {
        let rows: Vec<(Key, Owed)> = self
            .of(slot, None)
            .filter(|(_, owed)| owed.from.is_some())
            .map(|(key, owed)| (*key, *owed))
            .collect();
        for (key, owed) in rows {
            let hint = Owed { from: None, ..owed };
            self.put(slot, key, hint, Some(owed));
        }
    }

    /// A debt leaves with a push; `rest` of it stays. The mark is held until it is [`settled`](Self::settle).
    pub(super) fn send(&mut self, slot: Slot, key: Key, rest: Option<Owed>) {
        let Some(owed) = self.owed.remove(&(slot, key)) else { return };
        if let Some(rest) = rest {
            self.put(slot, key, rest, None);
        }
        if owed.from.is_some() {
            self.recent.release(&key);
        }
    }

    /// A debt is no more: acknowledged, or nobody waits for it.
    pub(super) fn settle(&mut self, owed: &Owed) {
        if let Some(count) = self.lows.get_mut(&owed.low) {
            *count -= 1;
            if *count == 0 {
                self.lows.remove(&owed.low);
            }
        }
    }

    /// Nobody waits for this any more.
    pub(super) fn cancel(&mut self, slot: Slot, key: Key) {
        if let Some(owed) = self.owed.get(&(slot, key)).copied() {
            self.send(slot, key, None);
            self.settle(&owed);
        }
    }

    fn put(&mut self, slot: Slot, key: Key, owed: Owed, old: Option<Owed>) {
        *self.lows.entry(owed.low).or_default() += 1;
        if owed.from.is_some() {
            self.recent.want(&key);
        }
        self.owed.insert((slot, key), owed);
        if let Some(old) = old {
            self.settle(&old);
            if old.from.is_some() {
                self.recent.release(&key);
            }
        }
    }
}
