//! The checks of a claim that only the backend applies, in this order: allowed, taken, too soon (API-297, 296, 298).
//!
//! Whether a handle is taken is asked of its Directory here, so that the answer names the right reason and index; what
//! makes it true for two claims at once is the claim's stage at the same Directory when the publish commits.

use std::collections::BTreeSet;

use bytes::Bytes;
use sealog_admission::{
    Rejection,
    identity::{IdentityRejection, State, handle},
};
use sealog_proto::{associations::IdentifierKind, internal::LookupKey};

use super::{Verdicts, now};
use crate::{config::Handles, deployment::Deployment, directories, error::Status};

/// A claim on its way into the store.
#[derive(Clone, Debug)]
pub(crate) struct Claiming {
    /// The index of its update in the request.
    pub(crate) index: u32,
    pub(crate) handle: String,
    /// 32 bytes.
    pub(crate) inbox_id: Bytes,
}

/// The claims of one publish.
pub(super) struct Claims {
    policy: Handles,
    now: u64,
    /// Claimed at lower indexes, by other inboxes: a request has one update of each inbox (API-233).
    earlier: BTreeSet<String>,
    /// Each with what is to be said of it unless its handle is taken.
    open: Vec<(Claiming, Result<(), Rejection>)>,
}

impl Claims {
    pub(super) fn new(policy: Handles) -> Self {
        Self { policy, now: now(), earlier: BTreeSet::new(), open: Vec::new() }
    }

    /// Judges a claim as far as no Directory is needed. `before` is the inbox as its history has it. Claims come in the
    /// order of their indexes.
    pub(super) fn add(&mut self, claiming: Claiming, before: &State) -> Result<(), Rejection> {
        handle::check_name(&claiming.handle, self.policy.min_name_length)?;
        if !self.earlier.insert(claiming.handle.clone()) {
            return Err(IdentityRejection::HandleTaken.into());
        }
        self.open.push((claiming, before.check_claim_time(self.now)));
        Ok(())
    }

    /// Judges the rest of all claims.
    pub(super) async fn finish(self, deployment: &Deployment, verdicts: &mut Verdicts) {
        let (claims, times): (Vec<Claiming>, Vec<_>) = self.open.into_iter().unzip();
        let taken = match are_taken(deployment, &claims).await {
            Ok(taken) => taken,
            Err(status) => return verdicts.outage(status),
        };
        for ((claiming, time), taken) in claims.iter().zip(times).zip(taken) {
            let verdict = if taken { Err(IdentityRejection::HandleTaken.into()) } else { time };
            if let Err(rejection) = verdict {
                verdicts.reject(claiming.index, &rejection);
            }
        }
    }
}

/// Of claims that were refused when the publish committed, the index of the first that another inbox holds.
pub(crate) async fn lowest_taken(
    deployment: &Deployment,
    claims: &[Claiming],
) -> Result<Option<u32>, Status> {
    let taken = are_taken(deployment, claims).await?;
    Ok(claims.iter().zip(taken).find(|(_, taken)| *taken).map(|(claiming, _)| claiming.index))
}

/// What a handle is looked up by.
pub(crate) fn handle_key(handle: &str) -> LookupKey {
    LookupKey { kind: IdentifierKind::Handle.into(), key: Bytes::copy_from_slice(handle.as_bytes()) }
}

/// Whether another inbox holds the handle of each claim.
async fn are_taken(deployment: &Deployment, claims: &[Claiming]) -> Result<Vec<bool>, Status> {
    let keys = claims.iter().map(|claiming| Some(handle_key(&claiming.handle))).collect();
    let holders = directories::look_up(deployment, keys).await?;
    let is_taken = |(claiming, holder): (&Claiming, Option<Bytes>)| {
        holder.is_some_and(|holder| holder != claiming.inbox_id)
    };
    Ok(claims.iter().zip(holders).map(is_taken).collect())
}
