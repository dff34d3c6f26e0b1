//! What the files of this suite have in common.

use sealog_proto::backend::{ClientEnvelope, EnvelopeMeta, ServerEnvelope, publish_error::Reason};
use sealog_proto::{Kind, Topic};
use sealog_tests::client::{failure, id_of, sequence_id};
use sealog_tests::fixtures::{fresh_topic, group_message, welcome};
use tonic::{Code, Status};

/// A group nobody else uses: its message topic, and with it the 16 bytes of its id.
pub(crate) fn fresh_group() -> Topic {
    fresh_topic(Kind::GroupMessage)
}

/// A small application message on a group's topic, different each time.
pub(crate) fn message_on(topic: &Topic) -> ClientEnvelope {
    match topic.kind() {
        Kind::GroupMessage => group_message(topic.identifier(), 48),
        Kind::Welcome => welcome(topic.identifier(), 48),
        other => panic!("no small message for {other:?}"),
    }
}

/// The sequence ids of a page, in its order.
pub(crate) fn ids_of(envelopes: &[ServerEnvelope]) -> Vec<u64> {
    envelopes.iter().map(id_of).collect()
}

/// The sequence ids of a publish's answer, in its order.
pub(crate) fn ids(metas: &[EnvelopeMeta]) -> Vec<u64> {
    metas.iter().map(sequence_id).collect()
}

/// The metadata of a stored envelope.
pub(crate) fn meta(envelope: &ServerEnvelope) -> &EnvelopeMeta {
    envelope.meta.as_ref().expect("every stored envelope has metadata")
}

/// Asserts that a publish was refused for this reason, at this index (API-223).
#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(
    answer: Result<T, Status>,
    index: Option<u32>,
    reason: Reason,
) {
    let status = answer.expect_err("the publish is refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let detail = failure(&status).expect("the status carries a PublishError");
    assert_eq!((detail.index, detail.reason), (index, reason), "{detail:?}");
}

/// Asserts the code of a failed call.
#[track_caller]
pub(crate) fn assert_code<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code) {
    let status = answer.expect_err("the call fails");
    assert_eq!(status.code(), code, "{status:?}");
}
