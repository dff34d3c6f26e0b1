//! Section 3: publish.

use openmls::prelude::PURE_CIPHERTEXT_WIRE_FORMAT_POLICY;
use prost::Message as _;
use sealog_proto::backend::PublishRequest;
use sealog_proto::backend::{ClientEnvelope, client_envelope::Payload, publish_error::Reason};
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::Backend;
use sealog_tests::client::{PUBLISH, topic_of};
use sealog_tests::fixtures::{Person, commit_log_entry, fresh_topic, group_envelope, group_message, welcome};
use sealog_tests::raw::{GRPC_WEB, MESSAGE, frame};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

use crate::support::{assert_refused, fresh_group, ids, ids_of, message_on, meta};

fn malformed() -> ClientEnvelope {
    group_envelope(b"no MLS message".to_vec())
}

#[tokio::test]
async fn api_220_a_commit_and_its_welcome_are_stored_together() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (alice, bob) = (Person::new("Alice").unwrap(), Person::new("Bob").unwrap());
    let Some(Payload::KeyPackage(package)) = bob.key_package().unwrap().payload else {
        panic!("a key package")
    };
    let package = alice.check_key_package(&package.key_package_tls_serialized).unwrap();
    let mut seat = alice.create_group(PURE_CIPHERTEXT_WIRE_FORMAT_POLICY).unwrap();
    let invitation = seat.invite(&[package]).unwrap();
    let metas = client.publish([vec![invitation.commit], invitation.welcomes].concat()).await.unwrap();

    let commits = client.read(&seat.topic(), 0).await.unwrap();
    let welcomes = client.read(&bob.welcome_topic(), 0).await.unwrap();
    assert_eq!([meta(&commits[0]), meta(&welcomes[0])], [&metas[0], &metas[1]]);
    assert_eq!(metas[0].server_ns, metas[1].server_ns, "one transaction, one time");
}

#[tokio::test]
async fn api_220_223_a_refused_publish_stores_nothing() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (topic, installation) = (fresh_group(), fresh_topic(Kind::Welcome));
    for at in 0..3 {
        let mut batch = vec![message_on(&topic), message_on(&installation), message_on(&topic)];
        batch[at] = malformed();
        let index = Some(u32::try_from(at).unwrap());
        assert_refused(client.publish(batch).await, index, Reason::MalformedPayload);
    }
    assert!(client.read(&topic, 0).await.unwrap().is_empty());
    assert!(client.read(&installation, 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn api_220_222_of_a_mixed_publish_only_the_new_envelopes_are_stored() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    let old = message_on(&topic);
    let stored = client.publish_one(old.clone()).await.unwrap();
    let (before, after) = (message_on(&topic), message_on(&topic));
    let metas = client.publish(vec![before, old, after]).await.unwrap();
    assert_eq!(metas[1], stored);
    assert_eq!(metas[0].server_ns, metas[2].server_ns);
    let ids = ids(&metas);
    assert!(ids[1] < ids[0] && ids[0] < ids[2]);
    assert_eq!(ids_of(&client.read(&topic, 0).await.unwrap()), [ids[1], ids[0], ids[2]]);
}

#[tokio::test]
async fn api_221_every_envelope_has_its_entry_at_its_index() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topics: Vec<Topic> =
        (0..60).map(|i| if i % 3 == 0 { fresh_topic(Kind::Welcome) } else { fresh_group() }).collect();
    // Every topic twice, in an order of its own, and one envelope three times over.
    let mut batch: Vec<_> = topics.iter().chain(topics.iter().rev()).map(message_on).collect();
    batch.extend([batch[5].clone(), batch[5].clone()]);
    let metas = client.publish(batch).await.unwrap();
    assert_eq!(metas.len(), 122);
    for (meta, topic) in metas.iter().zip(topics.iter().chain(topics.iter().rev())) {
        assert_eq!(topic_of(meta), *topic);
    }
    assert_eq!([&metas[120], &metas[121]], [&metas[5], &metas[5]]);
}

#[tokio::test]
async fn api_221_an_empty_publish_succeeds_with_an_empty_answer() {
    let backend = Backend::shared().await;
    assert_eq!(backend.client().publish(vec![]).await.unwrap(), []);
}

#[tokio::test]
async fn api_222_a_retry_gets_the_stored_metadata() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    let batch = vec![message_on(&topic), commit_log_entry(topic.identifier(), 9), welcome(&[7; 32], 30)];
    let first = client.publish(batch.clone()).await.unwrap();
    for _ in 0..3 {
        client.publish_one(message_on(&topic)).await.unwrap();
        assert_eq!(client.publish(batch.clone()).await.unwrap(), first);
    }
    // One by one and in another order, they are still the same envelopes.
    for (envelope, meta) in batch.into_iter().zip(first).rev() {
        assert_eq!(client.publish_one(envelope).await.unwrap(), meta);
    }
    assert_eq!(client.read(&topic, 0).await.unwrap().len(), 4);
}

