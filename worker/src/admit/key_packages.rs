//! Key packages: signatures and lifetime (JOIN-007, JOIN-008).

use bytes::Bytes;
use prost::Message;
use sealog_admission::{Admitted, Publish, Rejection, key_package};
use sealog_proto::{
    Kind,
    backend::{ClientEnvelope, client_envelope::Payload},
    internal::{EnvelopeKey, KnownRequest},
};

use super::{Verdicts, Work, now, of_kind};
use crate::{deployment::Deployment, error::Status, fan_out::Spread, services::call_all};

/// The signatures of one key package: the leaf's and its own.
const SIGNATURES: usize = 2;

/// Judges the key packages of a publish. The store is asked only about those that fail: one that is stored already
/// is a duplicate, whatever its lifetime says by now (API-222).
pub(super) async fn check(
    deployment: &Deployment,
    publish: &Publish,
    work: &mut Work,
    verdicts: &mut Verdicts,
) {
    let max = deployment.config.limits.max_signatures_per_request;
    let now_seconds = now() / 1_000_000_000;
    let packages = of_kind(publish, Kind::KeyPackage);
    let mut failed = Vec::new();
    for (_, index, envelope) in packages.take_while(|(_, index, _)| !verdicts.is_moot(*index)) {
        let verdict = if work.take(SIGNATURES) {
            key_package::check(&serialized(envelope), now_seconds)
        } else {
            Err(Rejection::TooMuchWork { max })
        };
        failed.extend(verdict.err().map(|rejection| Failed { index, envelope, rejection }));
    }
    if failed.is_empty() {
        return;
    }
    match known(deployment, &failed).await {
        Ok(known) => {
            let refused = failed.iter().zip(known).filter(|(_, known)| !known);
            refused.for_each(|(failed, _)| verdicts.reject(failed.index, &failed.rejection));
        }
        Err(status) => verdicts.outage(status),
    }
}

/// A package that is refused unless it is stored already.
struct Failed<'a> {
    index: u32,
    envelope: &'a Admitted,
    rejection: Rejection,
}

/// Whether each is stored, in order. One call per partition.
async fn known(deployment: &Deployment, failed: &[Failed<'_>]) -> Result<Vec<bool>, Status> {
    let partitions = deployment.config.log_partitions;
    let questions = failed.iter().enumerate().map(|(place, Failed { envelope, .. })| {
        let key = EnvelopeKey {
            topic: envelope.topic.as_bytes().clone(),
            hash: Bytes::copy_from_slice(&envelope.canonical.hash),
        };
        (envelope.topic.partition(partitions), place, key)
    });
    let spread = Spread::new(questions, |envelopes| KnownRequest { envelopes });
    let replies =
        call_all(&spread.calls, |partition, request| deployment.store.known(partition, request)).await?;
    let mut known = vec![false; failed.len()];
    for (place, answer) in spread.answers(replies.into_iter().map(|reply| reply.known))? {
        known[place] = answer;
    }
    Ok(known)
}

/// The package inside the envelope.
fn serialized(envelope: &Admitted) -> Bytes {
    let decoded = ClientEnvelope::decode(envelope.canonical.body.clone()).unwrap_or_default();
    match decoded.payload {
        Some(Payload::KeyPackage(package)) => package.key_package_tls_serialized,
        _ => Bytes::new(),
    }
}
