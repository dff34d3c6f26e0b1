//! The sessions that watch something here.

use std::collections::BTreeMap;

use super::debts::Owed;
use super::lines::Place;
use crate::key::Key;
use crate::{Fault, Nanos};

/// Names a session in memory: four bytes, for the index.
pub(super) type Slot = u32;

/// The unique id of a Session object.
pub(super) type Id = [u8; 32];

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Id,
    /// The highest number of its calls (rule 4), and a hash of what that call said.
    pub(super) number: u64,
    pub(super) content: [u8; 8],
    /// Its rows, oldest first, and how many additions and removals they hold.
    pub(super) rows: Vec<i64>,
    pub(super) entries: usize,
    /// How many topics it watches.
    pub(super) live: usize,
    /// When it was last heard, as its rows say.
    pub(super) heard: Nanos,
    /// Where it stands among those who wait for a push.
    pub(super) place: Place,
    /// The push under way.
    pub(super) flight: Option<Flight>,
    /// The topic that the last push ended with: the next begins behind it, so that a busy topic starves no other.
    pub(super) resume: Option<Key>,
    /// It is to be asked whether it still lives.
    pub(super) probe: bool,
    /// Pushes in a row that failed, and when it may be tried again.
    pub(super) failures: u32,
    pub(super) due: Nanos,
}

/// A push that was sent and not answered.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) items: Vec<(Key, Owed)>,
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    slots: Vec<Option<Session>>,
    free: Vec<Slot>,
    by_id: BTreeMap<Id, Slot>,
}

impl Sessions {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn find(&self, id: &Id) -> Option<Slot> {
        self.by_id.get(id).copied()
    }

    pub(super) fn get(&self, slot: Slot) -> Result<&Session, Fault> {
        let session = self.slots.get(slot as usize).and_then(Option::as_ref);
        session.ok_or(Fault::Invariant("a slot in use has a session"))
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Result<&mut Session, Fault> {
        let session = self.slots.get_mut(slot as usize).and_then(Option::as_mut);
        session.ok_or(Fault::Invariant("a slot in use has a session"))
    }

    /// Enters a session that was not here.
    pub(super) fn insert(&mut self, id: Id) -> Result<Slot, Fault> {
        let session = Session {
            id,
            number: 0,
            content: [0; 8],
            rows: Vec::new(),
            entries: 0,
            live: 0,
            heard: 0,
            place: Place::Idle,
            flight: None,
            resume: None,
            probe: false,
            failures: 0,
            due: 0,
        };
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(session);
            slot
        } else {
            self.slots.push(Some(session));
            Slot::try_from(self.slots.len() - 1).map_err(|_| Fault::Invariant("sessions are bounded"))?
        };
        self.by_id.insert(id, slot);
        Ok(slot)
    }

    /// Takes a session out; its slot may be used again.
    pub(super) fn remove(&mut self, slot: Slot) -> Result<Session, Fault> {
        let session = self.slots.get_mut(slot as usize).and_then(Option::take);
        let session = session.ok_or(Fault::Invariant("a slot in use has a session"))?;
        self.by_id.remove(&session.id);
        self.free.push(slot);
        Ok(session)
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.by_id.values().copied()
    }
}
