//! Section 3.1: what is parsed of each kind, what is refused, and what must not be.

use openmls::prelude::{
    Ciphersuite, Lifetime, PURE_CIPHERTEXT_WIRE_FORMAT_POLICY, PURE_PLAINTEXT_WIRE_FORMAT_POLICY,
};
use prost::Message as _;
use sealog_proto::backend::{
    ClientEnvelope, CommitLogEntry, GroupMessage, KeyPackage, WelcomeMessage, client_envelope::Payload,
    publish_error::Reason, welcome_message,
};
use sealog_proto::message_contents::PlaintextCommitLogEntry;
use sealog_proto::{Kind, MlsCredential};
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, topic_of};
use sealog_tests::fixtures::identity::{Inbox, Key, Update};
use sealog_tests::fixtures::{
    ContentType, Person, commit_log_entry, fresh_topic, group_envelope, key_package_of, private_message,
    public_message, random, welcome, welcome_pointer,
};

use crate::support::{assert_refused, fresh_group};

async fn assert_malformed(client: &Client, what: &str, envelope: ClientEnvelope) {
    println!("{what}");
    assert_refused(client.publish_one(envelope).await, Some(0), Reason::MalformedPayload);
}

async fn assert_accepted(client: &Client, what: &str, envelope: ClientEnvelope) {
    if let Err(status) = client.publish_one(envelope).await {
        panic!("{what} was refused: {status:?}");
    }
}

fn payload(payload: Payload) -> ClientEnvelope {
    ClientEnvelope { payload: Some(payload) }
}

#[tokio::test]
async fn api_230_an_envelope_without_a_payload_is_malformed() {
    let backend = Backend::shared().await;
    assert_malformed(&backend.client(), "no payload", ClientEnvelope { payload: None }).await;
}

#[tokio::test]
async fn api_230_group_messages_are_mls_public_or_private_messages() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let id = random::<16>();
    let good = private_message(&id, ContentType::Application, b"sealed");
    let with = |at: usize, bytes: &[u8]| {
        let mut data = good.clone();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        group_envelope(data)
    };
    assert_malformed(&client, "no bytes", group_envelope(b"".to_vec())).await;
    assert_malformed(&client, "no MLS message", group_envelope(b"hello, world".to_vec())).await;
    for version in [0_u16, 2, 0xffff] {
        assert_malformed(&client, "another MLS version", with(0, &version.to_be_bytes())).await;
    }
    for format in [0_u16, 3, 4, 5, 6, 0xf000] {
        assert_malformed(&client, "another wire format", with(2, &format.to_be_bytes())).await;
    }
    let content_type_at = 4 + 1 + 16 + 8;
    for content_type in [0, 4, 0xff] {
        assert_malformed(&client, "an unknown content type", with(content_type_at, &[content_type])).await;
    }
    for length in [0, 1, 15, 17, 32, 64] {
        let id = vec![9; length];
        let private = private_message(&id, ContentType::Application, b"sealed");
        assert_malformed(&client, "a private message with another group id", group_envelope(private)).await;
        let public = public_message(&id, ContentType::Application, b"hello");
        assert_malformed(&client, "a public message with another group id", group_envelope(public)).await;
    }
}

#[tokio::test]
async fn api_230_a_group_message_that_is_cut_anywhere_is_malformed() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let alice = Person::new("Alice").unwrap();
    let mut seat = alice.create_group(PURE_PLAINTEXT_WIRE_FORMAT_POLICY).unwrap();
    let Some(Payload::GroupMessage(commit)) = seat.rotate().unwrap().payload else {
        panic!("a group message")
    };
    let private = private_message(&random::<16>(), ContentType::Application, &[7; 70]);
    for data in [commit.data.to_vec(), private] {
        for length in (0..data.len()).step_by(3).chain([data.len() - 1]) {
            let cut = group_envelope(data[..length].to_vec());
            assert_malformed(&client, &format!("{length} bytes of {}", data.len()), cut).await;
        }
    }
}

