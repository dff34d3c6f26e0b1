//! What a participant tells its shell to do, and what the shell tells it.

use sealog_proto::internal::{ApplyReply, Failure, ReserveReply, ReserveRequest, StoreReply};

use crate::{Fault, Nanos, Sql, Txid};

/// Names one waiting call, for its answer.
pub type CallId = u64;

/// The answer to a call that had to wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// To `store`.
    Store(StoreReply),
    /// To `apply`.
    Apply(ApplyReply),
}

/// What the shell does for the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send to the sequencer; report the reply with [`Machine::reserved`], anything else with
    /// [`Machine::reserve_failed`].
    Reserve {
        /// What to send.
        request: ReserveRequest,
        /// How long to wait for the reply, in nanoseconds.
        deadline: Nanos,
    },
    /// Ask the sequencer what became of a transaction; report with [`Machine::resolved`].
    Resolve {
        /// Which one.
        txid: Txid,
    },
    /// Answer a call. What it says is durable when the object's output gate opens.
    Answer {
        /// Which one.
        call: CallId,
        /// The answer.
        reply: Result<Reply, Failure>,
    },
    /// Call [`Machine::wake`] after so many nanoseconds. Waking too early or too often is harmless.
    Wake {
        /// From now.
        after: Nanos,
    },
    /// Set the object's alarm, in the same event as the writes before it; it calls [`Machine::alarm`].
    Alarm {
        /// From now, in nanoseconds.
        after: Nanos,
    },
}

/// A participant, as its shell drives it. Every event returns what is to be done; a [`Fault`] ends the instance.
pub trait Machine: Sized {
    /// What the shell calls it in a log.
    const NAME: &'static str;

    /// Starts an instance on what is stored, under a new incarnation. The actions are its first.
    fn load(sql: &dyn Sql, now: Nanos, index: u32) -> Result<(Self, Vec<Action>), Fault>;

    /// The sequencer's reply to [`Action::Reserve`].
    fn reserved(&mut self, sql: &dyn Sql, now: Nanos, reply: &ReserveReply) -> Result<Vec<Action>, Fault>;

    /// No usable reply came to request `number`: lost, late, refused, or superseded.
    fn reserve_failed(&mut self, now: Nanos, number: u64) -> Vec<Action>;

    /// The sequencer's answer to [`Action::Resolve`]; `None` when there was none.
    fn resolved(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        txid: Txid,
        decided: Option<bool>,
    ) -> Result<Vec<Action>, Fault>;

    /// Time has passed.
    fn wake(&mut self, now: Nanos) -> Vec<Action>;

    /// The alarm rang. It may ring late, or twice.
    fn alarm(&mut self, now: Nanos) -> Vec<Action>;

    /// Ends the instance after a [`Fault`]: every call that still waits is answered.
    fn abandon(self) -> Vec<Action>;
}
