//! A log partition: the ordered logs of its topics, and the group commit that fills them.
//!
//! Publishes wait in a queue. While one request for ids is with the sequencer, later publishes gather behind it; the
//! reply is turned into rows in one all-or-nothing step, whose single flush answers the whole batch. A publish that
//! spans participants is staged first, durable and invisible; the sequencer's decision about it comes with a reply, and
//! the same step applies it.

mod queue;
mod read;
mod rows;
mod stage;
mod staged;
mod step;
mod store;

use sealog_proto::internal::{
    ApplyRequest, Failure, ReserveReply, SettleReply, SettleRequest, StoreReply, StoreRequest, failure::Kind,
    store_reply::Refusal,
};

use crate::participant::{self, Channel, Due, Taken, Transactions};
pub use crate::participant::{Action, CallId, Machine, Reply};
use crate::{Fault, MILLISECOND, Nanos, SECOND, Sql, Txid};
use queue::{Queue, Waiting};
use store::Progress;

pub use read::{newest, read};

/// How long a publish, or the worker of a transaction, may wait. A little longer than the worker's own limit of 10 s:
/// nobody listens after it.
const PATIENCE: Nanos = 12 * SECOND;
/// How often a partition asks again while a publish waits for an undecided transaction. Its decision may come from
/// anybody, and a question costs no flush.
const BLOCKED: Nanos = 20 * MILLISECOND;

/// Publishes that may wait for undecided transactions; beyond it they are refused like those of a full queue.
const MAX_BLOCKED: usize = 1_024;

/// A worker that waits until its transaction is applied.
#[derive(Debug)]
struct Applying {
    call: CallId,
    since: Nanos,
    txid: Txid,
    request: ApplyRequest,
}

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Partition {
    progress: Progress,
    channel: Channel,
    queue: Queue,
    /// The publishes that the request under way asks ids for.
    batch: Vec<Waiting>,
    /// Publishes that wait for an undecided transaction. They hold nothing (rule 18).
    blocked: Vec<Waiting>,
    transactions: Transactions,
    applying: Vec<Applying>,
}

impl Machine for Partition {
    const NAME: &'static str = "log partition";

    /// Starts an instance: it takes a new incarnation, stored before it says anything (rule 1). The actions are its
    /// first: what is staged is asked for at once (rule 17).
    fn load(sql: &dyn Sql, now: Nanos, index: u32) -> Result<(Self, Vec<Action>), Fault> {
        let mut progress = Progress::load(sql)?;
        progress.incarnation += 1;
        progress.save(sql)?;
        let mut this = Self {
            channel: Channel::new(participant::log(index), progress.incarnation),
            transactions: Transactions::load(sql)?,
            progress,
            queue: Queue::default(),
            batch: Vec::new(),
            blocked: Vec::new(),
            applying: Vec::new(),
        };
        let actions = this.alarm(now); // nothing, when nothing is staged
        Ok((this, actions))
    }

    /// The sequencer's reply. It counts only when it answers the newest request of this incarnation in an epoch that is
    /// not over (rule 3); then it becomes rows (rule 6).
    fn reserved(&mut self, sql: &dyn Sql, now: Nanos, reply: &ReserveReply) -> Result<Vec<Action>, Fault> {
        let mut actions = Vec::new();
        match self.channel.take(reply, self.progress.epoch) {
            Taken::Stale => return Ok(actions),
            Taken::Void => self.requeue(),
            Taken::Current => self.step(sql, now, reply, &mut actions)?,
        }
        self.pump(now, &mut actions);
        Ok(actions)
    }

    /// No usable reply came to request `number`: lost, late, refused, or superseded.
    fn reserve_failed(&mut self, now: Nanos, number: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.channel.failed(now, number) {
            self.requeue();
            self.pump(now, &mut actions);
        }
        actions
    }

    /// The sequencer's answer to an [`Action::Resolve`]; `None` when there was none.
    fn resolved(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        txid: Txid,
        decided: Option<bool>,
    ) -> Result<Vec<Action>, Fault> {
        let mut actions = Vec::new();
        self.transactions.resolved(&txid);
        if self.transactions.is_staged(&txid) {
            match decided {
                Some(true) => self.channel.nudge(),
                Some(false) => self.drop_staged(sql, now, txid, &mut actions)?,
                None => {}
            }
        }
        self.pump(now, &mut actions);
        Ok(actions)
    }

    /// Time has passed.
    fn wake(&mut self, now: Nanos) -> Vec<Action> {
        let mut actions = Vec::new();
        self.channel.wake();
        if !self.blocked.is_empty() || !self.applying.is_empty() {
            self.channel.nudge();
        }
        self.pump(now, &mut actions);
        actions
    }

    /// The alarm rang: staged copies that are old are asked for (rules 12 and 17). It stays armed while anything is
    /// staged.
    fn alarm(&mut self, now: Nanos) -> Vec<Action> {
        let mut actions: Vec<Action> =
            self.transactions.alarm().map(|after| Action::Alarm { after }).into_iter().collect();
        if !self.transactions.is_empty() {
            self.channel.nudge();
        }
        actions.extend(self.transactions.ask_overdue(now));
        self.pump(now, &mut actions);
        actions
    }

