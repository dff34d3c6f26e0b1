//! The checks of a publish that need more than the envelopes' own bytes: the clock, an inbox's history, a chain, the
//! handles of other inboxes (contract section 3.1).
//!
//! The checks are pure and live in `sealog-admission`; here is what feeds them. A stored duplicate passes all of them
//! unseen (API-222).
//!
//! # Which failure is told
//! The one at the lowest index (API-223). A failure that is certain is told even when another envelope has no verdict
//! for want of a chain or of the store: the client can mend it, and the rest then gets its turn.

mod handles;
pub(crate) mod history;
mod identity;
mod key_packages;
mod verdicts;
mod wallets;

use bytes::Bytes;
use sealog_admission::{Admitted, Publish};
use sealog_proto::{Kind, internal::AssociationChange};

use crate::deployment::Deployment;
pub(crate) use handles::{Claiming, handle_key, lowest_taken};
pub(crate) use verdicts::Verdicts;

/// What goes into the store beside an envelope that needed such a check.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Extra {
    /// The head of the history that an identity update was judged by (API-232).
    pub(crate) expected_head: Option<u64>,
    /// What its signatures established.
    pub(crate) facts: Option<Bytes>,
    /// What the Directories hear of it.
    pub(crate) changes: Vec<AssociationChange>,
    /// The handle that it claims.
    pub(crate) handle: Option<String>,
}

/// Judges distinct envelopes. The answer has one entry for each; an envelope that is refused, or has no verdict, is
/// in `verdicts`.
pub(crate) async fn check(deployment: &Deployment, publish: &Publish, verdicts: &mut Verdicts) -> Vec<Extra> {
    let mut extras = vec![Extra::default(); publish.envelopes.len()];
    let has = |kind| publish.envelopes.iter().any(|envelope| envelope.topic.kind() == kind);
    let mut work = Work { left: deployment.config.limits.max_signatures_per_request };
    if has(Kind::KeyPackage) {
        key_packages::check(deployment, publish, &mut work, verdicts).await;
    }
    if has(Kind::IdentityUpdate) {
        identity::check(deployment, publish, &mut work, verdicts, &mut extras).await;
    }
    extras
}

/// The envelopes of one kind: each with its place, and its first index in the request.
fn of_kind(publish: &Publish, kind: Kind) -> impl Iterator<Item = (usize, u32, &Admitted)> {
    let indexed = publish.envelopes.iter().zip(&publish.first_indexes).enumerate();
    indexed
        .filter(move |(_, (envelope, _))| envelope.topic.kind() == kind)
        .map(|(place, (envelope, index))| (place, *index, envelope))
}

/// Signatures that the request may still make us verify. Each envelope is bounded by itself; many of them are a lot of
/// work all the same.
struct Work {
    left: usize,
}

impl Work {
    /// Takes `signatures` off, if so many are left.
    fn take(&mut self, signatures: usize) -> bool {
        match self.left.checked_sub(signatures) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

/// The clock, in nanoseconds since the Unix epoch.
fn now() -> u64 {
    worker::Date::now().as_millis() * 1_000_000
}
