//! One function per decoder of admission. Each checks what must hold for any bytes, beside not panicking.
//!
//! `fuzz_targets/` runs them under libFuzzer; the tests of `sealog-admission` include this file and run them on
//! generated input, on the stable toolchain.
#![allow(unreachable_pub)] // public in one crate, private in the other

use std::collections::BTreeSet;

use bytes::Bytes;
use prost::Message;
use sealog_admission::key_package::check;
use sealog_admission::{Admitted, Publish, PublishLimits, PublishRefusal, Rejection, admit, read_publish};
use sealog_proto::associations::IdentityUpdate;
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::backend::{
    ClientEnvelope, CommitLogEntry, GroupMessage, KeyPackage, PublishRequest, WelcomeMessage,
    client_envelope::Payload,
};
use sealog_proto::canonical::Canonical;
use sealog_proto::{Kind, Topic};

/// Every target.
pub const ALL: [fn(&[u8]); 7] = [
    publish_request,
    group_message,
    key_package,
    key_package_check,
    welcome,
    identity_update,
    commit_log_entry,
];

/// `GroupMessage.data`: what follows an accepted message changes nothing but the stored bytes (SEC-010).
pub fn group_message(data: &[u8]) {
    let message =
        |data: Vec<u8>| Payload::GroupMessage(GroupMessage { data: data.into(), ..Default::default() });
    let Ok(admitted) = judge(Kind::GroupMessage, message(data.to_vec())) else { return };
    let longer = judge(Kind::GroupMessage, message([data, &[0xff]].concat())).expect("still accepted");
    assert_eq!(longer.topic, admitted.topic);
    assert_eq!(longer.is_commit_or_proposal, admitted.is_commit_or_proposal);
    assert_ne!(longer.canonical.hash, admitted.canonical.hash);
}

/// `KeyPackage.key_package_tls_serialized`: an accepted one ends where it ends.
pub fn key_package(data: &[u8]) {
    let package = |data: Vec<u8>| Payload::KeyPackage(KeyPackage { key_package_tls_serialized: data.into() });
    if judge(Kind::KeyPackage, package(data.to_vec())).is_ok() {
        assert!(judge(Kind::KeyPackage, package([data, &[0]].concat())).is_err());
        assert!(judge(Kind::KeyPackage, package(data[..data.len() - 1].to_vec())).is_err());
    }
}

/// Eight bytes of time and a key package: what is malformed is so before the check and at any time, and what is
/// valid stops being so.
pub fn key_package_check(data: &[u8]) {
    let Some((&now, data)) = data.split_first_chunk() else { return };
    let package = KeyPackage { key_package_tls_serialized: data.to_vec().into() };
    let admitted = judge(Kind::KeyPackage, Payload::KeyPackage(package));
    match (check(data, u64::from_be_bytes(now)), admitted) {
        (Ok(()), Ok(_)) => {
            let expired = check(data, u64::MAX).expect_err("no lifetime reaches so far");
            assert_eq!(expired.reason(), Reason::InvalidKeyPackage);
        }
        (Err(invalid), Ok(_)) => assert_eq!(invalid.reason(), Reason::InvalidKeyPackage),
        (verdict, Err(malformed)) => assert_eq!(verdict, Err(malformed)),
    }
}

/// An encoded `WelcomeMessage`.
pub fn welcome(data: &[u8]) {
    if let Ok(welcome) = WelcomeMessage::decode(data) {
        let _ = judge(Kind::Welcome, Payload::WelcomeMessage(welcome));
    }
}

/// An encoded `IdentityUpdate`.
pub fn identity_update(data: &[u8]) {
    if let Ok(update) = IdentityUpdate::decode(data) {
        let is_hex = update.inbox_id.len() == 64 && update.inbox_id.bytes().all(|b| b.is_ascii_hexdigit());
        let verdict = judge(Kind::IdentityUpdate, Payload::IdentityUpdate(update));
        assert_eq!(verdict.is_ok(), is_hex);
    }
}

/// `CommitLogEntry.serialized_commit_log_entry`.
pub fn commit_log_entry(data: &[u8]) {
    let entry = CommitLogEntry { serialized_commit_log_entry: data.to_vec().into(), signature: None };
    let _ = judge(Kind::CommitLog, Payload::CommitLogEntry(entry));
}

