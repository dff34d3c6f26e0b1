//! A Directory partition: which inbox holds which handle (API-296). A participant without ids.
//!
//! A claim is staged here while its identity update is staged at the update's log partition; the one decision of the
//! sequencer applies both. So two inboxes that claim a handle at the same time cannot both store.

mod store;

use sealog_proto::internal::{
    ApplyReply, ApplyRequest, Claim, Decided, Failure, ReserveReply, StageReply, StageRequest, WithdrawReply,
    WithdrawRequest, failure::Kind, stage_reply::Verdict,
};

use crate::participant::{self, Channel, Due, Ended, Taken, Transactions};
pub use crate::participant::{Action, CallId, Machine, Reply};
use crate::{CommandError, Fault, MILLISECOND, Nanos, SECOND, Sql, Txid};
use store::{Holder, Progress};

pub use store::holder;

/// How long the worker of a transaction may wait, as in a log partition.
const PATIENCE: Nanos = 12 * SECOND;
/// How often the decision is asked for while a worker waits for it.
const WAITING: Nanos = 20 * MILLISECOND;

#[derive(Debug)]
struct Applying {
    call: CallId,
    since: Nanos,
    txid: Txid,
}

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Directory {
    progress: Progress,
    channel: Channel,
    transactions: Transactions,
    applying: Vec<Applying>,
}

impl Machine for Directory {
    const NAME: &'static str = "directory partition";

    /// Starts an instance, as a log partition does.
    fn load(sql: &dyn Sql, now: Nanos, index: u32) -> Result<(Self, Vec<Action>), Fault> {
        let mut progress = Progress::load(sql)?;
        progress.incarnation += 1;
        progress.save(sql)?;
        let mut this = Self {
            channel: Channel::new(participant::directory(index), progress.incarnation),
            transactions: Transactions::load(sql)?,
            progress,
            applying: Vec::new(),
        };
        let actions = this.alarm(now); // nothing, when nothing is staged
        Ok((this, actions))
    }

    /// The sequencer's reply: what it decided is applied in one all-or-nothing step.
    fn reserved(&mut self, sql: &dyn Sql, now: Nanos, reply: &ReserveReply) -> Result<Vec<Action>, Fault> {
        let mut actions = Vec::new();
        match self.channel.take(reply, self.progress.epoch) {
            Taken::Stale => return Ok(actions),
            Taken::Void => {}
            Taken::Current => {
                Fault::assert(reply.first_id >= self.channel.applied(), "replies move forward")?;
                self.progress.clock = self.progress.clock.max(now);
                let epoch_seen = self.progress.epoch;
                sql.transaction(&mut || self.step(sql, reply))?;
                self.channel.stepped(reply, epoch_seen);
                self.answer_applied(&mut actions);
            }
        }
        self.pump(now, &mut actions);
        Ok(actions)
    }

    /// No usable reply came to request `number`.
    fn reserve_failed(&mut self, now: Nanos, number: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.channel.failed(now, number) {
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
                Some(false) => self.drop_staged(sql, txid, &mut actions)?,
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
        if !self.applying.is_empty() {
            self.channel.nudge();
        }
        self.pump(now, &mut actions);
        actions
    }

    /// The alarm rang, as in a log partition.
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

    /// Ends the instance after a [`Fault`].
    fn abandon(self) -> Vec<Action> {
        let failure = Failure {
            kind: Kind::Unavailable.into(),
            message: "the directory partition starts anew; publish the same bytes again".to_owned(),
        };
        let calls = self.applying.into_iter().map(|applying| applying.call);
        calls.map(|call| Action::Answer { call, reply: Err(failure.clone()) }).collect()
    }
}

impl Directory {
    /// Command `stage`: holds handles for inboxes until the transaction ends. Idempotent by txid.
    ///
    /// TAKEN only against a claim that is applied; one that is staged may still be aborted, and TAKEN is final for a
    /// client (trap 19): that is CONFLICT.
    pub fn stage(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &StageRequest,
    ) -> Result<(StageReply, Vec<Action>), CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let mut actions = Vec::new();
        let idle = self.transactions.is_empty();
        let verdict = self.judge(sql, now, txid, &request.claims)?;
        match verdict {
            // One alarm while anything is staged, as in a log partition.
            Verdict::Staged if idle => {
                actions.extend(self.transactions.alarm().map(|after| Action::Alarm { after }));
            }
            Verdict::Conflict => {
                self.channel.nudge();
                actions.extend(self.transactions.ask_overdue(now));
            }
            _ => {}
        }
        self.pump(now, &mut actions);
        Ok((StageReply { verdict: verdict.into(), count: 0, bytes: 0 }, actions))
    }

