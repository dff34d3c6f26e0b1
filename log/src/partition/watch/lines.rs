//! Whose push is next: three lines, taken in turn, and the calls that are under way (rule 9).

use std::collections::{BTreeMap, BTreeSet};

use super::sessions::Slot;
use crate::{Nanos, SECOND};

/// Calls at once. The platform keeps six connections open and queues the rest: one is left for the sequencer, so that
/// no publish waits behind sessions that hang.
const MAX_CALLS: usize = 5;
/// Calls that a wide topic may have under way while a narrow one waits, and while none does. One is always left for a
/// narrow topic, so that ten thousand watchers of one topic, or a hundred dead ones, do not make a chat of two wait.
const WIDE_CALLS: usize = 3;
const WIDE_CALLS_ALONE: usize = 4;
/// Calls to sessions whose last push failed: each may hold its slot until the time limit.
const SUSPECT_CALLS: usize = 1;
/// The longest pause before a failing session is tried again.
pub(super) const MAX_PAUSE: Nanos = 60 * SECOND;

/// How urgent a session's push is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Something in it is of a topic with few watchers.
    Narrow,
    /// All of it is of topics with many watchers.
    Wide,
    /// The last push failed.
    Suspect,
}

impl Class {
    const ALL: [Self; 3] = [Self::Narrow, Self::Wide, Self::Suspect];
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing is owed to it.
    Idle,
    /// In a line, under its key there.
    Waiting(Class, u64),
    /// Its push is under way.
    Flying,
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Narrow and wide: by order of arrival. Suspects: by the time at which they may be tried.
    waiting: [BTreeSet<(u64, Slot)>; 3],
    last_ticket: u64,
    /// The calls under way, by the number of their push.
    calls: BTreeMap<u64, Class>,
    /// Whose turn it is: an index into [`Class::ALL`].
    turn: usize,
}

impl Lines {
    /// Puts a session at the end of a line of healthy ones.
    pub(super) fn enter(&mut self, slot: Slot, class: Class) -> Place {
        self.last_ticket += 1;
        self.enter_at(slot, class, self.last_ticket)
    }

    /// Lets a failing session wait until `due`.
    pub(super) fn enter_suspect(&mut self, slot: Slot, due: Nanos) -> Place {
        self.enter_at(slot, Class::Suspect, due)
    }

    fn enter_at(&mut self, slot: Slot, class: Class, key: u64) -> Place {
        self.waiting[class as usize].insert((key, slot));
        Place::Waiting(class, key)
    }

    pub(super) fn leave(&mut self, slot: Slot, place: Place) {
        if let Place::Waiting(class, key) = place {
            self.waiting[class as usize].remove(&(key, slot));
        }
    }

    /// The next session to push to, taken out of its line; `None` when nobody may be called now.
    pub(super) fn next(&mut self, now: Nanos) -> Option<(Slot, Class)> {
        if self.calls.len() >= MAX_CALLS {
            return None;
        }
        let (class, slot) = (0..Class::ALL.len()).find_map(|step| {
            let class = Class::ALL[(self.turn + step) % Class::ALL.len()];
            let (key, slot) = self.waiting[class as usize].first().copied()?;
            self.may_call(class, key, now).then(|| {
                self.waiting[class as usize].pop_first();
                (class, slot)
            })
        })?;
        self.turn = (class as usize + 1) % Class::ALL.len();
        Some((slot, class))
    }

    fn may_call(&self, class: Class, key: u64, now: Nanos) -> bool {
        let wide = self.flying(Class::Wide);
        let suspects = self.flying(Class::Suspect);
        let room = wide + suspects < WIDE_CALLS_ALONE;
        match class {
            Class::Narrow => true,
            Class::Wide if self.waiting[Class::Narrow as usize].is_empty() => room,
            Class::Wide => wide < WIDE_CALLS,
            // A pause that is longer than any is a clock that jumped back.
            Class::Suspect => suspects < SUSPECT_CALLS && room && (key <= now || key > now + MAX_PAUSE),
        }
    }

    fn flying(&self, class: Class) -> usize {
        self.calls.values().filter(|flying| **flying == class).count()
    }

    /// A call has left.
    pub(super) fn departed(&mut self, number: u64, class: Class) {
        self.calls.insert(number, class);
    }

    /// A call is over.
    pub(super) fn landed(&mut self, number: u64) {
        self.calls.remove(&number);
    }

    /// Whether a healthy session waits.
    pub(super) fn somebody_waits(&self) -> bool {
        [Class::Narrow, Class::Wide].iter().any(|class| !self.waiting[*class as usize].is_empty())
    }

    /// Whether a call is under way.
    pub(super) fn is_calling(&self) -> bool {
        !self.calls.is_empty()
    }

    /// When the next failing session may be tried.
    pub(super) fn next_suspect(&self) -> Option<Nanos> {
        self.waiting[Class::Suspect as usize].first().map(|(due, _)| *due)
    }
}