/// What holds for an envelope of any kind.
fn judge(kind: Kind, payload: Payload) -> Result<Admitted, Rejection> {
    let envelope = ClientEnvelope { payload: Some(payload) };
    let verdict = admit(&envelope);
    match &verdict {
        Ok(admitted) => {
            assert_eq!(admitted.topic.kind(), kind);
            assert_eq!(admitted.canonical, Canonical::of(&envelope));
            assert_eq!(ClientEnvelope::decode(admitted.canonical.body.clone()), Ok(envelope));
            assert!(!admitted.is_commit_or_proposal || kind == Kind::GroupMessage);
        }
        Err(rejection) => {
            assert_eq!(rejection.reason(), Reason::MalformedPayload);
            assert!(!rejection.to_string().is_empty());
        }
    }
    verdict
}

/// Bounds that small inputs reach.
const LIMITS: PublishLimits = PublishLimits {
    max_envelope_bytes: 90,
    max_request_bytes: 400,
    max_response_bytes: 350,
    max_publish_topics: 3,
    // Unbounded: a request with more is judged without being decoded, and the model below decodes.
    max_update_actions: usize::MAX,
    max_wallet_signatures: usize::MAX,
};

/// An encoded `PublishRequest`: the same verdict as from a model that decodes the whole request at once.
pub fn publish_request(data: &[u8]) {
    let verdict = read_publish(Bytes::copy_from_slice(data), &LIMITS);
    let verdict = verdict.map_err(|refusal| match refusal {
        PublishRefusal::Invalid { failure, below } => Some((failure.index, failure.reason, below)),
        PublishRefusal::ResponseTooLong => None,
    });
    assert_eq!(verdict, model(data));
}

/// Index, reason, and what passed below the index.
type Failure = (Option<u32>, Reason, Publish);

/// The rules of `read_publish`, written for clarity: `Err(None)` is a response that is too long.
fn model(data: &[u8]) -> Result<Publish, Option<Failure>> {
    let whole_request = |reason| Err(Some((None, reason, Publish::default())));
    let Ok(request) = PublishRequest::decode(data) else {
        return whole_request(Reason::MalformedPayload);
    };
    let mut publish = Publish::default();
    let mut topics = BTreeSet::new();
    let mut failure = None;
    let mut response_len = 0;
    for (index, envelope) in (0..).zip(&request.envelopes) {
        let verdict = if envelope.encoded_len() > LIMITS.max_envelope_bytes {
            Err(Reason::TooLarge)
        } else {
            admit(envelope).map_err(|rejection| rejection.reason())
        };
        let verdict = verdict.and_then(|admitted| {
            let first = topics.insert(admitted.topic.clone());
            response_len += 46 + admitted.topic.as_bytes().len();
            if failure.is_some() || response_len > LIMITS.max_response_bytes {
                // Nothing more is kept, and so nothing is compared.
                return Ok(());
            }
            let same = |kept: &Admitted| kept.canonical.hash == admitted.canonical.hash;
            let slot = publish.envelopes.iter().position(same);
            if slot.is_none() && is_identity(&admitted.topic) && !first {
                return Err(Reason::InvalidIdentityUpdate);
            }
            publish.slots.push(slot.unwrap_or(publish.envelopes.len()).try_into().expect("few"));
            if slot.is_none() {
                publish.first_indexes.push(index);
                publish.envelopes.push(admitted);
            }
            Ok(())
        });
        if let (Err(reason), None) = (verdict, failure) {
            failure = Some((index, reason));
        }
    }
    if request.encoded_len() > LIMITS.max_request_bytes || topics.len() > LIMITS.max_publish_topics {
        return whole_request(Reason::TooLarge);
    }
    if let Some((index, reason)) = failure {
        return Err(Some((Some(index), reason, publish)));
    }
    if response_len > LIMITS.max_response_bytes {
        return Err(None);
    }
    Ok(publish)
}

fn is_identity(topic: &Topic) -> bool {
    topic.kind() == Kind::IdentityUpdate
}
