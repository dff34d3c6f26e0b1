//! A log partition: the ordered logs of its topics, and the group commit that fills them.
//!
//! Publishes wait in a queue. While one request for ids is with the sequencer, later publishes gather behind it; the
//! reply is turned into rows in one all-or-nothing step, whose single flush answers the whole batch.

mod queue;
mod read;
mod step;
mod store;

use sealog_proto::internal::{
    Failure, ReserveReply, ReserveRequest, SettleReply, SettleRequest, StoreReply, StoreRequest,
    failure::Kind, store_reply::Refusal,
};

use crate::{Fault, MILLISECOND, Nanos, SECOND, Sql};
use queue::{Queue, Waiting};
use store::Progress;

pub use read::{newest, read};

/// How long a partition with something to confirm waits for traffic that would carry it (rule 16).
const IDLE: Nanos = 50 * MILLISECOND;
/// The first time limit of a request to the sequencer. It doubles with every failure in a row (rule 1), so that a slow
/// sequencer is not asked ever faster.
const FIRST_DEADLINE: Nanos = SECOND;
const LAST_DEADLINE: Nanos = 8 * SECOND;
/// The first pause after a failure; it doubles likewise.
const FIRST_PAUSE: Nanos = 20 * MILLISECOND;
const LAST_PAUSE: Nanos = SECOND;
/// How long a publish may wait for ids. A little longer than the worker's own limit of 10 s: nobody listens after it.
const PATIENCE: Nanos = 12 * SECOND;

/// Names one waiting publish, for its answer.
pub type PublishId = u64;

/// What the shell does for the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send to the sequencer; report the reply with [`Partition::reserved`], anything else with
    /// [`Partition::reserve_failed`].
    Reserve {
        /// What to send.
        request: ReserveRequest,
        /// How long to wait for the reply, in nanoseconds.
        deadline: Nanos,
    },
    /// Answer a publish. What it says is durable when the object's output gate opens.
    Answer {
        /// Which one.
        publish: PublishId,
        /// The answer.
        reply: Result<StoreReply, Failure>,
    },
    /// Call [`Partition::wake`] after so many nanoseconds. Waking too early or too often is harmless.
    Wake {
        /// From now.
        after: Nanos,
    },
}

/// The request that is with the sequencer, and the publishes it asks for.
#[derive(Debug)]
struct InFlight {
    request: ReserveRequest,
    batch: Vec<Waiting>,
}

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Partition {
    index: u32,
    progress: Progress,
    /// Number of the last request of this incarnation.
    number: u64,
    /// `first_id` of the last reply whose step is done. The output gate makes it durable before a request carries it.
    applied: u64,
    queue: Queue,
    in_flight: Option<InFlight>,
    /// Something was stored that no later request has told the sequencer about.
    unconfirmed: bool,
    /// Ask at once, even for no ids.
    nudged: bool,
    /// Failed requests in a row.
    failures: u32,
    /// No request before this time.
    not_before: Nanos,
}

impl Partition {
    /// Starts an instance: it takes a new incarnation, stored before it says anything (rule 1).
    pub fn load(sql: &dyn Sql, index: u32) -> Result<Self, Fault> {
        let mut progress = Progress::load(sql)?;
        progress.incarnation += 1;
        progress.save(sql)?;
        Ok(Self {
            index,
            progress,
            number: 0,
            applied: 0,
            queue: Queue::default(),
            in_flight: None,
            unconfirmed: false,
            nudged: false,
            failures: 0,
            not_before: 0,
        })
    }

    /// Command `store`: envelopes of one publish, stored together or not at all (API-220).
    ///
    /// Idempotent by (topic, hash) (API-222). Answered, by an [`Action::Answer`], when the step that stored them is
    /// durable. The worker does not retry; a client may.
    pub fn publish(&mut self, now: Nanos, publish: PublishId, request: StoreRequest) -> Vec<Action> {
        let mut actions = Vec::new();
        if request.envelopes.is_empty() {
            actions.push(Action::Answer { publish, reply: Ok(StoreReply::default()) });
        } else if self.queue.is_full() {
            let reply = StoreReply { refusal: Refusal::Busy.into(), ..Default::default() };
            actions.push(Action::Answer { publish, reply: Ok(reply) });
        } else {
            self.queue.push(Waiting::new(publish, now, request));
            self.pump(now, &mut actions);
        }
        actions
    }

