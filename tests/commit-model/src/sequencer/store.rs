//! What the sequencer stores.

use crate::names::{Participants, PerParticipant, SequenceId, Txid};

/// Its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SequencerStore {
    /// The last id that may be given out (rule 7).
    pub block_end: SequenceId,
    /// By txid. Kept for ever: the model has no clock by which to forget them (rule 11).
    pub decisions: Vec<Decision>,
    /// Tombstones (rule 12).
    pub aborted: Vec<Txid>,
    /// The closed allocation boundary (API-203).
    pub boundary: SequenceId,
    /// Nothing is open or unfinished (rule 19).
    pub clean: bool,
}

/// A decided transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decision {
    /// Which.
    pub txid: Txid,
    /// Those that staged a part; a duplicate is no part.
    pub participants: Participants,
    /// One id for each log partition that takes part.
    pub ids: PerParticipant<SequenceId>,
    /// Every participant has confirmed, and that is stored with this (rule 7).
    pub finished: bool,
}

impl Decision {
    /// Its lowest id.
    pub fn position(&self) -> SequenceId {
        self.ids.0.into_iter().filter(|id| *id > 0).min().unwrap_or(0)
    }
}
