//! Envelopes of every kind: routing, framing, and the stored form.

use base16ct::lower;
use prost::Message;
use sealog_admission::{Admitted, Rejection, admit, key_package};
use sealog_proto::backend::client_envelope::Payload;
use sealog_proto::backend::{ClientEnvelope, CommitLogEntry, GroupMessage, KeyPackage, WelcomeMessage};
use sealog_proto::canonical::Canonical;

use super::Report;
use super::case::{Case, same};

pub(super) fn group_messages(group: &Case<'_>, report: &mut Report) {
    payloads(group, report, |case| {
        Ok(Payload::GroupMessage(GroupMessage { data: case.hex("data")?.into(), ..GroupMessage::default() }))
    });
}

pub(super) fn welcomes(group: &Case<'_>, report: &mut Report) {
    payloads(group, report, |case| {
        let message = WelcomeMessage::decode(case.hex("welcome_message")?.as_slice());
        Ok(Payload::WelcomeMessage(message.map_err(|error| error.to_string())?))
    });
}

pub(super) fn commit_log(group: &Case<'_>, report: &mut Report) {
    payloads(group, report, |case| {
        let entry = CommitLogEntry::decode(case.hex("commit_log_entry")?.as_slice());
        Ok(Payload::CommitLogEntry(entry.map_err(|error| error.to_string())?))
    });
}

fn payloads(group: &Case<'_>, report: &mut Report, payload: impl Fn(&Case<'_>) -> Result<Payload, String>) {
    group.has_no_list_but(&["cases"], report);
    for case in group.list("cases", report) {
        let judge = || {
            let verdict = admit(&ClientEnvelope { payload: Some(payload(&case)?) });
            routed(&case, verdict)
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
            routed(&case, verdict)
        };
        report.add(&case.name, judge());
    }
}

/// The verdict, and of what is accepted its topic, and its flag where one is stated.
fn routed(case: &Case<'_>, verdict: Result<Admitted, Rejection>) -> Result<(), String> {
    let Some(admitted) = case.expect(verdict.into())? else { return Ok(()) };
    same("topic", lower::encode_string(admitted.topic.as_bytes()), case.text("topic")?)?;
    let flag = &case.value["is_commit_or_proposal"];
    if flag.is_null() {
        return Ok(());
    }
    same("is_commit_or_proposal", Some(admitted.is_commit_or_proposal), flag.as_bool())
}

pub(super) fn client_envelopes(group: &Case<'_>, report: &mut Report) {
    group.has_no_list_but(&["cases"], report);
    for case in group.list("cases", report) {
        report.add(&case.name, client_envelope(&case));
    }
}

fn client_envelope(case: &Case<'_>) -> Result<(), String> {
    let wire = case.hex("wire")?;
    let envelope = ClientEnvelope::decode(wire.as_slice()).map_err(|error| error.to_string())?;
    let canonical = Canonical::of(&envelope);
    same("stored", lower::encode_string(&canonical.body), case.text("stored")?)?;
    same("message_hash_sha256", lower::encode_string(&canonical.hash), case.text("message_hash_sha256")?)?;
    let admitted = admit(&envelope).map_err(|rejection| rejection.to_string())?;
    same("topic", lower::encode_string(admitted.topic.as_bytes()), case.text("topic")?)
}
