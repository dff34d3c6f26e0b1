//! What all participants do alike, in terms of what each does in its own way.

use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::{
    ApplyReply, EnvelopeKey, Failure, PushReply, ReserveReply, StageReply, StageRequest, failure::Kind,
    stage_reply::Verdict,
};

use super::seat::{Applying, Seat};
use super::{Action, CallId, Due, Ended, Reply};
use crate::{CommandError, Fault, MILLISECOND, Nanos, SECOND, Sql, Txid};

/// How long a publish, or the worker of a transaction, may wait. A little longer than the worker's own limit of 10 s:
/// nobody listens after it.
const PATIENCE: Nanos = 12 * SECOND;
/// How often a participant asks again while somebody waits for an undecided transaction. Its decision may come from
/// anybody, and a question costs no flush.
const WAITING: Nanos = 20 * MILLISECOND;

/// What a participant makes of its part of a transaction.
#[derive(Debug)]
pub(crate) enum Judgement {
    /// This much of it is to be kept; the rest is stored already.
    Keep(StageRequest),
    /// Nothing is kept.
    Refuse(Verdict),
}

/// One kind of participant. [`Machine`](super::Machine) is made of it.
pub(crate) trait Member: Sized {
    /// What it is called in messages to operators.
    const NAME: &'static str;

    /// Starts on what is stored.
    fn start(sql: &dyn Sql, index: u32) -> Result<Self, Fault>;

    fn seat(&mut self) -> &mut Seat;

    /// Judges a part that was not seen before.
    fn judge(&self, sql: &dyn Sql, part: &StageRequest) -> Result<Judgement, Fault>;

    /// Writes the rows of a part that is kept.
    fn keep(&self, sql: &dyn Sql, txid: &Txid, part: &StageRequest) -> Result<(), Fault>;

    /// Deletes the rows of a part.
    fn discard(&self, sql: &dyn Sql, txid: &Txid) -> Result<(), Fault>;

    /// How many ids a kept part takes.
    fn count(&self, _sql: &dyn Sql, _txid: &Txid) -> Result<u32, Fault> {
        Ok(0)
    }

    /// The metadata of envelopes, or `None` when one of them is not stored.
    fn metas(&self, _sql: &dyn Sql, _envelopes: &[EnvelopeKey]) -> Result<Option<Vec<EnvelopeMeta>>, Fault> {
        Ok(Some(Vec::new()))
    }

    /// One reply of the sequencer becomes rows, all or nothing (rule 6).
    fn step(&mut self, sql: &dyn Sql, reply: &ReserveReply, actions: &mut Vec<Action>) -> Result<(), Fault>;

    /// The request under way came to nothing.
    fn requeue(&mut self) {}

    /// A transaction has ended.
    fn unblock(&mut self) {}

    /// Whether somebody waits for ids.
    fn wants_ids(&self) -> bool {
        false
    }

    /// Takes what the next request asks ids for; says how many.
    fn take_batch(&mut self) -> u32 {
        0
    }

    /// Whether somebody waits for an undecided transaction.
    fn is_blocked(&self) -> bool {
        false
    }

    /// Takes the calls that wait since before `limit`.
    fn take_late(&mut self, _limit: Nanos) -> Vec<CallId> {
        Vec::new()
    }

    /// Takes all calls that wait.
    fn take_all(&mut self) -> Vec<CallId> {
        Vec::new()
    }

    /// Carries on with what it owes to others than the sequencer.
    fn carry_on(&mut self, _sql: &dyn Sql, _now: Nanos, _actions: &mut Vec<Action>) -> Result<(), Fault> {
        Ok(())
    }

    /// After how long the alarm is to ring for what it owes.
    fn owes(&self, _now: Nanos) -> Option<Nanos> {
        None
    }

