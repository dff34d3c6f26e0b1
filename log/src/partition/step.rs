//! The step: one reply of the sequencer becomes rows, all or nothing (rule 6).

use std::collections::BTreeSet;

use sealog_proto::internal::{Decided, NewEnvelope, ReserveReply, StoreReply, store_reply::Refusal};

use super::queue::Waiting;
use super::rows::{Rows, Written};
use super::staged;
use super::store::{self, Last};
use super::watch::News;
use crate::participant::{Ended, Transactions};
use crate::{Fault, Nanos, Sql};

/// What a step works on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    pub(super) before: Last,
    /// The participant's clock.
    pub(super) clock: Nanos,
    pub(super) reply: &'a ReserveReply,
    pub(super) batch: &'a [Waiting],
}

/// What became of a publish.
#[derive(Debug)]
pub(super) enum Publish {
    Done(StoreReply),
    /// An undecided transaction holds an envelope or an inbox of it.
    Blocked,
}

/// What a step did.
#[derive(Debug)]
pub(super) struct Outcome {
    /// One per publish of the batch, in order.
    pub(super) publishes: Vec<Publish>,
    pub(super) last: Last,
    /// The Directories that are to hear of what was stored.
    pub(super) owed: BTreeSet<u32>,
}

/// Runs the step. An error leaves storage as it was, and ends the instance.
pub(super) fn run(
    sql: &dyn Sql,
    input: Input<'_>,
    transactions: &mut Transactions,
    news: &mut News<'_>,
) -> Result<Outcome, Fault> {
    let Input { before, clock, reply, batch } = input;
    check(&input)?;
    let mut outcome = Outcome { publishes: Vec::new(), last: before, owed: BTreeSet::new() };
    sql.transaction(&mut || {
        for decided in &reply.decided {
            if let Some(written) = apply(sql, clock, decided, transactions, news)? {
                outcome.stored(&written, decided.server_ns);
            }
        }
        let locked = !transactions.is_empty();
        let mut rows = Rows::new(sql, reply.server_ns, reply.first_id, news);
        let verdicts = batch
            .iter()
            .map(|waiting| publish(&mut rows, &waiting.request.envelopes, locked))
            .collect::<Result<Vec<_>, Fault>>()?;
        let written = rows.finish()?;
        let ids_end = reply.first_id + u64::from(reply.count);
        Fault::assert(written.next <= ids_end, "a step uses no more ids than it was given")?;
        outcome.stored(&written, reply.server_ns);
        let mut metas = written.metas.into_iter();
        outcome.publishes = batch
            .iter()
            .zip(verdicts)
            .map(|(waiting, verdict)| {
                verdict.unwrap_or_else(|| {
                    let metas = metas.by_ref().take(waiting.request.envelopes.len()).collect();
                    Publish::Done(StoreReply { metas, refusal: Refusal::Unspecified.into() })
                })
            })
            .collect();
        if outcome.last == before {
            return Ok(());
        }
        outcome.last.pushed_through = news.mark(outcome.last.highest)?;
        outcome.last.save(sql)
    })?;
    Ok(outcome)
}

impl Outcome {
    /// Takes in what was written under this time.
    fn stored(&mut self, written: &Written, server_ns: Nanos) {
        if let Some(highest) = written.highest {
            self.last = Last { highest, server_ns: self.last.server_ns.max(server_ns), ..self.last };
        }
        self.owed.extend(&written.owed);
    }
}

/// What must be true of a reply before anything is made of it (assertions b, d, g).
fn check(input: &Input<'_>) -> Result<(), Fault> {
    let Input { before, reply, .. } = input;
    Fault::assert(reply.count == 0 || reply.first_id > before.highest, "new ids lie above every stored id")?;
    Fault::assert(reply.server_ns >= before.server_ns, "time does not go back")?;
    let rising = reply.decided.is_sorted_by(|one, next| one.position < next.position);
    Fault::assert(rising, "decisions come in the order of their positions")?;
    for decided in &reply.decided {
        let end = decided.first_id + u64::from(decided.count);
        Fault::assert(end <= reply.first_id, "every decision lies below the new ids")?;
        let in_place = decided.count == 0 || decided.position <= decided.first_id;
        Fault::assert(in_place, "a position is the lowest id of its transaction")?;
    }
    Ok(())
}

/// Turns the staged rows of a decided transaction into rows of the log; `None` when it was applied before.
fn apply(
    sql: &dyn Sql,
    clock: Nanos,
    decided: &Decided,
    transactions: &mut Transactions,
    news: &mut News<'_>,
) -> Result<Option<Written>, Fault> {
    let Some(txid) = transactions.decided(decided, clock)? else { return Ok(None) };
    let envelopes = staged::of(sql, &txid)?;
    Fault::assert(envelopes.len() as u64 == u64::from(decided.count), "what was staged is what was decided")?;
    for envelope in &envelopes {
        if let Some(expected) = envelope.expected_head {
            let head = store::head(sql, &envelope.topic)?;
            Fault::assert(head == expected, "a staged update finds the head that it was judged on")?;
        }
    }
    let mut rows = Rows::new(sql, decided.server_ns, decided.first_id, news);
    for envelope in &envelopes {
        rows.push(envelope)?;
    }
    let written = rows.finish()?;
    Fault::assert(written.stored == envelopes.len(), "a staged envelope is not stored yet")?;
    staged::delete(sql, &txid)?;
    transactions.end(sql, txid, Ended::Applied)?;
    Ok(Some(written))
}

/// Enters the rows of one publish, or says what became of it instead. Every check precedes its first row, so a refusal
/// leaves none.
///
/// Duplicates are looked for before the head is checked: a retry of stored bytes succeeds although the head has moved
/// since, because it moved by these very bytes (API-222, trap 18).
fn publish<'a>(
    rows: &mut Rows<'a, '_, '_>,
    envelopes: &'a [NewEnvelope],
    locked: bool,
) -> Result<Option<Publish>, Fault> {
    let mut moved = false;
    for envelope in envelopes {
        if !locked && envelope.expected_head.is_none() {
            continue;
        }
        // What earlier publishes of the batch leave is what counts (trap 17).
        let sql = rows.flushed()?;
        if store::find(sql, &envelope.topic, &envelope.hash)?.is_some() {
            continue;
        }
        if locked && staged::holds(sql, envelope)? {
            return Ok(Some(Publish::Blocked));
        }
        if let Some(expected) = envelope.expected_head {
            moved |= store::head(sql, &envelope.topic)? != expected;
        }
    }
    if moved {
        let reply = StoreReply { refusal: Refusal::HeadMoved.into(), ..Default::default() };
        return Ok(Some(Publish::Done(reply)));
    }
    for envelope in envelopes {
        rows.push(envelope)?;
    }
    Ok(None)
}
