//! What the tests of admission share. Each test binary uses its part.
#![allow(dead_code)]

pub(crate) mod damage;
pub(crate) mod key_package;
pub(crate) mod mls;

use prost::Message;
use sealog_proto::associations::IdentityUpdate;
use sealog_proto::backend::{
    ClientEnvelope, CommitLogEntry, GroupMessage, KeyPackage, WelcomeMessage,
    client_envelope::Payload,
    welcome_message::{V1, Version},
};
use sealog_proto::message_contents::PlaintextCommitLogEntry;

pub(crate) fn envelope(payload: Payload) -> ClientEnvelope {
    ClientEnvelope { payload: Some(payload) }
}

pub(crate) fn group_message(data: impl Into<Vec<u8>>) -> ClientEnvelope {
    envelope(Payload::GroupMessage(GroupMessage { data: data.into().into(), ..GroupMessage::default() }))
}

pub(crate) fn key_package(tls: impl Into<Vec<u8>>) -> ClientEnvelope {
    envelope(Payload::KeyPackage(KeyPackage { key_package_tls_serialized: tls.into().into() }))
}

pub(crate) fn welcome(installation_key: &[u8], data: &[u8]) -> ClientEnvelope {
    let version = Version::V1(V1 {
        installation_key: installation_key.to_vec().into(),
        data: data.to_vec().into(),
        ..V1::default()
    });
    envelope(Payload::WelcomeMessage(WelcomeMessage { version: Some(version) }))
}

pub(crate) fn identity_update(inbox_id: &str, client_timestamp_ns: u64) -> ClientEnvelope {
    envelope(Payload::IdentityUpdate(IdentityUpdate {
        inbox_id: inbox_id.to_owned(),
        client_timestamp_ns,
        ..IdentityUpdate::default()
    }))
}

pub(crate) fn commit_log_entry(group_id: &[u8], commit_sequence_id: u64) -> ClientEnvelope {
    let entry = PlaintextCommitLogEntry {
        group_id: group_id.to_vec().into(),
        commit_sequence_id,
        ..PlaintextCommitLogEntry::default()
    };
    envelope(Payload::CommitLogEntry(CommitLogEntry {
        serialized_commit_log_entry: entry.encode_to_vec().into(),
        signature: None,
    }))
}

/// The smallest `PrivateMessage` of a group: every vector empty.
pub(crate) fn private_message(group_id: &[u8], content_type: u8) -> Vec<u8> {
    let len = u8::try_from(group_id.len()).expect("a short group id");
    assert!(len < 64, "a length of one byte");
    [&[0, 1, 0, 2, len], group_id, &[0; 8], &[content_type, 0, 0, 0]].concat()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit");
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::try_from(digit(pair[0]) << 4 | digit(pair[1])).expect("two digits"))
        .collect()
}