#[tokio::test]
async fn api_222_copies_in_one_request_are_stored_once() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    let envelope = message_on(&topic);
    let metas = client.publish(vec![envelope; 10]).await.unwrap();
    assert!(metas.iter().all(|meta| *meta == metas[0]), "{metas:?}");
    assert_eq!(ids_of(&client.read(&topic, 0).await.unwrap()), ids(&metas[..1]));
}

/// Field report 13: a client that retries before the first attempt is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_222_copies_in_flight_at_the_same_time_are_stored_once() {
    let backend = Backend::shared().await;
    for _ in 0..5 {
        let topic = fresh_group();
        let batch = vec![message_on(&topic), message_on(&topic)];
        let mut copies = JoinSet::new();
        for _ in 0..20 {
            let (client, batch) = (backend.client(), batch.clone());
            copies.spawn(async move { client.publish(batch).await.unwrap() });
        }
        let answers = copies.join_all().await;
        assert!(answers.iter().all(|metas| *metas == answers[0]), "copies got different metadata");
        assert_eq!(ids_of(&backend.client().read(&topic, 0).await.unwrap()), ids(&answers[0]));
    }
}

/// Overlapping publishes: each pair shares one envelope, in opposite places.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_222_overlapping_publishes_in_flight_agree() {
    let backend = Backend::shared().await;
    let topic = fresh_group();
    let shared: Vec<_> = (0..6).map(|_| message_on(&topic)).collect();
    let mut publishes = JoinSet::new();
    for first in 0..6 {
        for second in 0..6 {
            let (client, pair) = (backend.client(), vec![shared[first].clone(), shared[second].clone()]);
            publishes.spawn(async move { ((first, second), client.publish(pair).await.unwrap()) });
        }
    }
    let mut agreed: [Option<sealog_proto::backend::EnvelopeMeta>; 6] = Default::default();
    for ((first, second), metas) in publishes.join_all().await {
        for (which, meta) in [first, second].into_iter().zip(metas) {
            assert_eq!(*agreed[which].get_or_insert(meta.clone()), meta, "envelope {which}");
        }
    }
    assert_eq!(backend.client().read(&topic, 0).await.unwrap().len(), 6);
}

#[tokio::test]
async fn api_222_the_same_payload_on_two_topics_is_two_envelopes() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (left, right) = (fresh_group(), fresh_group());
    let metas = client.publish(vec![message_on(&left), message_on(&right)]).await.unwrap();
    assert_ne!(ids(&metas)[0], ids(&metas)[1]);
}

#[tokio::test]
async fn api_222_a_duplicate_must_still_parse_and_keep_the_bounds() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    let old = message_on(&topic);
    client.publish_one(old.clone()).await.unwrap();
    let batch = vec![old.clone(), malformed(), old.clone()];
    assert_refused(client.publish(batch).await, Some(1), Reason::MalformedPayload);
    // 1,001 topics with a duplicate among them: the bound counts what is asked, not what is new.
    let mut wide: Vec<_> = (0..1000).map(|_| message_on(&fresh_group())).collect();
    wide.push(old);
    assert_refused(client.publish(wide).await, None, Reason::TooLarge);
}

#[tokio::test]
async fn api_223_the_lowest_failing_index_is_named() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let good = || message_on(&fresh_group());
    let too_large = || group_message(&[1; 16], (1 << 20) + 1);
    for (batch, index, reason) in [
        (vec![malformed()], 0, Reason::MalformedPayload),
        (vec![good(), good(), malformed(), good(), malformed()], 2, Reason::MalformedPayload),
        (vec![good(), too_large(), malformed()], 1, Reason::TooLarge),
        (vec![good(), malformed(), too_large()], 1, Reason::MalformedPayload),
        (vec![good(), good(), good(), ClientEnvelope { payload: None }], 3, Reason::MalformedPayload),
    ] {
        assert_refused(client.publish(batch).await, Some(index), reason);
    }
}

/// The client is gone before the answer: the publish counts or not, and a retry finds out (field report 13).
#[tokio::test]
async fn api_224_a_retry_settles_a_publish_whose_answer_was_lost() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let address = backend.url().trim_start_matches("http://").to_owned();
    for round in 0..10 {
        let topic = fresh_group();
        let batch = vec![message_on(&topic), message_on(&topic)];
        let body = frame(MESSAGE, &PublishRequest { envelopes: batch.clone() }.encode_to_vec());
        let head = format!(
            "POST {PUBLISH} HTTP/1.1\r\nhost: {address}\r\ncontent-type: {GRPC_WEB}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
        socket.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        if round % 2 == 0 {
            // The request has surely been taken up before the client goes.
            client.health("").await.unwrap();
        }
        drop(socket);

        let metas = client.publish(batch.clone()).await.unwrap();
        assert_eq!(ids_of(&client.read(&topic, 0).await.unwrap()), ids(&metas));
        assert_eq!(client.publish(batch).await.unwrap(), metas);
    }
}
