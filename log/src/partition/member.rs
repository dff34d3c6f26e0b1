//! A log partition as a participant: what it stages, and how a reply of the sequencer becomes rows.

use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::{EnvelopeKey, PushReply, ReserveReply, StageRequest, stage_reply::Verdict};

use super::outbox::Outbox;
use super::queue::{Queue, Waiting};
use super::watch::Watch;
use super::{Partition, staged, step, store};
use crate::participant::{self, Action, CallId, Judgement, Member, Reply, Seat};
use crate::{Fault, Nanos, Sql, Txid, migrate};

impl Member for Partition {
    const NAME: &'static str = "log partition";

    fn start(sql: &dyn Sql, index: u32) -> Result<Self, Fault> {
        migrate(sql, store::MIGRATIONS)?;
        let seat = Seat::take(sql, participant::log(index))?;
        let last = store::Last::load(sql)?;
        Ok(Self {
            watch: Watch::new(index, seat.progress.incarnation, last.pushed_through),
            seat,
            last,
            outbox: Outbox::load(sql)?,
            queue: Queue::default(),
            batch: Vec::new(),
            blocked: Vec::new(),
        })
    }

    fn seat(&mut self) -> &mut Seat {
        &mut self.seat
    }

    fn judge(&self, sql: &dyn Sql, part: &StageRequest) -> Result<Judgement, Fault> {
        let mut new = Vec::with_capacity(part.envelopes.len());
        for envelope in &part.envelopes {
            if store::find(sql, &envelope.topic, &envelope.hash)?.is_none() {
                new.push(envelope.clone());
            }
        }
        if new.is_empty() {
            return Ok(Judgement::Refuse(Verdict::Duplicate));
        }
        let mut conflict = false;
        for envelope in &new {
            if let Some(expected) = envelope.expected_head
                && store::head(sql, &envelope.topic)? != expected
            {
                return Ok(Judgement::Refuse(Verdict::HeadMoved));
            }
            conflict |= !self.seat.transactions.is_empty() && staged::holds(sql, envelope)?;
        }
        Ok(if conflict {
            Judgement::Refuse(Verdict::Conflict)
        } else {
            Judgement::Keep(StageRequest { envelopes: new, ..StageRequest::default() })
        })
    }

    fn keep(&self, sql: &dyn Sql, txid: &Txid, part: &StageRequest) -> Result<(), Fault> {
        for (ordinal, envelope) in (0..).zip(&part.envelopes) {
            staged::insert(sql, txid, ordinal, envelope)?;
        }
        Ok(())
    }

    fn discard(&self, sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
        staged::delete(sql, txid)
    }

    fn count(&self, sql: &dyn Sql, txid: &Txid) -> Result<u32, Fault> {
        staged::count(sql, txid)
    }

    fn metas(&self, sql: &dyn Sql, envelopes: &[EnvelopeKey]) -> Result<Option<Vec<EnvelopeMeta>>, Fault> {
        envelopes.iter().map(|key| store::find(sql, &key.topic, &key.hash)).collect()
    }

    fn step(&mut self, sql: &dyn Sql, reply: &ReserveReply, actions: &mut Vec<Action>) -> Result<(), Fault> {
        // A cut list comes without ids: its publishes wait for the rest of it (rule 5).
        let asked: u32 = self.batch.iter().map(Waiting::count).sum();
        if reply.count < asked {
            self.requeue();
        }
        let batch = std::mem::take(&mut self.batch);
        let input = step::Input { before: self.last, clock: self.seat.progress.clock, reply, batch: &batch };
        let mut news = self.watch.news();
        let outcome = step::run(sql, input, &mut self.seat.transactions, &mut news)?;
        let gathered = news.finish();
        self.last = outcome.last;
        self.watch.stored(gathered, self.last.pushed_through)?;
        for directory in outcome.owed {
            self.outbox.owe(directory);
        }
        for (waiting, outcome) in batch.into_iter().zip(outcome.publishes) {
            match outcome {
                step::Publish::Done(reply) => {
                    actions.push(Action::Answer { call: waiting.call, reply: Ok(Reply::Store(reply)) });
                }
                step::Publish::Blocked => self.blocked.push(waiting),
            }
        }
        Ok(())
    }

    fn requeue(&mut self) {
        self.queue.put_back(std::mem::take(&mut self.batch));
    }

    /// Whoever waited for a transaction gets another turn, ahead of later publishes.
    fn unblock(&mut self) {
        self.queue.put_back(std::mem::take(&mut self.blocked));
    }

    fn wants_ids(&self) -> bool {
        !self.queue.is_empty()
    }

    fn take_batch(&mut self) -> u32 {
        self.batch = self.queue.take_batch();
        self.batch.iter().map(Waiting::count).sum()
    }

    fn is_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    fn take_late(&mut self, limit: Nanos) -> Vec<CallId> {
        let mut late = self.queue.take_expired(limit);
        late.extend(self.blocked.extract_if(.., |waiting| waiting.since < limit));
        late.into_iter().map(|waiting| waiting.call).collect()
    }

    fn take_all(&mut self) -> Vec<CallId> {
        self.requeue();
        self.unblock();
        self.queue.take_all().into_iter().map(|waiting| waiting.call).collect()
    }

    fn carry_on(&mut self, sql: &dyn Sql, now: Nanos, actions: &mut Vec<Action>) -> Result<(), Fault> {
        self.outbox.send(sql, now, actions)?;
        self.watch.pump(now, actions)
    }

    fn owes(&self, now: Nanos) -> Option<Nanos> {
        [self.outbox.alarm(now), self.watch.owes(now)].into_iter().flatten().min()
    }

    fn rang(&mut self, sql: &dyn Sql, now: Nanos) -> Result<(), Fault> {
        self.watch.alarm(sql, now)?;
        if let Some(mark) = self.watch.settle(self.last.highest)? {
            self.last.pushed_through = mark;
            self.last.save(sql)?;
        }
        Ok(())
    }

    fn acknowledged(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        session: &[u8],
        push: (u64, u64),
        reply: Option<&PushReply>,
    ) -> Result<(), Fault> {
        self.watch.pushed(sql, now, session, push, reply)
    }

    fn delivered(
        &mut self,
        sql: &dyn Sql,
        directory: u32,
        through: u64,
        delivered: bool,
    ) -> Result<(), Fault> {
        self.outbox.delivered(sql, directory, through, delivered)
    }
}
