//! Objects that real clients make, and the same objects damaged.

mod support;

use sealog_admission::{Rejection, admit};
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::{Kind, Topic};
use support::mls::{GROUP_ID, GROUP_MESSAGES, KEY_PACKAGES, OTHER_MESSAGES};
use support::{group_message, key_package, private_message};

#[track_caller]
fn refused(verdict: Result<sealog_admission::Admitted, Rejection>) {
    assert_eq!(verdict.expect_err("refused").reason(), Reason::MalformedPayload);
}

#[test]
fn api_230_sec_011_every_group_message_of_openmls_gets_its_topic_and_flag() {
    let topic = Topic::derive(Kind::GroupMessage, &GROUP_ID).unwrap();
    for sample in GROUP_MESSAGES.iter() {
        let admitted = admit(&group_message(sample.bytes.clone())).expect(&sample.name);
        assert_eq!(admitted.topic, topic, "{}", sample.name);
        assert_eq!(admitted.is_commit_or_proposal, sample.is_commit_or_proposal, "{}", sample.name);
    }
}

#[test]
fn sec_010_bytes_after_the_message_are_accepted_and_kept() {
    for sample in GROUP_MESSAGES.iter() {
        let data = [&sample.bytes[..], &[0xff; 5]].concat();
        let admitted = admit(&group_message(data.clone())).expect(&sample.name);
        assert_eq!(admitted.is_commit_or_proposal, sample.is_commit_or_proposal);
        assert!(admitted.canonical.body.ends_with(&data), "{} is stored whole", sample.name);
    }
}

#[test]
fn api_230_a_group_message_that_ends_early_is_refused_wherever_it_ends() {
    for sample in GROUP_MESSAGES.iter() {
        for len in 0..sample.bytes.len() {
            refused(admit(&group_message(&sample.bytes[..len])));
        }
    }
}

#[test]
fn api_230_welcome_group_info_and_key_package_are_no_group_messages() {
    for (sample, wire_format) in OTHER_MESSAGES.iter().zip([3, 4, 5]) {
        assert_eq!(sample.bytes[..4], [0, 1, 0, wire_format], "{}", sample.name);
        refused(admit(&group_message(sample.bytes.clone())));
    }
    // The body of a PrivateMessage under any other wire format is not looked at.
    let mut message = private_message(&GROUP_ID, 1);
    for wire_format in (0..=u16::MAX).filter(|format| ![1, 2].contains(format)) {
        message[2..4].copy_from_slice(&wire_format.to_be_bytes());
        refused(admit(&group_message(message.clone())));
    }
}

#[test]
fn api_230_a_key_package_is_addressed_by_its_leafs_signature_key() {
    for (package, signature_key) in KEY_PACKAGES.iter() {
        let admitted = admit(&key_package(package.clone())).unwrap();
        assert_eq!(admitted.topic, Topic::derive(Kind::KeyPackage, signature_key).unwrap());
        assert!(!admitted.is_commit_or_proposal);
    }
}

#[test]
fn api_230_a_key_package_must_be_consumed_to_the_last_byte() {
    for (package, _) in KEY_PACKAGES.iter() {
        refused(admit(&key_package([&package[..], &[0]].concat())));
        for len in 0..package.len() {
            refused(admit(&key_package(&package[..len])));
        }
    }
}
