//! Identity updates: judged by the whole history of their inbox (IDENT-005, API-232 to 234), and by their handle.

use bytes::Bytes;
use prost::Message;
use sealog_admission::{
    Admitted, Publish, Rejection,
    identity::{self, Decision, Effects, IdentityRejection, Plan, Rules},
};
use sealog_log::directory;
use sealog_proto::{
    Kind,
    associations::IdentityUpdate,
    backend::{ClientEnvelope, client_envelope::Payload},
    internal::{self, AssociationChange, history_reply},
};

use super::{
    Extra, Verdicts, Work,
    handles::{Claiming, Claims},
    history::{self, Reading},
    of_kind,
    wallets::{self, Unanswered},
};
use crate::{config::Config, deployment::Deployment};

/// One update on its way through the checks.
struct Update<'a> {
    /// Its place among the envelopes.
    place: usize,
    /// Its index in the request.
    index: u32,
    envelope: &'a Admitted,
    reading: Reading,
    /// Its structure and the signatures that need no chain: verified with the first page of the history, which tells
    /// whether that work is needed at all.
    plan: Option<Plan>,
    /// Nothing more is to be found out: it is a duplicate, or it has failed.
    settled: bool,
}

/// Judges the identity updates of a publish, and enters into `extras` what is stored with them.
pub(super) async fn check(
    deployment: &Deployment,
    publish: &Publish,
    work: &mut Work,
    verdicts: &mut Verdicts,
    extras: &mut [Extra],
) {
    let mut updates: Vec<Update<'_>> = of_kind(publish, Kind::IdentityUpdate).map(begin).collect();
    if !read_histories(deployment, &mut updates, work, verdicts).await {
        return;
    }
    let mut claims = Claims::new(deployment.config.handles);
    for update in updates {
        let index = update.index;
        if verdicts.is_moot(index) {
            break;
        }
        match decide(deployment, &mut claims, update).await {
            Ok((place, extra)) => extras[place] = extra,
            Err(Unanswered::Rejected(rejection)) => verdicts.reject(index, &rejection),
            Err(Unanswered::Outage(status)) => verdicts.outage(status),
        }
    }
    claims.finish(deployment, verdicts).await;
}

fn begin((place, index, envelope): (usize, u32, &Admitted)) -> Update<'_> {
    let hash = Bytes::copy_from_slice(&envelope.canonical.hash);
    let reading = Reading::new(envelope.topic.clone(), hash);
    Update { place, index, envelope, reading, plan: None, settled: false }
}

/// Reads and folds all histories. What is left in `updates` is new and has its plan. False: the store does not answer.
async fn read_histories(
    deployment: &Deployment,
    updates: &mut Vec<Update<'_>>,
    work: &mut Work,
    verdicts: &mut Verdicts,
) -> bool {
    loop {
        updates.retain(|update| !update.settled && !verdicts.is_moot(update.index));
        let pages = history::next_pages(deployment, updates.iter().map(|update| &update.reading)).await;
        let pages = match pages {
            Ok(pages) if pages.is_empty() => return true,
            Ok(pages) => pages,
            Err(status) => {
                verdicts.outage(status);
                return false;
            }
        };
        for (at, page) in pages {
            let update = &mut updates[at];
            if update.plan.is_none() {
                match open(&deployment.config, update.envelope, work, &page) {
                    Ok(plan) => update.plan = plan,
                    Err(rejection) => verdicts.reject(update.index, &rejection),
                }
                update.settled = update.plan.is_none();
            }
            if !update.settled
                && let Err(status) = history::fold(deployment, &mut update.reading, page).await
            {
                verdicts.outage(status);
                update.settled = true;
            }
        }
    }
}

/// What the first page of the history decides: nothing more is checked of a duplicate (`None`), and nothing is added to
/// a full log. Otherwise the update's own bytes are judged.
fn open(
    config: &Config,
    envelope: &Admitted,
    work: &mut Work,
    page: &history_reply::Inbox,
) -> Result<Option<Plan>, Rejection> {
    if page.stored {
        return Ok(None);
    }
    let limits = &config.limits;
    if page.count >= limits.max_identity_entries {
        return Err(IdentityRejection::LogFull { max: limits.max_identity_entries }.into());
    }
    let rules = Rules {
        max_signatures: limits.publish.max_update_actions.min(work.left),
        max_wallet_signatures: limits.publish.max_wallet_signatures,
        handles: config.handles.on,
    };
    let plan = identity::plan(&decoded(envelope), &rules)?;
    work.take(plan.signature_count());
    Ok(Some(plan))
}

/// The rest: chains, the state machine, the handle.
async fn decide(
    deployment: &Deployment,
    claims: &mut Claims,
    update: Update<'_>,
) -> Result<(usize, Extra), Unanswered> {
    let Update { place, plan, reading, .. } = update;
    let plan = plan.expect("every update that is left has its plan");
    let answers = wallets::verdicts(&deployment.verifier, plan.questions(), true).await?;
    let Decision { facts, effects: Effects { changes, claim } } =
        identity::decide(&plan, &answers, &reading.state).map_err(Unanswered::Rejected)?;
    if let Some(handle) = claim.clone() {
        let inbox_id = Bytes::copy_from_slice(update.envelope.topic.identifier());
        let claiming = Claiming { index: update.index, handle, inbox_id };
        claims.add(claiming, &reading.state).map_err(Unanswered::Rejected)?;
    }
    let directories = deployment.config.directory_partitions;
    let changes = changes.into_iter().map(|change| {
        let key = internal::LookupKey { kind: change.key.kind.into(), key: change.key.key };
        let directory = directory::partition_of(&key, directories);
        AssociationChange { directory, key: Some(key), live: change.live }
    });
    let extra = Extra {
        expected_head: Some(reading.after),
        facts: Some(facts),
        changes: changes.collect(),
        handle: claim,
    };
    Ok((place, extra))
}

/// The update inside the envelope.
fn decoded(envelope: &Admitted) -> IdentityUpdate {
    let decoded = ClientEnvelope::decode(envelope.canonical.body.clone()).unwrap_or_default();
    match decoded.payload {
        Some(Payload::IdentityUpdate(update)) => update,
        _ => IdentityUpdate::default(),
    }
}