    fn judge(&mut self, sql: &dyn Sql, now: Nanos, txid: Txid, claims: &[Claim]) -> Result<Verdict, Fault> {
        if self.transactions.is_staged(&txid) {
            return Ok(Verdict::Staged);
        }
        self.progress.clock = self.progress.clock.max(now);
        let clock = self.progress.clock;
        if self.transactions.ended(&txid).is_some() || txid.not_after() < clock {
            return Ok(Verdict::Ended);
        }
        let mut conflict = false;
        let mut new = Vec::with_capacity(claims.len());
        for claim in claims {
            match store::held_by(sql, &claim.handle)? {
                Holder::Inbox(inbox) if inbox != claim.inbox_id => return Ok(Verdict::Taken),
                // Claimed again by its holder: it is held for good, so there is nothing to hold meanwhile.
                Holder::Inbox(_) => {}
                Holder::Transaction => conflict = true,
                Holder::Nobody => new.push(claim),
            }
        }
        if conflict {
            return Ok(Verdict::Conflict);
        }
        if !self.transactions.has_room(0) {
            return Ok(Verdict::Busy);
        }
        sql.transaction(&mut || {
            if self.transactions.has_past(clock) {
                self.transactions.prune(sql, clock)?;
                self.progress.save(sql)?;
            }
            for claim in &new {
                store::stage(sql, &txid, claim)?;
            }
            self.transactions.stage(sql, txid, now, 0)
        })?;
        Ok(Verdict::Staged)
    }

    /// Command `withdraw`, as in a log partition.
    pub fn withdraw(
        &mut self,
        sql: &dyn Sql,
        request: &WithdrawRequest,
    ) -> Result<(WithdrawReply, Vec<Action>), CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let mut actions = Vec::new();
        match self.transactions.ended(&txid) {
            Some(Ended::Applied) => Err(Fault::Invariant("a decided transaction is not withdrawn"))?,
            Some(Ended::Aborted) => {}
            None => self.drop_staged(sql, txid, &mut actions)?,
        }
        Ok((WithdrawReply {}, actions))
    }

    /// Command `apply`, as in a log partition; its answer carries no metadata.
    pub fn apply(
        &mut self,
        now: Nanos,
        call: CallId,
        request: &ApplyRequest,
    ) -> Result<Vec<Action>, CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let mut actions = Vec::new();
        self.applying.push(Applying { call, since: now, txid });
        if self.transactions.is_staged(&txid) {
            self.channel.nudge();
        } else {
            // Whoever asks may not know that it has ended here: the sequencer, when either side has started anew.
            self.channel.owe_confirmation();
        }
        self.answer_applied(&mut actions);
        self.pump(now, &mut actions);
        Ok(actions)
    }

    fn step(&mut self, sql: &dyn Sql, reply: &ReserveReply) -> Result<(), Fault> {
        for decided in &reply.decided {
            self.apply_decided(sql, decided)?;
        }
        if reply.epoch > self.progress.epoch {
            self.progress.epoch = reply.epoch;
            self.progress.save(sql)?;
        }
        Ok(())
    }

    fn apply_decided(&mut self, sql: &dyn Sql, decided: &Decided) -> Result<(), Fault> {
        let txid = Txid::parse(&decided.txid).ok_or(Fault::Invariant("a decision names a txid"))?;
        if self.transactions.is_staged(&txid) {
            store::apply(sql, &txid)?;
            return self.transactions.end(sql, txid, Ended::Applied);
        }
        self.transactions.assert_applied(&txid, self.progress.clock)
    }

    fn drop_staged(&mut self, sql: &dyn Sql, txid: Txid, actions: &mut Vec<Action>) -> Result<(), Fault> {
        sql.transaction(&mut || {
            store::drop_staged(sql, &txid)?;
            self.transactions.end(sql, txid, Ended::Aborted)
        })?;
        self.answer_applied(actions);
        Ok(())
    }

    fn answer_applied(&mut self, actions: &mut Vec<Action>) {
        let transactions = &self.transactions;
        let ended = self.applying.extract_if(.., |applying| !transactions.is_staged(&applying.txid));
        actions.extend(ended.map(|Applying { call, txid, .. }| {
            let aborted = transactions.ended(&txid) == Some(Ended::Aborted);
            let reply = Reply::Apply(ApplyReply { aborted, metas: Vec::new() });
            Action::Answer { call, reply: Ok(reply) }
        }));
    }

    fn pump(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let limit = now.saturating_sub(PATIENCE);
        let late = self.applying.extract_if(.., |applying| applying.since < limit);
        actions.extend(late.map(|applying| {
            let message = "the publish took too long; publish the same bytes again".to_owned();
            Action::Answer {
                call: applying.call,
                reply: Err(Failure { kind: Kind::Deadline.into(), message }),
            }
        }));
        match self.channel.due(now, false) {
            Due::Now => {
                let (request, deadline) = self.channel.ask(self.progress.epoch, 0);
                actions.push(Action::Reserve { request, deadline });
            }
            Due::Later(after) => actions.push(Action::Wake { after }),
            Due::No => {}
        }
        if !self.applying.is_empty() {
            actions.push(Action::Wake { after: WAITING });
        }
    }
}
