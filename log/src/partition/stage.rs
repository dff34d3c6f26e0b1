//! A log partition's part in a transaction, up to the decision (rules 9 to 12, 15, 18).

use sealog_proto::internal::{
    ApplyReply, ApplyRequest, EnvelopeKey, NewEnvelope, StageReply, StageRequest, WithdrawReply,
    WithdrawRequest, stage_reply::Verdict,
};

use super::{Action, Applying, CallId, Partition, Reply, staged, store};
use crate::participant::Ended;
use crate::{CommandError, Fault, Nanos, Sql, Txid};

impl Partition {
    /// Command `stage`: keeps this partition's part of a transaction, durable and invisible.
    ///
    /// Idempotent by txid. Writes when the verdict is STAGED. The worker repeats it while it has no answer; after any
    /// other verdict, or none at all, it withdraws the attempt.
    pub fn stage(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &StageRequest,
    ) -> Result<(StageReply, Vec<Action>), CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let mut actions = Vec::new();
        let idle = self.transactions.is_empty();
        let reply = self.judge(sql, now, txid, &request.envelopes)?;
        match reply.verdict() {
            // One alarm while anything is staged: setting it anew with each would put it off for as long as others come.
            Verdict::Staged if idle => {
                actions.extend(self.transactions.alarm().map(|after| Action::Alarm { after }));
            }
            Verdict::Conflict => {
                // The holder may have been decided long ago, or be dead.
                self.channel.nudge();
                actions.extend(self.transactions.ask_overdue(now));
            }
            _ => {}
        }
        self.pump(now, &mut actions);
        Ok((reply, actions))
    }

    fn judge(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        txid: Txid,
        envelopes: &[NewEnvelope],
    ) -> Result<StageReply, Fault> {
        if self.transactions.is_staged(&txid) {
            let (count, bytes) = staged::size(sql, &txid)?;
            return Ok(StageReply { verdict: Verdict::Staged.into(), count, bytes });
        }
        let only = |verdict: Verdict| StageReply { verdict: verdict.into(), ..Default::default() };
        // A txid serves one attempt: a late copy of a stage that ended must not lock anything again (trap 15).
        self.progress.clock = self.progress.clock.max(now);
        let clock = self.progress.clock;
        if self.transactions.ended(&txid).is_some() || txid.not_after() < clock {
            return Ok(only(Verdict::Ended));
        }
        let mut new = Vec::with_capacity(envelopes.len());
        for envelope in envelopes {
            if store::find(sql, &envelope.topic, &envelope.hash)?.is_none() {
                new.push(envelope);
            }
        }
        if new.is_empty() {
            return Ok(only(Verdict::Duplicate));
        }
        let mut conflict = false;
        for envelope in &new {
            if let Some(expected) = envelope.expected_head
                && store::head(sql, &envelope.topic)? != expected
            {
                return Ok(only(Verdict::HeadMoved));
            }
            conflict |= !self.transactions.is_empty() && staged::holds(sql, envelope)?;
        }
        if conflict {
            return Ok(only(Verdict::Conflict));
        }
        let bytes = new.iter().map(|envelope| envelope.body.len() as u64).sum();
        if !self.transactions.has_room(bytes) {
            return Ok(only(Verdict::Busy));
        }
        sql.transaction(&mut || {
            if self.transactions.has_past(clock) {
                self.transactions.prune(sql, clock)?;
                self.progress.save(sql)?;
            }
            for (ordinal, envelope) in (0..).zip(&new) {
                staged::insert(sql, &txid, ordinal, envelope)?;
            }
            self.transactions.stage(sql, txid, now, bytes)
        })?;
        let count =
            u32::try_from(new.len()).map_err(|_| Fault::Invariant("a request has fewer envelopes"))?;
        Ok(StageReply { verdict: Verdict::Staged.into(), count, bytes })
    }

    /// Command `withdraw`: gives up an attempt that was never sent to be decided.
    ///
    /// Idempotent; also remembered of a txid never seen, whose `stage` may still be on its way. The worker repeats it
    /// while it has no answer.
    pub fn withdraw(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &WithdrawRequest,
    ) -> Result<(WithdrawReply, Vec<Action>), CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let mut actions = Vec::new();
        match self.transactions.ended(&txid) {
            Some(Ended::Applied) => Err(Fault::Invariant("a decided transaction is not withdrawn"))?,
            Some(Ended::Aborted) => {}
            None => self.drop_staged(sql, now, txid, &mut actions)?,
        }
        Ok((WithdrawReply {}, actions))
    }

    /// Command `apply`: answers, by an [`Action::Answer`], when the transaction has ended here.
    ///
    /// Idempotent, writes nothing itself: the decision comes with the reply to a request that is sent after this
    /// (trap 28). The worker repeats it while it has no answer; the sequencer sends it as a nudge.
    pub fn apply(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        call: CallId,
        request: ApplyRequest,
    ) -> Result<Vec<Action>, CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let mut actions = Vec::new();
        self.applying.push(Applying { call, since: now, txid, request });
        if self.transactions.is_staged(&txid) {
            self.channel.nudge();
        } else {
            // Whoever asks may not know that it has ended here: the sequencer, when either side has started anew.
            self.channel.owe_confirmation();
        }
        self.answer_applied(sql, &mut actions)?;
        self.pump(now, &mut actions);
        Ok(actions)
    }

    /// Answers the workers whose transactions are no longer staged, with what the rows say (rule 14).
    pub(super) fn answer_applied(&mut self, sql: &dyn Sql, actions: &mut Vec<Action>) -> Result<(), Fault> {
        let transactions = &self.transactions;
        let ended: Vec<Applying> =
            self.applying.extract_if(.., |applying| !transactions.is_staged(&applying.txid)).collect();
        for Applying { call, txid, request, .. } in ended {
            let reply = if transactions.ended(&txid) == Some(Ended::Aborted) {
                ApplyReply { aborted: true, metas: Vec::new() }
            } else {
                match metas(sql, &request.envelopes)? {
                    Some(metas) => ApplyReply { aborted: false, metas },
                    None => ApplyReply { aborted: true, metas: Vec::new() },
                }
            };
            actions.push(Action::Answer { call, reply: Ok(Reply::Apply(reply)) });
        }
        Ok(())
    }

    /// Removes what is staged under `txid`, and remembers that it ended.
    pub(super) fn drop_staged(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        txid: Txid,
        actions: &mut Vec<Action>,
    ) -> Result<(), Fault> {
        sql.transaction(&mut || {
            staged::delete(sql, &txid)?;
            self.transactions.end(sql, txid, Ended::Aborted)
        })?;
        self.unblock();
        self.answer_applied(sql, actions)?;
        self.pump(now, actions);
        Ok(())
    }
}

/// The metadata of stored envelopes, or `None` when one of them is not stored.
fn metas(
    sql: &dyn Sql,
    keys: &[EnvelopeKey],
) -> Result<Option<Vec<sealog_proto::backend::EnvelopeMeta>>, Fault> {
    keys.iter().map(|key| store::find(sql, &key.topic, &key.hash)).collect()
}