/// Nothing else is checked: not membership, epoch, signature, nor what the ciphertext is (SEC-010, SEC-011).
#[tokio::test]
async fn api_230_group_messages_are_not_judged_beyond_their_framing() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let id = random::<16>();
    for content in [ContentType::Application, ContentType::Proposal, ContentType::Commit] {
        assert_accepted(&client, "an empty ciphertext", group_envelope(private_message(&id, content, b"")))
            .await;
        let noise = random::<300>();
        assert_accepted(&client, "noise", group_envelope(private_message(&id, content, &noise))).await;
    }
    assert_accepted(
        &client,
        "plain data",
        group_envelope(public_message(&id, ContentType::Application, b"x")),
    )
    .await;
    let remove_leaf_9 = [0, 3, 0, 0, 0, 9];
    let proposal = public_message(&id, ContentType::Proposal, &remove_leaf_9);
    assert_accepted(&client, "a proposal that nobody signed", group_envelope(proposal)).await;
    let bare = GroupMessage {
        data: private_message(&id, ContentType::Application, b"bare").into(),
        ..Default::default()
    };
    assert_accepted(&client, "no hmac, no push", payload(Payload::GroupMessage(bare))).await;
    let long_tail = [private_message(&id, ContentType::Application, b"tail"), vec![0xee; 500]].concat();
    assert_accepted(&client, "bytes behind the message", group_envelope(long_tail)).await;
}

#[tokio::test]
async fn api_230_real_mls_messages_of_both_wire_formats_are_accepted() {
    let backend = Backend::shared().await;
    let client = backend.client();
    for wire_format in [PURE_CIPHERTEXT_WIRE_FORMAT_POLICY, PURE_PLAINTEXT_WIRE_FORMAT_POLICY] {
        let (alice, bob) = (Person::new("Alice").unwrap(), Person::new("Bob").unwrap());
        let Some(Payload::KeyPackage(package)) = bob.key_package().unwrap().payload else {
            panic!("a package")
        };
        let package = alice.check_key_package(&package.key_package_tls_serialized).unwrap();
        let mut seat = alice.create_group(wire_format).unwrap();
        let invitation = seat.invite(&[package]).unwrap();
        seat.confirm().unwrap();
        let mut joined = bob.join(invitation.welcome_data(), wire_format).unwrap();
        assert_accepted(&client, "a commit with an addition", invitation.commit).await;
        assert_accepted(&client, "a message", joined.say("hello").unwrap()).await;
        assert_accepted(&client, "a proposal to leave", joined.propose_to_leave().unwrap()).await;
        assert_accepted(&client, "a commit with new keys", seat.rotate().unwrap()).await;
    }
}

#[tokio::test]
async fn api_230_welcomes_need_a_version_and_a_key_of_32_bytes() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let unset = payload(Payload::WelcomeMessage(WelcomeMessage { version: None }));
    assert_malformed(&client, "no version", unset).await;
    for length in [0, 16, 31, 33, 64] {
        let key = vec![5; length];
        assert_malformed(&client, "a key of another length", welcome(&key, 20)).await;
        assert_malformed(&client, "a destination of another length", welcome_pointer(&key, 20)).await;
    }
    // Nobody has to be registered under the key, and nothing in it has to decrypt (SEC-014).
    let key = fresh_topic(Kind::Welcome);
    assert_accepted(&client, "a Welcome for nobody", welcome(key.identifier(), 0)).await;
    assert_accepted(&client, "a pointer to nowhere", welcome_pointer(key.identifier(), 0)).await;
    let installation_key = key.identifier().to_vec().into();
    let bare = welcome_message::V1 { installation_key, ..Default::default() };
    let version = Some(welcome_message::Version::V1(bare));
    assert_accepted(&client, "a key only", payload(Payload::WelcomeMessage(WelcomeMessage { version })))
        .await;
}

#[tokio::test]
async fn api_230_key_packages_are_parsed_to_the_last_byte() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let person = Person::new("Quin").unwrap();
    let Some(Payload::KeyPackage(package)) = person.key_package().unwrap().payload else {
        panic!("a key package")
    };
    let good = package.key_package_tls_serialized;
    let of = |bytes: Vec<u8>| {
        payload(Payload::KeyPackage(KeyPackage { key_package_tls_serialized: bytes.into() }))
    };
    assert_malformed(&client, "no bytes", of(vec![])).await;
    assert_malformed(&client, "noise", of(random::<200>().to_vec())).await;
    assert_malformed(&client, "one byte behind it", of([&good[..], &[0]].concat())).await;
    for length in (1..good.len()).step_by(9).chain([good.len() - 1]) {
        assert_malformed(&client, &format!("{length} bytes of it"), of(good[..length].to_vec())).await;
    }
    let wrapped = [&[0, 1, 0, 5], &good[..]].concat();
    assert_malformed(&client, "an MLSMessage around it", of(wrapped)).await;
    // The signature key routes it, and a P-256 key has 65 bytes (TOPIC-002).
    let p256 = key_package_of(Ciphersuite::MLS_128_DHKEMP256_AES128GCM_SHA256_P256).unwrap();
    assert_malformed(&client, "a signature key of another length", p256).await;
    assert_accepted(&client, "the package itself", of(good.to_vec())).await;
}

