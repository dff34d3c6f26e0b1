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
use crate::{deployment::Deployment, error::Status, fan_out::Call, services::call_all};

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
    let mut calls: Vec<Call<KnownRequest>> = Vec::new();
    let mut places = Vec::with_capacity(failed.len());
    for Failed { envelope, .. } in failed {
        let partition = envelope.topic.partition(partitions);
        let call = calls.iter().position(|call| call.partition == partition).unwrap_or_else(|| {
            calls.push(Call { partition, request: KnownRequest::default() });
            calls.len() - 1
        });
        let asked = &mut calls[call].request.envelopes;
        places.push((call, asked.len()));
        asked.push(EnvelopeKey {
            topic: envelope.topic.as_bytes().clone(),
            hash: Bytes::copy_from_slice(&envelope.canonical.hash),
        });
    }
    let replies = call_all(&calls, |partition, request| deployment.store.known(partition, request)).await?;
    // A reply that is too short says of none that it is stored.
    Ok(places.iter().map(|&(call, place)| replies[call].known.get(place).copied().unwrap_or(false)).collect())
}

/// The package inside the envelope.
fn serialized(envelope: &Admitted) -> Bytes {
    let decoded = ClientEnvelope::decode(envelope.canonical.body.clone()).unwrap_or_default();
    match decoded.payload {
        Some(Payload::KeyPackage(package)) => package.key_package_tls_serialized,
        _ => Bytes::new(),
    }
}
