//! Section 2: the envelope, its stored bytes, its hash and its metadata.

use std::time::{SystemTime, UNIX_EPOCH};

use openmls::prelude::{PURE_CIPHERTEXT_WIRE_FORMAT_POLICY, PURE_PLAINTEXT_WIRE_FORMAT_POLICY};
use prost::Message as _;
use sealog_proto::backend::{
    ClientEnvelope, EnvelopeMeta, PublishResponse, client_envelope::Payload, message_hash,
};
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::Backend;
use sealog_tests::client::{PUBLISH, QUERY, QUERY_NEWEST, sequence_id, topic_of};
use sealog_tests::fixtures::{
    ContentType, Person, commit_log_entry, fresh_topic, group_envelope, group_message, private_message,
    public_message, random, welcome, welcome_pointer,
};
use sealog_tests::raw::Raw;
use sha2::{Digest as _, Sha256};

use crate::support::{fresh_group, message_on, meta};
use crate::wire::{bytes_of, field, fields, long_varint, number, number_of, varint};

/// Publishes one hand-encoded `ClientEnvelope`.
async fn publish_bytes(raw: &Raw, envelope: &[u8]) -> EnvelopeMeta {
    let answer = raw.unary(PUBLISH, &field(1, envelope)).await.unwrap();
    assert_eq!(answer.code(), 0, "{}", answer.message());
    PublishResponse::decode(answer.messages[0].clone()).unwrap().envelope_metas.remove(0)
}

/// The encoded `ClientEnvelope` of the only envelope on a topic.
async fn stored_bytes(raw: &Raw, topic: &Topic) -> Vec<u8> {
    let query = field(1, field(1, field(1, topic.as_bytes())));
    let answer = raw.unary(QUERY, &query).await.unwrap();
    assert_eq!(answer.code(), 0, "{}", answer.message());
    bytes_of(&bytes_of(&answer.messages[0], 1), 2)
}

#[tokio::test]
async fn api_210_requests_and_answers_have_the_contracts_field_numbers() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    let key = random::<32>();
    let topic = [&[1], key.as_slice()].concat();
    let envelope = field(2, field(1, [field(1, key), field(2, b"sealed")].concat()));

    let answer = raw.unary(PUBLISH, &field(1, &envelope)).await.unwrap();
    let published = bytes_of(&answer.messages[0], 1);
    let id = number_of(&bytes_of(&published, 1), 1);
    let server_ns = number_of(&published, 2);
    assert_eq!(bytes_of(&bytes_of(&published, 3), 1), Sha256::digest(&envelope).to_vec());
    assert_eq!(bytes_of(&bytes_of(&published, 4), 1), topic);
    assert!(number_of(&published, 5) > server_ns);
    assert_eq!(fields(&published).len(), 5, "is_commit_or_proposal is false and has no presence");

    // TopicQuery { topic = 1 { topic = 1 }, cursor = 2 { sequence_id = 1 } }, limit = 2
    let entry = [field(1, field(1, &topic)), field(2, number(1, id - 1))].concat();
    let answer = raw.unary(QUERY, &[field(1, entry), number(2, 5)].concat()).await.unwrap();
    let stored = bytes_of(&answer.messages[0], 1);
    assert_eq!(bytes_of(&stored, 1), published, "ServerEnvelope.meta = 1");
    assert_eq!(bytes_of(&stored, 2), envelope, "ServerEnvelope.envelope = 2");
    assert_eq!(fields(&bytes_of(&answer.messages[0], 2)), [], "Continuation.has_more is false");

    // topics = 1, include_full_envelope = 2
    let answer = raw.unary(QUERY_NEWEST, &[field(1, field(1, &topic)), number(2, 1)].concat()).await.unwrap();
    let result = bytes_of(&answer.messages[0], 1);
    assert_eq!(bytes_of(&bytes_of(&result, 1), 1), topic, "Result.topic = 1");
    assert_eq!(bytes_of(&result, 2), published, "Result.meta = 2");
    assert_eq!(bytes_of(&result, 3), envelope, "Result.envelope = 3");

    // A commit has the sixth field, and no expiry. A page that is cut says so in Continuation.has_more = 1.
    let group = random::<16>();
    let commit = private_message(&group, ContentType::Commit, b"sealed");
    let two =
        [field(1, field(1, field(1, &commit))), field(1, field(1, field(1, [&commit[..], b"x"].concat())))];
    let answer = raw.unary(PUBLISH, &two.concat()).await.unwrap();
    let (_, crate::wire::Value::Bytes(published)) = fields(&answer.messages[0]).remove(0) else {
        panic!("a meta")
    };
    assert_eq!(number_of(&published, 6), 1);
    assert!(fields(&published).iter().all(|(number, _)| *number != 5));
    let query = [field(1, field(1, field(1, [&[0], group.as_slice()].concat()))), number(2, 1)].concat();
    let answer = raw.unary(QUERY, &query).await.unwrap();
    assert_eq!(number_of(&bytes_of(&answer.messages[0], 2), 1), 1);
}