#[tokio::test]
async fn api_235_unusual_key_packages_are_accepted() {
    let backend = Backend::shared().await;
    let client = backend.client();
    for inbox_id in ["", "not hexadecimal", "ABCDEF"] {
        let identity = MlsCredential { inbox_id: inbox_id.to_owned() }.encode_to_vec();
        let person = Person::with_identity("Rae", identity).unwrap();
        assert_accepted(&client, &format!("inbox id `{inbox_id}`"), person.key_package().unwrap()).await;
    }
    let other_suite = key_package_of(Ciphersuite::MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519).unwrap();
    assert_accepted(&client, "another suite with a 32-byte key", other_suite).await;
    let person = Person::new("Sol").unwrap();
    let hundred_years = Lifetime::new(100 * 365 * 24 * 3600);
    assert_accepted(&client, "a long lifetime", person.key_package_with(hundred_years).unwrap()).await;
}

#[tokio::test]
async fn api_230_identity_updates_need_an_inbox_id_of_64_hexadecimal_characters() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let wallet = Key::wallet();
    let good = "0123456789abcdef".repeat(4);
    let long = format!("{good}a");
    let odd = format!("{}g", &good[1..]);
    let accented = format!("{}é", &good[2..]); // 64 bytes, 63 characters
    for inbox_id in ["", &good[1..], &good[..32], &long, &odd, &accented, &format!("0x{}", &good[2..])] {
        let update = Update::of(inbox_id).create(&wallet, 0).sign();
        assert_malformed(&client, &format!("inbox id `{inbox_id}`"), update).await;
    }
}

#[tokio::test]
async fn api_233_two_different_updates_of_one_inbox_are_refused_at_the_second() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (inbox, other) = (Inbox::fresh(), Inbox::fresh());
    let (first, second) = (inbox.create(), inbox.create());
    let batch = vec![other.create(), first.clone(), first.clone(), second];
    assert_refused(client.publish(batch).await, Some(3), Reason::InvalidIdentityUpdate);
    // Both spellings of the inbox id name the same inbox.
    let loud = Update::of(&inbox.id.to_uppercase()).create(&inbox.wallet, 0).sign();
    assert_refused(client.publish(vec![first, loud]).await, Some(1), Reason::InvalidIdentityUpdate);
    for inbox in [inbox, other] {
        assert!(client.read(&inbox.topic(), 0).await.unwrap().is_empty(), "nothing of it is stored");
    }
}

#[tokio::test]
async fn api_230_commit_log_entries_need_a_group_id_of_16_bytes() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let of = |bytes: Vec<u8>| {
        let entry = CommitLogEntry { serialized_commit_log_entry: bytes.into(), signature: None };
        payload(Payload::CommitLogEntry(entry))
    };
    assert_malformed(&client, "no bytes", of(vec![])).await;
    assert_malformed(&client, "no protobuf", of(vec![0xff; 40])).await;
    for length in [0, 15, 17, 32] {
        assert_malformed(&client, "another group id", commit_log_entry(&vec![4; length], 20)).await;
    }
    // The signature is kept unverified, or not there at all (SEC-015).
    let topic = fresh_group();
    let entry =
        PlaintextCommitLogEntry { group_id: topic.identifier().to_vec().into(), ..Default::default() };
    let published = client.publish_one(of(entry.encode_to_vec())).await.unwrap();
    assert_eq!(topic_of(&published).kind(), Kind::CommitLog);
    let mut odd = commit_log_entry(topic.identifier(), 20);
    let Some(Payload::CommitLogEntry(entry)) = &mut odd.payload else { panic!("a commit-log entry") };
    entry.signature.as_mut().unwrap().bytes = random::<3>().to_vec().into();
    assert_accepted(&client, "a signature of three bytes", odd).await;
}
