//! What every participant of transactions has: its channel to the sequencer, and the list of its transactions.

mod action;
mod channel;
mod transactions;

use sealog_proto::internal::{Participant, participant::Kind};

pub use action::{Action, CallId, Machine, Reply};
pub(crate) use channel::{Channel, Due, Taken};
pub(crate) use transactions::{Ended, MIGRATION, Transactions};

/// A log partition as a participant.
pub fn log(index: u32) -> Participant {
    Participant { kind: Kind::Log.into(), index }
}

/// A Directory partition as a participant.
pub fn directory(index: u32) -> Participant {
    Participant { kind: Kind::Directory.into(), index }
}