    /// Ends the instance after a [`Fault`]: every call that still waits is answered. What the fault rolled back was not
    /// stored, and a retry of it is safe (API-222).
    fn abandon(mut self) -> Vec<Action> {
        self.requeue();
        let publishes = self.queue.take_all().into_iter().chain(self.blocked);
        let calls = publishes
            .map(|waiting| waiting.call)
            .chain(self.applying.into_iter().map(|applying| applying.call));
        let failure = Failure {
            kind: Kind::Unavailable.into(),
            message: "the partition starts anew; publish the same bytes again".to_owned(),
        };
        calls.map(|call| Action::Answer { call, reply: Err(failure.clone()) }).collect()
    }
}

impl Partition {
    /// Command `store`: envelopes of one publish, stored together or not at all (API-220).
    ///
    /// Idempotent by (topic, hash) (API-222). Answered, by an [`Action::Answer`], when the step that stored them is
    /// durable. Whoever calls may repeat it.
    pub fn publish(&mut self, now: Nanos, call: CallId, request: StoreRequest) -> Vec<Action> {
        let mut actions = Vec::new();
        if request.envelopes.is_empty() {
            actions.push(Action::Answer { call, reply: Ok(Reply::Store(StoreReply::default())) });
        } else if self.queue.is_full() || self.blocked.len() >= MAX_BLOCKED {
            let reply = StoreReply { refusal: Refusal::Busy.into(), ..Default::default() };
            actions.push(Action::Answer { call, reply: Ok(Reply::Store(reply)) });
        } else {
            self.queue.push(Waiting::new(call, now, request));
            self.pump(now, &mut actions);
        }
        actions
    }

    /// Command `settle` (rule 8): from here on no reply of an older epoch counts.
    ///
    /// Idempotent. Writes when the epoch is news. The sequencer retries. The partition also asks for ids once more, so
    /// that the sequencer hears what it has applied.
    pub fn settle(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &SettleRequest,
    ) -> Result<(SettleReply, Vec<Action>), Fault> {
        if request.epoch > self.progress.epoch {
            self.progress.epoch = request.epoch;
            self.progress.save(sql)?;
        }
        let mut actions = Vec::new();
        self.channel.nudge();
        self.pump(now, &mut actions);
        Ok((SettleReply { epoch: self.progress.epoch }, actions))
    }

    /// One reply becomes rows; whoever waited for it is answered.
    fn step(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        reply: &ReserveReply,
        actions: &mut Vec<Action>,
    ) -> Result<(), Fault> {
        // A cut list comes without ids: its publishes wait for the rest of it (rule 5).
        let asked: u32 = self.batch.iter().map(Waiting::count).sum();
        if reply.count < asked {
            self.requeue();
        }
        self.progress.clock = self.progress.clock.max(now);
        let batch = std::mem::take(&mut self.batch);
        let outcome = step::run(
            sql,
            step::Input { before: &self.progress, applied: self.channel.applied(), reply, batch: &batch },
            &mut self.transactions,
        )?;
        self.channel.stepped(reply, self.progress.epoch);
        self.progress = outcome.progress;
        for (waiting, outcome) in batch.into_iter().zip(outcome.publishes) {
            match outcome {
                step::Publish::Done(reply) => {
                    actions.push(Action::Answer { call: waiting.call, reply: Ok(Reply::Store(reply)) });
                }
                step::Publish::Blocked => self.blocked.push(waiting),
            }
        }
        if !reply.decided.is_empty() {
            self.unblock();
        }
        self.answer_applied(sql, actions)
    }

    /// Takes back the batch of a request that came to nothing.
    fn requeue(&mut self) {
        self.queue.put_back(std::mem::take(&mut self.batch));
    }

    /// A transaction ended: whoever waited for it gets another turn, ahead of later publishes.
    fn unblock(&mut self) {
        self.queue.put_back(std::mem::take(&mut self.blocked));
    }

    /// Sends the next request if there is something to ask for and none is under way (one counts at a time).
    fn pump(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.expire(now, actions);
        match self.channel.due(now, !self.queue.is_empty()) {
            Due::Now => {
                self.batch = self.queue.take_batch();
                let count = self.batch.iter().map(Waiting::count).sum();
                let (request, deadline) = self.channel.ask(self.progress.epoch, count);
                actions.push(Action::Reserve { request, deadline });
            }
            Due::Later(after) => actions.push(Action::Wake { after }),
            Due::No => {}
        }
        if !self.blocked.is_empty() || !self.applying.is_empty() {
            actions.push(Action::Wake { after: BLOCKED });
        }
    }

    /// Answers whoever has waited too long.
    fn expire(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let limit = now.saturating_sub(PATIENCE);
        let mut late: Vec<CallId> =
            self.queue.take_expired(limit).into_iter().map(|waiting| waiting.call).collect();
        late.extend(self.blocked.extract_if(.., |waiting| waiting.since < limit).map(|waiting| waiting.call));
        late.extend(self.applying.extract_if(.., |applying| applying.since < limit).map(|it| it.call));
        let failure = || Failure {
            kind: Kind::Deadline.into(),
            message: "the publish took too long; publish the same bytes again".to_owned(),
        };
        actions.extend(late.into_iter().map(|call| Action::Answer { call, reply: Err(failure()) }));
    }
}