    /// A Directory has taken associations up to an id (`delivered`), or has not said so.
    fn delivered(
        &mut self,
        _sql: &dyn Sql,
        _directory: u32,
        _through: u64,
        _delivered: bool,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// A session has answered a push (incarnation and number), or has not.
    fn acknowledged(
        &mut self,
        _sql: &dyn Sql,
        _now: Nanos,
        _session: &[u8],
        _push: (u64, u64),
        _reply: Option<&PushReply>,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// The instance starts, or its alarm rang. What is owed is then carried on with.
    fn rang(&mut self, _sql: &dyn Sql, _now: Nanos) -> Result<(), Fault> {
        Ok(())
    }

    /// Sends the next request if there is something to ask for and none is under way (one counts at a time); answers
    /// whoever has waited too long; sets the alarm for what is owed.
    fn pump(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.expire(now, actions);
        let wants_ids = self.wants_ids();
        match self.seat().channel.due(now, wants_ids) {
            Due::Now => {
                let count = self.take_batch();
                let seat = self.seat();
                let (request, deadline) = seat.channel.ask(seat.progress.epoch, count);
                actions.push(Action::Reserve { request, deadline });
            }
            Due::Later(after) => actions.push(Action::Wake { after }),
            Due::No => {}
        }
        if self.somebody_waits() {
            actions.push(Action::Wake { after: WAITING });
        }
        let owed = [self.seat().transactions.alarm(), self.owes(now)];
        for after in owed.into_iter().flatten() {
            actions.extend(self.seat().alarm.arm(now, after));
        }
    }

    fn somebody_waits(&mut self) -> bool {
        self.is_blocked() || !self.seat().applying.is_empty()
    }

    fn expire(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let limit = now.saturating_sub(PATIENCE);
        let mut late = self.take_late(limit);
        let applying = &mut self.seat().applying;
        late.extend(applying.extract_if(.., |applying| applying.since < limit).map(|applying| applying.call));
        let failure = || Failure {
            kind: Kind::Deadline.into(),
            message: "the publish took too long; publish the same bytes again".to_owned(),
        };
        actions.extend(late.into_iter().map(|call| Action::Answer { call, reply: Err(failure()) }));
    }

    /// Keeps a part, or says why not.
    fn stage_part(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &StageRequest,
    ) -> Result<StageReply, CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let kept = |count, bytes| StageReply { verdict: Verdict::Staged.into(), count, bytes };
        let only = |verdict: Verdict| StageReply { verdict: verdict.into(), ..StageReply::default() };
        if let Some(bytes) = self.seat().transactions.staged(&txid) {
            return Ok(kept(self.count(sql, &txid)?, bytes));
        }
        // A txid serves one attempt: a late copy of a stage that ended must not lock anything again (trap 15).
        let clock = self.seat().tick(now);
        if self.seat().transactions.ended(&txid).is_some() || txid.not_after() < clock {
            return Ok(only(Verdict::Ended));
        }
        let part = match self.judge(sql, request)? {
            Judgement::Keep(part) => part,
            Judgement::Refuse(verdict) => return Ok(only(verdict)),
        };
        let bytes = part.envelopes.iter().map(super::size).sum();
        if !self.seat().transactions.has_room(bytes) {
            return Ok(only(Verdict::Busy));
        }
        sql.transaction(&mut || {
            let seat = self.seat();
            if seat.transactions.has_past(clock) {
                seat.transactions.prune(sql, clock)?;
                seat.progress.save(sql)?;
            }
            seat.transactions.stage(sql, txid, now, bytes)?;
            self.keep(sql, &txid, &part)
        })?;
        Ok(kept(self.count(sql, &txid)?, bytes))
    }

    /// Removes what is staged under `txid`, and remembers that it ended.
    fn abort(&mut self, sql: &dyn Sql, txid: Txid, actions: &mut Vec<Action>) -> Result<(), Fault> {
        sql.transaction(&mut || {
            self.discard(sql, &txid)?;
            self.seat().transactions.end(sql, txid, Ended::Aborted)
        })?;
        self.unblock();
        self.answer_applied(sql, actions)
    }

    /// Answers the workers whose transactions are no longer staged, with what the rows say (rule 14).
    fn answer_applied(&mut self, sql: &dyn Sql, actions: &mut Vec<Action>) -> Result<(), Fault> {
        let Seat { transactions, applying, .. } = self.seat();
        let ended: Vec<(Applying, bool)> = applying
            .extract_if(.., |applying| !transactions.is_staged(&applying.txid))
            .map(|applying| {
                let aborted = transactions.ended(&applying.txid) == Some(Ended::Aborted);
                (applying, aborted)
            })
            .collect();
        for (Applying { call, request, .. }, aborted) in ended {
            let metas = if aborted { None } else { self.metas(sql, &request.envelopes)? };
            let reply = ApplyReply { aborted: metas.is_none(), metas: metas.unwrap_or_default() };
            actions.push(Action::Answer { call, reply: Ok(Reply::Apply(reply)) });
        }
        Ok(())
    }
}
