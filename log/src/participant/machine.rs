//! [`Machine`], made of what a [`Member`] does in its own way.

use sealog_proto::internal::{
    ApplyRequest, Failure, PushReply, ReserveReply, StageReply, StageRequest, WithdrawReply, WithdrawRequest,
    failure::Kind, stage_reply::Verdict,
};

use super::seat::Applying;
use super::{Action, CallId, Ended, Machine, Member, Taken};
use crate::{CommandError, Fault, Nanos, Sql, Txid};

impl<M: Member> Machine for M {
    const NAME: &'static str = <M as Member>::NAME;

    fn load(sql: &dyn Sql, now: Nanos, index: u32) -> Result<(Self, Vec<Action>), Fault> {
        let mut this = Self::start(sql, index)?;
        let actions = this.alarm(sql, now)?; // nothing, when nothing is staged or owed
        Ok((this, actions))
    }

    fn stage(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &StageRequest,
    ) -> Result<(StageReply, Vec<Action>), CommandError> {
        let reply = self.stage_part(sql, now, request)?;
        let mut actions = Vec::new();
        if reply.verdict() == Verdict::Conflict {
            // The holder may have been decided long ago, or be dead.
            self.seat().channel.nudge();
            actions.extend(self.seat().transactions.ask_overdue(now));
        }
        self.pump(now, &mut actions);
        Ok((reply, actions))
    }

    fn withdraw(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &WithdrawRequest,
    ) -> Result<(WithdrawReply, Vec<Action>), CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let mut actions = Vec::new();
        match self.seat().transactions.ended(&txid) {
            Some(Ended::Applied) => Err(Fault::Invariant("a decided transaction is not withdrawn"))?,
            Some(Ended::Aborted) => {}
            None => self.abort(sql, txid, &mut actions)?,
        }
        self.pump(now, &mut actions);
        Ok((WithdrawReply {}, actions))
    }

    fn apply(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        call: CallId,
        request: ApplyRequest,
    ) -> Result<Vec<Action>, CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let seat = self.seat();
        if seat.transactions.is_staged(&txid) {
            seat.channel.nudge();
        } else {
            // Whoever asks may not know that it has ended here: the sequencer, when either side has started anew.
            seat.channel.owe_confirmation();
        }
        seat.applying.push(Applying { call, since: now, txid, request });
        let mut actions = Vec::new();
        self.answer_applied(sql, &mut actions)?;
        self.pump(now, &mut actions);
        Ok(actions)
    }

    fn reserved(&mut self, sql: &dyn Sql, now: Nanos, reply: &ReserveReply) -> Result<Vec<Action>, Fault> {
        let mut actions = Vec::new();
        let epoch_seen = self.seat().progress.epoch;
        match self.seat().channel.take(reply, epoch_seen) {
            Taken::Stale => return Ok(actions),
            Taken::Void => self.requeue(),
            Taken::Current => {
                Fault::assert(reply.first_id >= self.seat().channel.applied(), "replies move forward")?;
                self.seat().tick(now);
                self.step(sql, reply, &mut actions)?;
                self.seat().raise_epoch(sql, reply.epoch)?;
                self.seat().channel.stepped(reply, epoch_seen);
                if !reply.decided.is_empty() {
                    self.unblock();
                }
                self.answer_applied(sql, &mut actions)?;
                self.carry_on(sql, now, &mut actions)?;
            }
        }
        self.pump(now, &mut actions);
        Ok(actions)
    }

    fn reserve_failed(&mut self, now: Nanos, number: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.seat().channel.failed(now, number) {
            self.requeue();
            self.pump(now, &mut actions);
        }
        actions
    }

    fn resolved(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        txid: Txid,
        decided: Option<bool>,
    ) -> Result<Vec<Action>, Fault> {
        let mut actions = Vec::new();
        let seat = self.seat();
        seat.transactions.resolved(&txid);
        if seat.transactions.is_staged(&txid) {
            match decided {
                Some(true) => seat.channel.nudge(),
                Some(false) => self.abort(sql, txid, &mut actions)?,
                None => {}
            }
        }
        self.pump(now, &mut actions);
        Ok(actions)
    }

    fn associated(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        directory: u32,
        through: u64,
        delivered: bool,
    ) -> Result<Vec<Action>, Fault> {
        let mut actions = Vec::new();
        self.delivered(sql, directory, through, delivered)?;
        self.carry_on(sql, now, &mut actions)?;
        self.pump(now, &mut actions);
        Ok(actions)
    }

    fn pushed(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        session: &[u8],
        push: (u64, u64),
        reply: Option<&PushReply>,
    ) -> Result<Vec<Action>, Fault> {
        let mut actions = Vec::new();
        self.acknowledged(sql, now, session, push, reply)?;
        self.carry_on(sql, now, &mut actions)?;
        self.pump(now, &mut actions);
        Ok(actions)
    }

    fn wake(&mut self, now: Nanos) -> Vec<Action> {
        let mut actions = Vec::new();
        self.seat().channel.wake();
        if self.somebody_waits() {
            self.seat().channel.nudge();
        }
        self.pump(now, &mut actions);
        actions
    }

    fn alarm(&mut self, sql: &dyn Sql, now: Nanos) -> Result<Vec<Action>, Fault> {
        let seat = self.seat();
        seat.alarm.rang();
        if !seat.transactions.is_empty() {
            seat.channel.nudge();
        }
        let mut actions = seat.transactions.ask_overdue(now);
        self.rang(sql, now)?;
        self.carry_on(sql, now, &mut actions)?;
        self.pump(now, &mut actions);
        Ok(actions)
    }

    fn abandon(mut self) -> Vec<Action> {
        let mut calls = self.take_all();
        calls.extend(self.seat().applying.drain(..).map(|applying| applying.call));
        let failure = Failure {
            kind: Kind::Unavailable.into(),
            message: format!("the {} starts anew; publish the same bytes again", <M as Member>::NAME),
        };
        calls.into_iter().map(|call| Action::Answer { call, reply: Err(failure.clone()) }).collect()
    }
}
