//! A log partition: the ordered logs of its topics, and the group commit that fills them.
//!
//! Publishes wait in a queue. While one request for ids is with the sequencer, later publishes gather behind it; the
//! reply is turned into rows in one all-or-nothing step, whose single flush answers the whole batch. A publish that
//! spans participants is staged first, durable and invisible; the sequencer's decision about it comes with a reply, and
//! the same step applies it.

mod history;
mod member;
mod outbox;
mod queue;
mod read;
mod rows;
mod staged;
mod step;
mod store;
pub mod watch;

use sealog_proto::internal::{
    ControlReply, ControlRequest, SettleReply, SettleRequest, StoreReply, StoreRequest, store_reply::Refusal,
};

pub use crate::participant::{Action, CallId, Machine, Reply};
use crate::participant::{Member, Seat};
use crate::{CommandError, Fault, Nanos, Sql};
use outbox::Outbox;
use queue::{Queue, Waiting};
use store::Last;
use watch::Watch;

pub use history::{history, inboxes, known};
pub use read::{newest, read};
pub use watch::pull;

/// Publishes that may wait for undecided transactions; beyond it they are refused like those of a full queue.
const MAX_BLOCKED: usize = 1_024;

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Partition {
    seat: Seat,
    last: Last,
    queue: Queue,
    /// The publishes that the request under way asks ids for.
    batch: Vec<Waiting>,
    /// Publishes that wait for an undecided transaction. They hold nothing (rule 18).
    blocked: Vec<Waiting>,
    outbox: Outbox,
    watch: Watch,
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
        self.seat.raise_epoch(sql, request.epoch)?;
        let mut actions = Vec::new();
        self.seat.channel.nudge();
        self.pump(now, &mut actions);
        Ok((SettleReply { epoch: self.seat.progress.epoch }, actions))
    }

    /// Command `control`: see [`Watch::control`].
    pub fn control(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &ControlRequest,
    ) -> Result<(ControlReply, Vec<Action>), CommandError> {
        let reply = self.watch.control(sql, now, request)?;
        let mut actions = Vec::new();
        self.watch.pump(now, &mut actions)?;
        self.pump(now, &mut actions);
        Ok((reply, actions))
    }

    /// What became of the pushes to the sessions that watch here.
    pub fn watch_counters(&self) -> watch::Counters {
        self.watch.counters()
    }
}