#[tokio::test]
async fn api_210_211_every_field_of_every_kind_comes_back_as_it_was_sent() {
    let backend = Backend::shared().await;
    let (client, raw) = (backend.client(), backend.raw());
    let group = fresh_group();
    let data = private_message(group.identifier(), ContentType::Application, b"sealed");
    let message = [field(1, data), field(2, random::<32>()), number(3, 1)].concat();
    let (inline, pointer) = (fresh_topic(Kind::Welcome), fresh_topic(Kind::Welcome));
    // 77 is an algorithm that nobody knows yet: the number is kept (open enums).
    let v1 = [
        field(1, inline.identifier()),
        field(2, random::<40>()),
        field(3, random::<32>()),
        number(4, 77),
        field(5, random::<9>()),
    ]
    .concat();
    let to =
        [field(1, pointer.identifier()), field(2, random::<40>()), field(3, random::<32>()), number(4, 2)];
    let log = fresh_topic(Kind::CommitLog);
    let entry = [field(1, log.identifier()), number(2, u64::MAX), field(3, b"a"), number(4, 4), number(5, 3)];
    let signature = [field(1, random::<64>()), field(2, random::<32>())].concat();
    let logged = [field(1, entry.concat()), field(2, signature)].concat();

    for (topic, envelope) in [
        (group, field(1, message)),
        (inline, field(2, field(1, v1))),
        (pointer, field(2, field(2, to.concat()))),
        (log, field(5, logged)),
    ] {
        let published = publish_bytes(&raw, &envelope).await;
        assert_eq!(topic_of(&published), topic);
        assert_eq!(stored_bytes(&raw, &topic).await, envelope, "{topic:?}");
    }

    let person = Person::new("Ada").unwrap();
    let package = person.key_package().unwrap();
    client.publish_one(package.clone()).await.unwrap();
    let newest = client.query_newest(&[person.key_package_topic()], true).await.unwrap();
    assert_eq!(newest[0].envelope, Some(package));
}

#[tokio::test]
async fn api_211_222_encodings_of_one_value_have_one_hash_and_one_id() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    let topic = fresh_topic(Kind::Welcome);
    let (key, data, hpke) = (field(1, topic.identifier()), field(2, b"sealed"), field(3, random::<32>()));
    let v1 = |parts: &[&[u8]]| field(2, field(1, parts.concat()));
    let canonical = v1(&[&key, &data, &hpke, &number(4, 1)]);
    let first = publish_bytes(&raw, &canonical).await;

    let unknown = field(999, b"from a later version");
    let long_number = [varint(4 << 3), long_varint(1, 10)].concat();
    let long_length = [varint(2 << 3 | 2), long_varint(6, 4), b"sealed".to_vec()].concat();
    let halves = field(
        2,
        [field(1, [&key[..], &hpke].concat()), field(1, [&data[..], &number(4, 1)].concat())].concat(),
    );
    for (what, envelope) in [
        ("fields in another order", v1(&[&number(4, 1), &hpke, &data, &key])),
        ("a default that is written out", v1(&[&key, &data, &hpke, &number(4, 1), &field(5, b"")])),
        ("an unknown field inside", v1(&[&key, &data, &unknown, &hpke, &number(4, 1)])),
        ("an unknown field outside", [canonical.clone(), number(77, 5)].concat()),
        ("a long varint", v1(&[&key, &data, &hpke, &long_number])),
        ("a long length", v1(&[&key, &long_length, &hpke, &number(4, 1)])),
        (
            "a scalar that is overwritten",
            v1(&[&key, &field(2, b"other"), &number(4, 3), &data, &hpke, &number(4, 1)]),
        ),
        ("a message in two halves", halves),
        ("a oneof that is overwritten", [field(5, field(1, b"x")), canonical.clone()].concat()),
    ] {
        assert_eq!(publish_bytes(&raw, &envelope).await, first, "{what}");
    }
    assert_eq!(stored_bytes(&raw, &topic).await, canonical, "one envelope, in the backend's own encoding");
}

#[tokio::test]
async fn api_211_the_hash_is_the_sha256_of_the_bytes_that_are_returned() {
    let backend = Backend::shared().await;
    let (client, raw) = (backend.client(), backend.raw());
    let topics = [fresh_group(), fresh_topic(Kind::Welcome)];
    for topic in topics {
        let published = client.publish_one(message_on(&topic)).await.unwrap();
        let hash = Sha256::digest(stored_bytes(&raw, &topic).await).to_vec();
        let Some(message_hash::Hash::Sha256(stated)) = published.message_hash.unwrap().hash else {
            panic!("a hash")
        };
        assert_eq!(stated, hash);
    }
}

