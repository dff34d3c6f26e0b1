//! What every participant of transactions has: its channel to the sequencer, the list of its transactions, the workers
//! that wait for them, and its alarm.

mod action;
mod alarm;
mod channel;
mod machine;
mod member;
mod seat;
mod transactions;

use prost::Message;
use sealog_proto::internal::{NewEnvelope, Participant, participant::Kind};

use crate::Nanos;

pub use action::{Action, CallId, Machine, Reply};
pub(crate) use channel::{Channel, Due, Taken};
pub(crate) use member::{Judgement, Member};
pub(crate) use seat::Seat;
pub(crate) use transactions::{Ended, MIGRATION, Transactions};

/// A log partition as a participant.
pub fn log(index: u32) -> Participant {
    Participant { kind: Kind::Log.into(), index }
}

/// A Directory partition as a participant.
pub fn directory(index: u32) -> Participant {
    Participant { kind: Kind::Directory.into(), index }
}

/// Bytes that an envelope takes in a queue, in a batch, or staged.
pub(crate) fn size(envelope: &NewEnvelope) -> u64 {
    envelope.encoded_len() as u64
}

/// `first`, doubled `times` times, at most `last`.
pub(crate) fn doubled(first: Nanos, times: u32, last: Nanos) -> Nanos {
    first.saturating_mul(1 << times.min(16)).min(last)
}
