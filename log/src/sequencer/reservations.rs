//! Who holds ids that may still land: the sequencer's memory of each partition (rules 4 and 8).

use std::collections::BTreeMap;

use sealog_proto::internal::ReserveRequest;

/// Whether a request counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is the newest of its partition, or a repeat of the newest.
    Current,
    /// A newer one was seen: its reply would not be accepted, so nothing may be opened for it.
    Superseded,
}

#[derive(Debug, Default)]
struct Partition {
    /// Highest (incarnation, number) seen.
    newest: (u64, u64),
    /// First ids of reservations whose reply may still be accepted.
    open: Vec<u64>,
    /// It has said this instance's epoch: it will accept no reply of an older instance.
    heard: bool,
}

#[derive(Debug, Default)]
pub(super) struct Reservations {
    partitions: BTreeMap<u32, Partition>,
}

impl Reservations {
    /// Places a request in its partition's order. A newer one closes all older reservations: the partition has given
    /// up the requests they answered. A repeat keeps them all open, because any of the replies may be the one it takes.
    pub(super) fn turn(&mut self, request: &ReserveRequest) -> Turn {
        let partition = self.partitions.entry(request.partition).or_default();
        let this = (request.incarnation, request.number);
        if this < partition.newest {
            return Turn::Superseded;
        }
        if this > partition.newest {
            partition.newest = this;
            partition.open.clear();
        }
        Turn::Current
    }

    pub(super) fn open(&mut self, partition: u32, first_id: u64) {
        self.partitions.entry(partition).or_default().open.push(first_id);
    }

    pub(super) fn heard(&mut self, partition: u32) {
        self.partitions.entry(partition).or_default().heard = true;
    }

    pub(super) fn all_heard(&self, partitions: u32) -> bool {
        (0..partitions).all(|index| self.partitions.get(&index).is_some_and(|partition| partition.heard))
    }

    pub(super) fn lowest_open(&self) -> Option<u64> {
        self.partitions.values().flat_map(|partition| &partition.open).min().copied()
    }
}
