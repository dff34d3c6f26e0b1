//! What a participant tells its shell to do, and what the shell tells it.

use sealog_proto::internal::{
    ApplyReply, ApplyRequest, AssociateRequest, Failure, PushReply, PushRequest, ReserveReply,
    ReserveRequest, StageReply, StageRequest, StoreReply, WithdrawReply, WithdrawRequest,
};

use crate::{CommandError, Fault, Nanos, Sql, Txid};

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
    /// Tell a Directory of associations; report with [`Machine::associated`].
    Associate {
        /// Which one.
        directory: u32,
        /// What to send.
        request: AssociateRequest,
        /// The sequence id of the last update in it.
        through: u64,
    },
    /// Send to a session, once; report what came of it with [`Machine::pushed`].
    Push {
        /// What to send; it names the session.
        request: PushRequest,
        /// How long to wait for the answer, in nanoseconds.
        deadline: Nanos,
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

    /// Starts an instance on what is stored, under a new incarnation. The actions are its first: what is staged is
    /// asked for at once (rule 17), what is owed is sent.
    fn load(sql: &dyn Sql, now: Nanos, index: u32) -> Result<(Self, Vec<Action>), Fault>;

    /// Command `stage`: keeps this participant's part of a transaction, durable and invisible.
    ///
    /// Idempotent by txid. Writes when the verdict is STAGED. The worker repeats it while it has no answer; after any
    /// other verdict, or none at all, it withdraws the attempt.
    fn stage(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &StageRequest,
    ) -> Result<(StageReply, Vec<Action>), CommandError>;

    /// Command `withdraw`: gives up an attempt that was never sent to be decided.
    ///
    /// Idempotent; also remembered of a txid never seen, whose `stage` may still be on its way. The worker repeats it
    /// while it has no answer.
    fn withdraw(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &WithdrawRequest,
    ) -> Result<(WithdrawReply, Vec<Action>), CommandError>;

    /// Command `apply`: answers, by an [`Action::Answer`], when the transaction has ended here.
    ///
    /// Idempotent, writes nothing itself: the decision comes with the reply to a request that is sent after this
    /// (trap 28). The worker repeats it while it has no answer; the sequencer sends it as a nudge.
    fn apply(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        call: CallId,
        request: ApplyRequest,
    ) -> Result<Vec<Action>, CommandError>;

    /// The sequencer's reply to [`Action::Reserve`]. It counts only when it answers the newest request of this
    /// incarnation in an epoch that is not over (rule 3); then it becomes rows (rule 6).
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

    /// What came of [`Action::Associate`]: `delivered`, or it is not known.
    fn associated(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        directory: u32,
        through: u64,
        delivered: bool,
    ) -> Result<Vec<Action>, Fault>;

    /// The answer to an [`Action::Push`] of that incarnation and number; `None` when there was none.
    fn pushed(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        session: &[u8],
        push: (u64, u64),
        reply: Option<&PushReply>,
    ) -> Result<Vec<Action>, Fault>;

    /// Time has passed.
    fn wake(&mut self, now: Nanos) -> Vec<Action>;

    /// The alarm rang, perhaps late, perhaps twice: staged copies that are old are asked for (rules 12 and 17), what is
    /// owed is sent again. It stays armed while there is any.
    fn alarm(&mut self, sql: &dyn Sql, now: Nanos) -> Result<Vec<Action>, Fault>;

    /// Ends the instance after a [`Fault`]: every call that still waits is answered. What the fault rolled back was not
    /// stored, and a retry of it is safe (API-222).
    fn abandon(self) -> Vec<Action>;
}