    /// The sequencer's reply. It counts only when it answers the newest request of this incarnation in an epoch that is
    /// not over (rule 3); then it becomes rows (rule 6).
    pub fn reserved(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        reply: &ReserveReply,
    ) -> Result<Vec<Action>, Fault> {
        let mut actions = Vec::new();
        let Some(in_flight) = self.take_in_flight(reply.incarnation, reply.number) else {
            return Ok(actions);
        };
        self.failures = 0;
        self.not_before = 0;
        if reply.epoch < self.progress.epoch {
            // The instance that answered is over, and so is the reservation. Ask its successor at once.
            self.nudged = true;
            self.queue.put_back(in_flight.batch);
            self.pump(now, &mut actions);
            return Ok(actions);
        }
        // A cut list comes without ids: its publishes wait for the rest of it (rule 5).
        let (batch, put_back) = if reply.count < in_flight.request.count {
            (Vec::new(), in_flight.batch)
        } else {
            (in_flight.batch, Vec::new())
        };
        let outcome = step::run(sql, &self.progress, self.applied, reply, &batch)?;
        self.unconfirmed |= outcome.wrote;
        self.progress = outcome.progress;
        self.applied = reply.first_id;
        self.nudged |= reply.more;
        for (waiting, reply) in batch.into_iter().zip(outcome.replies) {
            actions.push(Action::Answer { publish: waiting.publish, reply: Ok(reply) });
        }
        self.queue.put_back(put_back);
        self.pump(now, &mut actions);
        Ok(actions)
    }

    /// No usable reply came to request `number` of this incarnation: lost, late, refused, or superseded. Whatever was
    /// reserved is given up; the next request, under a new number, says so.
    pub fn reserve_failed(&mut self, now: Nanos, number: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        let Some(in_flight) = self.take_in_flight(self.progress.incarnation, number) else {
            return actions;
        };
        self.queue.put_back(in_flight.batch);
        self.nudged = true;
        self.not_before = now + doubled(FIRST_PAUSE, self.failures, LAST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.pump(now, &mut actions);
        actions
    }

    /// Time has passed.
    pub fn wake(&mut self, now: Nanos) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.unconfirmed && self.in_flight.is_none() {
            self.nudged = true;
        }
        self.pump(now, &mut actions);
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
        self.nudged = true;
        self.pump(now, &mut actions);
        Ok((SettleReply { epoch: self.progress.epoch }, actions))
    }

    /// Ends the instance after a [`Fault`]: every publish that still waits is answered. What the fault rolled back was
    /// not stored, and a retry of it is safe (API-222).
    pub fn abandon(mut self) -> Vec<Action> {
        let in_flight = self.in_flight.take().map(|in_flight| in_flight.batch).unwrap_or_default();
        in_flight
            .into_iter()
            .chain(self.queue.take_all())
            .map(|waiting| Action::Answer {
                publish: waiting.publish,
                reply: Err(Failure {
                    kind: Kind::Unavailable.into(),
                    message: "the partition starts anew; publish the same bytes again".to_owned(),
                }),
            })
            .collect()
    }

    fn take_in_flight(&mut self, incarnation: u64, number: u64) -> Option<InFlight> {
        let current = incarnation == self.progress.incarnation
            && self.in_flight.as_ref().is_some_and(|in_flight| in_flight.request.number == number);
        if current { self.in_flight.take() } else { None }
    }

    /// Sends the next request if there is something to ask for and none is under way (one counts at a time).
    fn pump(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        for waiting in self.queue.take_expired(now.saturating_sub(PATIENCE)) {
            let reply = Err(Failure {
                kind: Kind::Deadline.into(),
                message: "the sequencer did not answer in time; publish the same bytes again".to_owned(),
            });
            actions.push(Action::Answer { publish: waiting.publish, reply });
        }
        if self.in_flight.is_some() {
            return;
        }
        if now < self.not_before {
            actions.push(Action::Wake { after: self.not_before - now });
            return;
        }
        if self.queue.is_empty() && !self.nudged {
            if self.unconfirmed {
                actions.push(Action::Wake { after: IDLE });
            }
            return;
        }
        let batch = self.queue.take_batch();
        self.number += 1;
        let request = ReserveRequest {
            partition: self.index,
            incarnation: self.progress.incarnation,
            number: self.number,
            epoch_seen: self.progress.epoch,
            count: batch.iter().map(queue::Waiting::count).sum(),
            applied: self.applied,
        };
        self.unconfirmed = false;
        self.nudged = false;
        self.in_flight = Some(InFlight { request, batch });
        let deadline = doubled(FIRST_DEADLINE, self.failures, LAST_DEADLINE);
        actions.push(Action::Reserve { request, deadline });
    }
}

/// `first`, doubled `times` times, at most `last`.
fn doubled(first: Nanos, times: u32, last: Nanos) -> Nanos {
    first.saturating_mul(1 << times.min(16)).min(last)
}
