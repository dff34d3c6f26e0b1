//! The shared vectors: objects made by other tools, with the verdict that each must get.

mod support;

use prost::Message;
use sealog_admission::key_package::check;
use sealog_admission::{PublishLimits, admit, read_publish};
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::backend::{
    ClientEnvelope, CommitLogEntry, PublishRequest, WelcomeMessage, client_envelope::Payload,
};
use sealog_proto::canonical::Canonical;
use serde_json::Value;
use support::{envelope, group_message, key_package, unhex};

fn cases(group: &str) -> Vec<Value> {
    let vectors: Value = serde_json::from_str(include_str!("vectors/identity.json")).unwrap();
    let cases = vectors[group]["cases"].as_array().expect("a group of cases").clone();
    assert!(!cases.is_empty());
    cases
}

fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("{field} of {case}"))
}

fn run(group: &str, envelope: impl Fn(&Value) -> ClientEnvelope) {
    for case in cases(group) {
        let name = text(&case, "name");
        match (admit(&envelope(&case)), text(&case, "expect")) {
            (Ok(admitted), "accept") => {
                assert_eq!(admitted.topic.as_bytes()[..], unhex(text(&case, "topic")), "{name}");
                let flag = case["is_commit_or_proposal"].as_bool().unwrap_or(false);
                assert_eq!(admitted.is_commit_or_proposal, flag, "{name}");
            }
            (Err(rejection), "reject") => {
                assert_eq!(rejection.reason().as_str_name(), text(&case, "reason"), "{name}: {rejection}");
            }
            (verdict, expect) => panic!("{name}: expected {expect}, got {verdict:?}"),
        }
    }
}

#[test]
fn api_230_group_message_vectors() {
    run("group_messages", |case| group_message(unhex(text(case, "data"))));
}

#[test]
fn api_230_sec_014_welcome_vectors() {
    run("welcomes", |case| {
        let bytes = unhex(text(case, "welcome_message"));
        envelope(Payload::WelcomeMessage(WelcomeMessage::decode(bytes.as_slice()).unwrap()))
    });
}

#[test]
fn api_230_sec_015_commit_log_vectors() {
    run("commit_log", |case| {
        let bytes = unhex(text(case, "commit_log_entry"));
        envelope(Payload::CommitLogEntry(CommitLogEntry::decode(bytes.as_slice()).unwrap()))
    });
}

#[test]
fn api_230_api_235_key_package_vectors() {
    for case in cases("key_packages") {
        let name = text(&case, "name");
        let bytes = unhex(text(&case, "key_package_tls_serialized"));
        let now_seconds = case["now_seconds"].as_u64().expect("a time");
        let verdict = admit(&key_package(bytes.clone()))
            .and_then(|admitted| check(&bytes, now_seconds).map(|()| admitted));
        match (verdict, text(&case, "expect")) {
            (Ok(admitted), "accept") => {
                assert_eq!(admitted.topic.as_bytes()[..], unhex(text(&case, "topic")), "{name}");
            }
            (Err(rejection), "reject") => {
                assert_eq!(rejection.reason().as_str_name(), text(&case, "reason"), "{name}: {rejection}");
                // What is malformed is so before duplicates are looked up, what is invalid only after.
                let is_malformed = rejection.reason() == Reason::MalformedPayload;
                assert_eq!(admit(&key_package(bytes)).is_err(), is_malformed, "{name}");
            }
            (verdict, expect) => panic!("{name}: expected {expect}, got {verdict:?}"),
        }
    }
}

#[test]
fn api_211_api_222_client_envelope_vectors() {
    for case in cases("client_envelopes") {
        let name = text(&case, "name");
        let wire = unhex(text(&case, "wire"));
        let envelope = ClientEnvelope::decode(wire.as_slice()).unwrap();
        let canonical = Canonical::of(&envelope);
        assert_eq!(canonical.body[..], unhex(text(&case, "stored")), "{name}");
        assert_eq!(canonical.hash[..], unhex(text(&case, "message_hash_sha256")), "{name}");

        // The same envelope twice, as it came and in canonical form, is one envelope.
        let request = PublishRequest { envelopes: vec![envelope] }.encode_to_vec();
        let len = u8::try_from(wire.len() & 0x7f).unwrap() | 0x80;
        let twice = [&[0x0a, len, u8::try_from(wire.len() >> 7).unwrap()], &wire[..], &request].concat();
        let publish = read_publish(twice.into(), &PublishLimits::default()).expect(name);
        assert_eq!(publish.slots, [0, 0], "{name}");
        assert_eq!(publish.envelopes[0].canonical, canonical, "{name}");
        assert_eq!(publish.envelopes[0].topic.as_bytes()[..], unhex(text(&case, "topic")), "{name}");
    }
}