#[tokio::test]
async fn api_211_different_bytes_are_different_envelopes() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    let data = private_message(topic.identifier(), ContentType::Application, b"sealed");
    // Bytes behind the MLS message are kept and make another envelope (SEC-010).
    let variants = [data.clone(), [&data[..], &[0]].concat(), [&data[..], &[0, 0]].concat()];
    let envelopes: Vec<_> = variants.iter().map(|data| group_envelope(data.clone())).collect();
    client.publish(envelopes.clone()).await.unwrap();
    let stored: Vec<_> =
        client.read(&topic, 0).await.unwrap().into_iter().map(|stored| stored.envelope.unwrap()).collect();
    assert_eq!(stored, envelopes);
}

#[tokio::test]
async fn api_212_expiry_and_topic_follow_the_kind() {
    const RETENTION_NS: u64 = 7_776_000 * 1_000_000_000; // 90 days
    let backend = Backend::shared().await;
    let client = backend.client();
    let person = Person::new("Lin").unwrap();
    let group = fresh_group();
    let id = group.identifier();
    let installation = fresh_topic(Kind::Welcome);
    let log = Topic::derive(Kind::CommitLog, id).unwrap();
    let commit = group_envelope(private_message(id, ContentType::Commit, b"sealed"));
    let proposal = group_envelope(private_message(id, ContentType::Proposal, b"sealed"));
    let expected: Vec<(ClientEnvelope, Topic, u64, bool)> = vec![
        (group_message(id, 20), group.clone(), RETENTION_NS, false),
        (commit, group.clone(), 0, true),
        (proposal, group.clone(), 0, true),
        (welcome(installation.identifier(), 20), installation.clone(), RETENTION_NS, false),
        (welcome_pointer(installation.identifier(), 20), installation, RETENTION_NS, false),
        (person.key_package().unwrap(), person.key_package_topic(), RETENTION_NS, false),
        (commit_log_entry(id, 20), log, 0, false),
    ];
    let metas = client.publish(expected.iter().map(|row| row.0.clone()).collect()).await.unwrap();
    for (meta, (_, topic, retention, is_commit_or_proposal)) in metas.iter().zip(expected) {
        assert_eq!(topic_of(meta), topic);
        let expiry = if retention == 0 { 0 } else { meta.server_ns + retention };
        assert_eq!(meta.expiry_ns, expiry, "{topic:?}");
        assert_eq!(meta.is_commit_or_proposal, is_commit_or_proposal, "{topic:?}");
    }
}

/// Real messages by openmls, in both wire formats.
#[tokio::test]
async fn api_212_commits_and_proposals_are_recognised_by_their_content_type() {
    let backend = Backend::shared().await;
    let client = backend.client();
    for wire_format in [PURE_CIPHERTEXT_WIRE_FORMAT_POLICY, PURE_PLAINTEXT_WIRE_FORMAT_POLICY] {
        let (alice, bob) = (Person::new("Alice").unwrap(), Person::new("Bob").unwrap());
        let Some(Payload::KeyPackage(package)) = bob.key_package().unwrap().payload else {
            panic!("a key package")
        };
        let package = alice.check_key_package(&package.key_package_tls_serialized).unwrap();
        let mut seat = alice.create_group(wire_format).unwrap();
        let invitation = seat.invite(&[package]).unwrap();
        seat.confirm().unwrap();
        let batch = vec![invitation.commit, seat.say("hello").unwrap(), seat.propose_to_leave().unwrap()];
        let metas = client.publish(batch).await.unwrap();
        let flags: Vec<_> = metas.iter().map(|meta| meta.is_commit_or_proposal).collect();
        assert_eq!(flags, [true, false, true], "{wire_format:?}");
        assert!(metas.iter().all(|meta| topic_of(meta) == seat.topic()));
    }
    // An application message in the clear is not what members send, but the framing exists.
    let topic = fresh_group();
    let plain = group_envelope(public_message(topic.identifier(), ContentType::Application, b"hello"));
    assert!(!client.publish_one(plain).await.unwrap().is_commit_or_proposal);
}

#[tokio::test]
async fn api_212_one_publish_has_one_time_and_time_never_falls() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let now = || u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
    let topic = fresh_group();
    let mut last = 0;
    for _ in 0..20 {
        let before = now();
        let metas = client.publish(vec![message_on(&topic), message_on(&topic)]).await.unwrap();
        assert_eq!(metas[0].server_ns, metas[1].server_ns);
        assert!(metas[0].server_ns >= last, "time fell as ids grew");
        last = metas[0].server_ns;
        // The same machine's clock. workerd's stands still between events and has milliseconds.
        assert!(last.abs_diff(before) < 5_000_000_000, "server_ns is {last}, the clock says {before}");
    }
    let stored = client.read(&topic, 0).await.unwrap();
    assert!(stored.is_sorted_by_key(|envelope| (meta(envelope).server_ns, sequence_id(meta(envelope)))));
}
