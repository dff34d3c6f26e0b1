//! The checks of a claim that only the backend applies, in this order: allowed, taken, too soon (API-297, 296, 298).
//!
//! Whether a handle is taken is asked of its Directory here, so that the answer names the right reason and index; what
//! makes it true for two claims at once is the claim's stage at the same Directory when the publish commits.

use std::collections::BTreeSet;

use bytes::Bytes;
use sealog_admission::{
    Admitted,
    identity::{IdentityRejection, State, handle},
};
use sealog_log::directory;
use sealog_proto::{
    associations::IdentifierKind,
    internal::{LookupKey, LookupRequest},
};

use super::{now, wallets::Unanswered};
use crate::{deployment::Deployment, error::Status};

/// The claims of one publish.
pub(super) struct Claims<'a> {
    deployment: &'a Deployment,
    /// Claimed at lower indexes, by other inboxes: a request has one update of each inbox (API-233).
    earlier: BTreeSet<String>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(deployment: &'a Deployment) -> Self {
        Self { deployment, earlier: BTreeSet::new() }
    }

    /// Judges one claim. `before` is the inbox as its history has it.
    pub(super) async fn check(
        &mut self,
        handle: &str,
        envelope: &Admitted,
        before: &State,
    ) -> Result<(), Unanswered> {
        let policy = self.deployment.config.handles;
        handle::check_name(handle, policy.min_name_length).map_err(Unanswered::Rejected)?;
        if !self.earlier.insert(handle.to_owned()) {
            return Err(Unanswered::Rejected(IdentityRejection::HandleTaken.into()));
        }
        let holder = holder(self.deployment, handle).await.map_err(Unanswered::Outage)?;
        if holder.is_some_and(|inbox| inbox != envelope.topic.identifier()) {
            return Err(Unanswered::Rejected(IdentityRejection::HandleTaken.into()));
        }
        before.check_claim_time(now()).map_err(Unanswered::Rejected)
    }
}

/// A claim on its way into the store.
#[derive(Clone, Debug)]
pub(crate) struct Claiming {
    /// The index of its update in the request.
    pub(crate) index: u32,
    pub(crate) handle: String,
    /// 32 bytes.
    pub(crate) inbox_id: Bytes,
}

/// Of claims that were refused when the publish committed, the index of the first that another inbox holds.
pub(crate) async fn lowest_taken(
    deployment: &Deployment,
    claims: &[Claiming],
) -> Result<Option<u32>, Status> {
    for Claiming { index, handle, inbox_id } in claims {
        if holder(deployment, handle).await?.is_some_and(|holder| holder != inbox_id) {
            return Ok(Some(*index));
        }
    }
    Ok(None)
}

/// What a handle is looked up by.
pub(crate) fn handle_key(handle: &str) -> LookupKey {
    LookupKey { kind: IdentifierKind::Handle.into(), key: Bytes::copy_from_slice(handle.as_bytes()) }
}

/// The inbox that holds a handle.
async fn holder(deployment: &Deployment, handle: &str) -> Result<Option<Bytes>, Status> {
    let key = handle_key(handle);
    let directory = directory::partition_of(&key, deployment.config.directory_partitions);
    let reply = deployment.store.lookup(directory, LookupRequest { keys: vec![key] }).await?;
    Ok(reply.results.into_iter().next().and_then(|result| result.inbox_id))
}
