//! Reading the histories of inboxes, page by page, each folded as it comes: 256 entries of 1 MiB do not fit a worker's
//! memory.
//!
//! A log only grows at its end, so pages read one after the other are what one read at the time of the last would have
//! shown: that is the snapshot of API-232, and its last entry the head that the store must still have.

use bytes::Bytes;
use prost::Message;
use sealog_admission::{
    identity::{self, Change, FoldError, Rules, State},
    inbox_id_text,
};
use sealog_proto::{
    Topic,
    backend::{ClientEnvelope, client_envelope::Payload},
    internal::{HistoryRequest, history_reply, history_request},
    status::Code,
};
use worker::console_error;

use super::wallets;
use crate::{deployment::Deployment, error::Status, fan_out::Spread, services::call_all};

/// Bytes of entries that one wave of calls may bring.
const WAVE_BYTES: u64 = 8 << 20;

/// One inbox whose history is being read.
pub(crate) struct Reading {
    pub(crate) topic: Topic,
    /// An envelope that may be stored already.
    hash: Bytes,
    inbox_id: String,
    /// What the entries that were folded add up to.
    pub(crate) state: State,
    /// The last entry that was folded.
    pub(super) after: u64,
    /// Everything up to the head was folded.
    done: bool,
}

impl Reading {
    /// The log of an inbox, for an envelope of that hash. Its stored entries spell the id in lowercase, however a new
    /// update spells it.
    pub(super) fn new(topic: Topic, hash: Bytes) -> Self {
        let inbox_id = inbox_id_text(topic.identifier());
        Self { topic, hash, inbox_id, state: State::default(), after: 0, done: false }
    }

    /// The whole log of an inbox, for its own sake.
    pub(crate) fn of(topic: Topic) -> Self {
        Self::new(topic, Bytes::new())
    }
}

/// Reads the next page of each reading that is not done, of as many as one wave takes: one call per partition. The
/// pages come with their reading's place.
pub(crate) async fn next_pages<'a>(
    deployment: &Deployment,
    readings: impl Iterator<Item = &'a Reading>,
) -> Result<Vec<(usize, history_reply::Inbox)>, Status> {
    let unread = readings.enumerate().filter(|(_, reading)| !reading.done);
    let questions = unread.map(|(place, reading)| {
        let inbox = history_request::Inbox {
            topic: reading.topic.as_bytes().clone(),
            after: reading.after,
            hash: reading.hash.clone(),
        };
        (reading.topic.partition(deployment.config.log_partitions), place, inbox)
    });
    let mut spread = Spread::new(questions, |inboxes| HistoryRequest { inboxes, max_bytes: 0 }).first_wave();
    let width = spread.calls.len().max(1);
    spread.calls.iter_mut().for_each(|call| call.request.max_bytes = WAVE_BYTES / width as u64);
    let replies =
        call_all(&spread.calls, |partition, request| deployment.store.history(partition, request)).await?;
    Ok(spread.answers(replies.into_iter().map(|reply| reply.inboxes))?)
}

/// Folds one page into its inbox's state, and tells what each entry changed. An error is no fault of the request: the
/// log itself does not apply.
pub(crate) async fn fold(
    deployment: &Deployment,
    reading: &mut Reading,
    page: history_reply::Inbox,
) -> Result<Vec<(u64, Change)>, Status> {
    let mut changes = Vec::new();
    for entry in page.entries {
        let facts = match (entry.facts, entry.body) {
            (Some(facts), _) => facts,
            (None, Some(body)) => verify_again(deployment, &reading.state, body).await?,
            (None, None) => return Err(Status::invariant()),
        };
        let effects = reading.state.fold(&reading.inbox_id, entry.server_ns, &facts);
        let effects = effects.map_err(|error| match error {
            FoldError::UnknownVersion(_) => Status::new(
                Code::Unavailable,
                "the inbox's history was written by a newer version of the backend: repeat the request",
            ),
            error => {
                console_error!("a stored identity log does not apply: {error}");
                Status::invariant()
            }
        })?;
        changes.extend(effects.changes.into_iter().map(|change| (entry.sequence_id, change)));
        reading.after = entry.sequence_id;
    }
    reading.done = !page.more;
    Ok(changes)
}

/// The facts of an entry that was stored without: its signatures are verified once more. Blocks of smart contract
/// wallets are as old as the entry, which is no reason against them.
async fn verify_again(deployment: &Deployment, state: &State, body: Bytes) -> Result<Bytes, Status> {
    let envelope = ClientEnvelope::decode(body).map_err(|_| Status::invariant())?;
    let Some(Payload::IdentityUpdate(update)) = envelope.payload else { return Err(Status::invariant()) };
    let plan = identity::plan(&update, &Rules::STORED).map_err(|_| Status::invariant())?;
    let answers = wallets::verdicts(&deployment.verifier, plan.questions(), false).await;
    let answers = answers.map_err(|unanswered| match unanswered {
        wallets::Unanswered::Outage(status) => status,
        wallets::Unanswered::Rejected(_) => Status::invariant(),
    })?;
    let decision = identity::decide(&plan, &answers, state).map_err(|_| Status::invariant())?;
    Ok(decision.facts)
}
