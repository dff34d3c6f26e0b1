//! Envelopes of every kind: routing, framing, and the stored form.

use prost::{DecodeError, Message};
use sealog_admission::{Admitted, admit, key_package};
use sealog_proto::backend::client_envelope::Payload;
use sealog_proto::backend::{ClientEnvelope, CommitLogEntry, GroupMessage, KeyPackage, WelcomeMessage};
use sealog_proto::canonical::Canonical;

use super::Report;
use super::case::{Case, Verdict, same};

pub(super) fn group_messages(group: &Case<'_>, report: &mut Report) {
    payloads(group, report, |case| {
        let data = case.hex("data")?.into();
        Ok(Ok(Payload::GroupMessage(GroupMessage { data, ..GroupMessage::default() })))
    });
}

pub(super) fn welcomes(group: &Case<'_>, report: &mut Report) {
    payloads(group, report, |case| {
        Ok(WelcomeMessage::decode(case.hex("welcome_message")?.as_slice()).map(Payload::WelcomeMessage))
    });
}

pub(super) fn commit_log(group: &Case<'_>, report: &mut Report) {
    payloads(group, report, |case| {
        Ok(CommitLogEntry::decode(case.hex("commit_log_entry")?.as_slice()).map(Payload::CommitLogEntry))
    });
}

fn payloads(
    group: &Case<'_>,
    report: &mut Report,
    payload: impl Fn(&Case<'_>) -> Result<Result<Payload, DecodeError>, String>,
) {
    group.has_no_list_but(&["cases"], report);
    for case in group.list("cases", report) {
        let judge = || {
            let verdict = match payload(&case)? {
                Ok(payload) => admit(&ClientEnvelope { payload: Some(payload) }).into(),
                Err(error) => Verdict::undecodable(&error),
            };
            routed(&case, case.text("expect")?, verdict)
        };
        report.add(&case.name, judge());
    }
}

pub(super) fn key_packages(group: &Case<'_>, report: &mut Report) {
    group.has_no_list_but(&["cases"], report);
    for case in group.list("cases", report) {
        let judge = || {
            let package = case.hex("key_package_tls_serialized")?;
            let now_seconds = case.number("now_seconds")?;
            let payload = KeyPackage { key_package_tls_serialized: package.clone().into() };
            let verdict = admit(&ClientEnvelope { payload: Some(Payload::KeyPackage(payload)) })
                .and_then(|admitted| key_package::check(&package, now_seconds).map(|()| admitted));
            routed(&case, case.text("expect")?, verdict.into())
        };
        report.add(&case.name, judge());
    }
}

/// The verdict, and of what is accepted its topic and its flag.
fn routed(case: &Case<'_>, expected: &str, verdict: Verdict<Admitted>) -> Result<(), String> {
    let Some(admitted) = case.compare(expected, verdict)? else { return Ok(()) };
    case.same_bytes("topic", admitted.topic.as_bytes())?;
    if !case.states("is_commit_or_proposal") {
        return Ok(());
    }
    let expected = case.value["is_commit_or_proposal"].as_bool();
    same("is_commit_or_proposal", Some(admitted.is_commit_or_proposal), expected)
}

pub(super) fn client_envelopes(group: &Case<'_>, report: &mut Report) {
    group.has_no_list_but(&["cases"], report);
    for case in group.list("cases", report) {
        report.add(&case.name, client_envelope(&case));
    }
}

/// Accepted, unless the case states another verdict.
fn client_envelope(case: &Case<'_>) -> Result<(), String> {
    let verdict = match ClientEnvelope::decode(case.hex("wire")?.as_slice()) {
        Ok(envelope) => {
            let Canonical { body, hash } = Canonical::of(&envelope);
            case.same_bytes("stored", &body)?;
            case.same_bytes("message_hash_sha256", &hash)?;
            admit(&envelope).into()
        }
        Err(error) => Verdict::undecodable(&error),
    };
    routed(case, case.optional_text("expect")?.unwrap_or("accept"), verdict)
}
