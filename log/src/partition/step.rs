//! The step: one reply of the sequencer becomes rows, all or nothing (rule 6).

use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::{NewEnvelope, ReserveReply, StoreReply, store_reply::Refusal};

use super::queue::Waiting;
use super::store::{self, Progress};
use crate::{Fault, Nanos, SECOND, Sql};

/// What a step did.
#[derive(Debug)]
pub(super) struct Outcome {
    /// One per publish of the batch, in order.
    pub(super) replies: Vec<StoreReply>,
    pub(super) progress: Progress,
    /// It stored something: there is a flush to wait for.
    pub(super) wrote: bool,
}

/// Runs the step. An error leaves storage as it was, and ends the instance.
pub(super) fn run(
    sql: &dyn Sql,
    before: &Progress,
    applied: u64,
    reply: &ReserveReply,
    batch: &[Waiting],
) -> Result<Outcome, Fault> {
    Fault::assert(reply.first_id >= applied, "replies move forward")?;
    Fault::assert(reply.count == 0 || reply.first_id > before.highest, "new ids lie above every stored id")?;
    Fault::assert(reply.server_ns >= before.server_ns, "time does not go back")?;
    // Nothing can be staged yet, so nothing can have been decided (assertion e).
    Fault::assert(reply.decided.is_empty(), "a decided transaction is staged or finished")?;

    let mut outcome = Outcome { replies: Vec::new(), progress: before.clone(), wrote: false };
    sql.transaction(&mut || {
        outcome.replies = Vec::with_capacity(batch.len());
        let mut next = reply.first_id;
        for waiting in batch {
            outcome.replies.push(publish(sql, reply.server_ns, &mut next, &waiting.request.envelopes)?);
        }
        let ids_end = reply.first_id + u64::from(reply.count);
        Fault::assert(next <= ids_end, "a step uses no more ids than it was given")?;
        outcome.wrote = next > reply.first_id;
        if outcome.wrote {
            outcome.progress.highest = next - 1;
            outcome.progress.server_ns = reply.server_ns;
        }
        if outcome.wrote || reply.epoch > before.epoch {
            outcome.progress.epoch = reply.epoch;
            outcome.progress.save(sql)?;
        }
        Ok(())
    })?;
    Ok(outcome)
}

/// Stores one publish. Every check precedes its first row, so a refusal leaves none.
///
/// Duplicates are looked for before the head is checked: a retry of stored bytes succeeds although the head has moved
/// since, because it moved by these very bytes (API-222, trap 18).
fn publish(
    sql: &dyn Sql,
    server_ns: Nanos,
    next: &mut u64,
    envelopes: &[NewEnvelope],
) -> Result<StoreReply, Fault> {
    for envelope in envelopes {
        let Some(expected) = envelope.expected_head else { continue };
        let stored = store::find(sql, envelope)?.is_some();
        if !stored && store::head(sql, &envelope.topic)? != expected {
            return Ok(StoreReply { refusal: Refusal::HeadMoved.into(), ..Default::default() });
        }
    }
    let metas = envelopes
        .iter()
        .map(|envelope| insert(sql, server_ns, next, envelope))
        .collect::<Result<Vec<_>, Fault>>()?;
    Ok(StoreReply { metas, refusal: Refusal::Unspecified.into() })
}

/// Stores one envelope under the next id, or finds the row that it is a duplicate of. Either way the answer is what the
/// row says.
fn insert(
    sql: &dyn Sql,
    server_ns: Nanos,
    next: &mut u64,
    envelope: &NewEnvelope,
) -> Result<EnvelopeMeta, Fault> {
    let expiry_ns = match envelope.retention_seconds {
        0 => 0,
        // OPS-020. The settings are checked so that this holds for centuries.
        seconds => seconds
            .checked_mul(SECOND)
            .and_then(|retention| server_ns.checked_add(retention))
            .filter(|expiry| i64::try_from(*expiry).is_ok())
            .ok_or(Fault::Invariant("an expiry fits a signed 64-bit time"))?,
    };
    let meta = store::meta(envelope, *next, server_ns, expiry_ns);
    if store::insert(sql, envelope, *next, server_ns, expiry_ns)? {
        store::raise_head(sql, &envelope.topic, *next)?;
        *next += 1;
        return Ok(meta);
    }
    store::find(sql, envelope)?
        .ok_or(Fault::Invariant("an envelope is stored or a duplicate of a stored one"))
}
