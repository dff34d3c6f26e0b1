//! Who holds ids that may still land: the sequencer's memory of each participant (rules 4 and 8).

use std::collections::BTreeMap;

use sealog_proto::internal::ReserveRequest;

use super::transactions::{Key, key};
use crate::participant;

/// Whether a request counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is the newest of its participant, or a repeat of the newest.
    Current,
    /// A newer one was seen: its reply would not be accepted, so nothing may be opened for it.
    Superseded,
}

#[derive(Debug, Default)]
struct Speaker {
    /// Highest (incarnation, number) seen.
    newest: (u64, u64),
    /// First ids of reservations whose reply may still be accepted.
    open: Vec<u64>,
    /// It has said this instance's epoch: it will accept no reply of an older instance.
    heard: bool,
}

#[derive(Debug)]
pub(super) struct Reservations {
    speakers: BTreeMap<Key, Speaker>,
    /// The last instance left nothing open: nobody need be heard (rule 19).
    clean: bool,
}

impl Reservations {
    pub(super) fn starting(clean: bool) -> Self {
        Self { speakers: BTreeMap::new(), clean }
    }

    /// Places a request in its participant's order. A newer one closes all older reservations: the participant has
    /// given up the requests they answered. A repeat keeps them all open, because any of the replies may be the one it
    /// takes.
    pub(super) fn turn(&mut self, participant: Key, request: &ReserveRequest) -> Turn {
        let speaker = self.speakers.entry(participant).or_default();
        let this = (request.incarnation, request.number);
        if this < speaker.newest {
            return Turn::Superseded;
        }
        if this > speaker.newest {
            speaker.newest = this;
            speaker.open.clear();
        }
        Turn::Current
    }

    pub(super) fn open(&mut self, participant: Key, first_id: u64) {
        self.speakers.entry(participant).or_default().open.push(first_id);
    }

    pub(super) fn heard(&mut self, participant: Key) {
        self.speakers.entry(participant).or_default().heard = true;
    }

    /// Log partitions that have not said this instance's epoch. Directories never hold ids and are not waited for.
    pub(super) fn unheard(&self, partitions: u32) -> Vec<u32> {
        if self.clean {
            return Vec::new();
        }
        let heard = |index: &u32| self.speaker(*index).is_some_and(|speaker| speaker.heard);
        (0..partitions).filter(|index| !heard(index)).collect()
    }

    /// Log partitions with open reservations.
    pub(super) fn holders(&self, partitions: u32) -> Vec<u32> {
        let holds = |index: &u32| self.speaker(*index).is_some_and(|speaker| !speaker.open.is_empty());
        (0..partitions).filter(holds).collect()
    }

    pub(super) fn lowest_open(&self) -> Option<u64> {
        self.speakers.values().flat_map(|speaker| &speaker.open).min().copied()
    }

    fn speaker(&self, index: u32) -> Option<&Speaker> {
        self.speakers.get(&key(participant::log(index)))
    }
}
