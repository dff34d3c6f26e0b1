//! Section 7: bounds, each exactly at its limit and one past it.

use std::sync::{Arc, Weak};

use prost::Message as _;
use sealog_proto::backend::{
    ClientEnvelope, Continuation, PublishRequest, QueryNewestResponse, QueryResponse, ServerEnvelope,
    publish_error::Reason, query_newest_response,
};
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::{Backend, Shared};
use sealog_tests::client::{CEILING, PUBLISH, QUERY, id_of};
use sealog_tests::fixtures::{fresh_topic, group_message, random, welcome, with_size};
use sealog_tests::raw::Raw;
use tonic::Code;

use crate::support::{assert_code, assert_refused, fresh_group, ids_of, message_on, meta};
use crate::wire::{field, varint};

const OUT_OF_RANGE: i32 = 11;
const INVALID_ARGUMENT: i32 = 3;

/// The backend with limits that are quick to reach.
async fn small() -> Arc<Backend> {
    static SHARED: Shared = Shared::const_new(Weak::new());
    Backend::once(
        &SHARED,
        &[
            ("MAX_ENVELOPE_BYTES", "1000"),
            ("MAX_REQUEST_BYTES", "4000"),
            ("MAX_RESPONSE_BYTES", "3000"),
            ("MAX_PUBLISH_TOPICS", "3"),
            ("MAX_QUERY_TOPICS", "4"),
            ("MAX_QUERY_LIMIT", "5"),
            ("DEFAULT_QUERY_LIMIT", "2"),
            ("MAX_NEWEST_METADATA_TOPICS", "3"),
            ("MAX_NEWEST_FULL_TOPICS", "2"),
            ("RETENTION_GROUP_MESSAGE_SECONDS", "60"),
            ("RETENTION_WELCOME_SECONDS", "70"),
        ],
    )
    .await
}

fn sized(topic: &Topic, size: usize) -> ClientEnvelope {
    with_size(size, |noise| group_message(topic.identifier(), noise))
}

/// A publish of Welcomes whose encoding has exactly `total` bytes.
fn publish_of(topic: &Topic, envelope_size: usize, total: usize) -> PublishRequest {
    let mut request = PublishRequest::default();
    while total - request.encoded_len() > envelope_size + 5 {
        request.envelopes.push(with_size(envelope_size, |noise| welcome(topic.identifier(), noise)));
    }
    let rest = total - request.encoded_len();
    let prefix = 1 + varint((rest - 2) as u64).len();
    request.envelopes.push(with_size(rest - prefix, |noise| welcome(topic.identifier(), noise)));
    assert_eq!(request.encoded_len(), total);
    request
}

/// A Welcome whose algorithm is -1 in its short spelling: `size` bytes on the wire, 5 more in the backend's encoding.
fn negative_welcome(topic: &Topic, size: usize) -> Vec<u8> {
    let minus_one = [varint(4 << 3), vec![0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
    let of = |noise: usize| {
        let v1 = [field(1, topic.identifier()), field(2, vec![7; noise]), minus_one.clone()].concat();
        field(2, field(1, v1))
    };
    let overhead = of(size).len() - size;
    (0..4)
        .map(|slack| of(size - overhead + slack))
        .find(|bytes| bytes.len() == size)
        .expect("a length that exists")
}

async fn publish_raw(raw: &Raw, request: &[u8]) -> sealog_tests::raw::Unary {
    raw.unary(PUBLISH, request).await.unwrap()
}

#[tokio::test]
async fn api_281_an_envelope_of_one_mebibyte_is_the_largest() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    let one_over = sized(&topic, (1 << 20) + 1);
    let batch = vec![message_on(&topic), one_over];
    assert_refused(client.publish(batch).await, Some(1), Reason::TooLarge);
    client.publish_one(sized(&topic, 1 << 20)).await.unwrap();
    assert_eq!(client.read(&topic, 0).await.unwrap().len(), 1);
}

#[tokio::test]
async fn api_282_a_publish_of_25_mebibytes_is_carried_and_one_byte_more_is_not() {
    let backend = Backend::shared().await;
    let (client, raw) = (backend.client(), backend.raw());
    let topic = fresh_topic(Kind::Welcome);
    let too_long = publish_of(&topic, 1 << 20, CEILING + 1).encode_to_vec();
    assert_eq!(publish_raw(&raw, &too_long).await.code(), OUT_OF_RANGE);
    assert!(client.read(&topic, 0).await.unwrap().is_empty(), "nothing of it is stored");

    let request = publish_of(&topic, 1 << 20, CEILING);
    assert_eq!(request.envelopes.len(), 25);
    let metas = client.publish(request.envelopes.clone()).await.unwrap();
    assert_eq!(client.publish(request.envelopes.clone()).await.unwrap(), metas, "and so is its retry");

    // All 25 are longer than the ceiling once they carry metadata; 24 of them are not (API-283).
    assert_code(client.query(&[(topic.clone(), 0)], 25).await, Code::OutOfRange);
    let page = client.query(&[(topic, 0)], 24).await.unwrap();
    assert!(page.continuation.unwrap().has_more);
    let read: Vec<_> = page.envelopes.into_iter().map(|stored| stored.envelope.unwrap()).collect();
    assert!(read == request.envelopes[..24], "24 envelopes come back as they were sent");
}

#[tokio::test]
async fn api_282_a_request_that_grows_past_25_mebibytes_when_encoded_again_is_too_large() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    let topic = fresh_topic(Kind::Welcome);
    let mut request = field(1, negative_welcome(&topic, 1000));
    let rest = CEILING - request.len();
    request.extend(publish_of(&topic, 1 << 20, rest).encode_to_vec());
    assert_eq!(request.len(), CEILING);
    let answer = publish_raw(&raw, &request).await;
    assert_eq!(answer.code(), INVALID_ARGUMENT, "{}", answer.message());
    let failure = answer.failure().unwrap();
    assert_eq!((failure.index, failure.reason), (None, Reason::TooLarge));
    assert!(backend.client().read(&topic, 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn api_281_topics_of_one_request_are_counted() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topics: Vec<_> = (0..1001).map(|_| fresh_group()).collect();
    let batch: Vec<_> = topics.iter().map(message_on).collect();
    assert_refused(client.publish(batch.clone()).await, None, Reason::TooLarge);
    let metas = client.publish([&batch[..1000], &batch[..200]].concat()).await.unwrap();
    assert_eq!(metas.len(), 1200, "distinct topics count, not envelopes");

    let positions: Vec<_> = topics.iter().map(|topic| (topic.clone(), 0)).collect();
    assert_code(client.query(&positions, 1).await, Code::InvalidArgument);
    assert_eq!(client.query(&positions[..1000], 1000).await.unwrap().envelopes.len(), 1000);
    let repeated = vec![positions[0].clone(); 1001];
    assert_code(client.query(&repeated, 1).await, Code::InvalidArgument); // counted before they are merged

    assert_code(client.query_newest(&topics, false).await, Code::InvalidArgument);
    assert_eq!(client.query_newest(&topics[..1000], false).await.unwrap().len(), 1000);
    assert_code(client.query_newest(&topics[..101], true).await, Code::InvalidArgument);
    assert_eq!(client.query_newest(&topics[..100], true).await.unwrap().len(), 100);
    let repeated = vec![topics[0].clone(); 101];
    assert_code(client.query_newest(&repeated, true).await, Code::InvalidArgument);
}

#[tokio::test]
async fn api_281_reads_refuse_what_is_no_topic() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let raw = backend.raw();
    let good = fresh_group();
    for bad in
        [vec![], vec![0], vec![5; 17], vec![0xff; 33], vec![0; 16], vec![0; 18], vec![1; 17], vec![3; 34]]
    {
        for path in [QUERY, sealog_tests::client::QUERY_NEWEST] {
            // Both requests hold topics in field 1; a TopicQuery wraps each once more.
            let wrap = |topic: &[u8]| {
                let message = field(1, topic);
                field(1, if path == QUERY { field(1, message) } else { message })
            };
            let answer = raw.unary(path, &[wrap(good.as_bytes()), wrap(&bad)].concat()).await.unwrap();
            assert_eq!(answer.code(), INVALID_ARGUMENT, "{path}: {bad:?}");
            assert!(answer.failure().is_none(), "only a publish has a PublishError");
        }
    }
    let no_topic = raw.unary(QUERY, &field(1, b"")).await.unwrap();
    assert_eq!(no_topic.code(), INVALID_ARGUMENT, "a query without a topic");
    assert_code(client.query(&[(good, u64::MAX)], 1).await, Code::InvalidArgument);
}

#[tokio::test]
async fn api_281_lowered_bounds_hold_exactly() {
    let backend = small().await;
    let client = backend.client();
    let topic = fresh_group();
    assert_refused(client.publish_one(sized(&topic, 1001)).await, Some(0), Reason::TooLarge);
    client.publish_one(sized(&topic, 1000)).await.unwrap();

    let topics: Vec<_> = (0..5).map(|_| fresh_group()).collect();
    let messages: Vec<_> = topics.iter().map(message_on).collect();
    assert_refused(client.publish(messages[..4].to_vec()).await, None, Reason::TooLarge);
    client.publish(messages[..3].to_vec()).await.unwrap();

    let positions: Vec<_> = topics.iter().map(|topic| (topic.clone(), 0)).collect();
    assert_code(client.query(&positions, 1).await, Code::InvalidArgument);
    assert_eq!(client.query(&positions[..4], 5).await.unwrap().envelopes.len(), 3);
    assert_code(client.query_newest(&topics[..4], false).await, Code::InvalidArgument);
    assert_eq!(client.query_newest(&topics[..3], false).await.unwrap().len(), 3);
    assert_code(client.query_newest(&topics[..3], true).await, Code::InvalidArgument);
    assert_eq!(client.query_newest(&topics[..2], true).await.unwrap().len(), 2);
}

#[tokio::test]
async fn api_241_lowered_limits_are_what_pages_follow() {
    let backend = small().await;
    let client = backend.client();
    let topic = fresh_group();
    let batch = (0..7).map(|_| message_on(&topic)).collect();
    client.publish(batch).await.unwrap();
    for (limit, size) in [(0, 2), (1, 1), (4, 4), (5, 5), (6, 5), (1000, 5)] {
        assert_eq!(
            client.query(&[(topic.clone(), 0)], limit).await.unwrap().envelopes.len(),
            size,
            "limit {limit}"
        );
    }
}

#[tokio::test]
async fn api_212_expiry_follows_the_configured_retention() {
    let backend = small().await;
    let client = backend.client();
    for (topic, seconds) in [(fresh_group(), 60), (fresh_topic(Kind::Welcome), 70)] {
        let published = client.publish_one(message_on(&topic)).await.unwrap();
        assert_eq!(published.expiry_ns - published.server_ns, seconds * 1_000_000_000);
    }
}

#[tokio::test]
async fn api_282_the_wire_length_of_every_request_is_bounded() {
    let backend = small().await;
    let (client, raw) = (backend.client(), backend.raw());
    let topic = fresh_topic(Kind::Welcome);
    let longest = publish_of(&topic, 900, 4000);
    let one_over = publish_of(&topic, 900, 4001);
    assert_code(client.publish(one_over.envelopes).await, Code::OutOfRange);
    assert!(client.read(&topic, 0).await.unwrap().is_empty());
    client.publish(longest.envelopes).await.unwrap();

    // The wire counts, not what the request comes to when it is decoded: this one is mostly an unknown field.
    let padded = |total: usize| {
        let query = field(1, field(1, field(1, fresh_group().as_bytes())));
        let padding = field(99, vec![0; total - query.len() - 4]);
        [query, padding].concat()
    };
    assert_eq!(padded(4000).len(), 4000);
    assert_eq!(raw.unary(QUERY, &padded(4000)).await.unwrap().code(), 0);
    assert_eq!(raw.unary(QUERY, &padded(4001)).await.unwrap().code(), OUT_OF_RANGE);
    let unread = [field(1, negative_welcome(&topic, 500)), field(99, vec![0; 4000])].concat();
    assert_eq!(publish_raw(&raw, &unread).await.code(), OUT_OF_RANGE);
}

#[tokio::test]
async fn api_281_short_spellings_are_measured_as_the_backend_encodes_them() {
    let backend = small().await;
    let raw = backend.raw();
    let topic = fresh_topic(Kind::Welcome);

    // One envelope: 996 bytes on the wire are 1,001 as stored, 995 are exactly 1,000.
    let batch = [field(1, negative_welcome(&topic, 300)), field(1, negative_welcome(&topic, 996))].concat();
    let answer = publish_raw(&raw, &batch).await;
    assert_eq!(answer.code(), INVALID_ARGUMENT);
    let failure = answer.failure().unwrap();
    assert_eq!((failure.index, failure.reason), (Some(1), Reason::TooLarge));
    assert_eq!(publish_raw(&raw, &field(1, negative_welcome(&topic, 995))).await.code(), 0);

    // The request: within 4,000 bytes on the wire, over it as the backend encodes it.
    let part = field(1, negative_welcome(&topic, 797));
    let last = field(1, negative_welcome(&topic, 4000 - 4 * part.len() - 3));
    let request = [part.repeat(4), last].concat();
    assert_eq!(request.len(), 4000);
    let answer = publish_raw(&raw, &request).await;
    assert_eq!(answer.code(), INVALID_ARGUMENT);
    let failure = answer.failure().unwrap();
    assert_eq!((failure.index, failure.reason), (None, Reason::TooLarge));
}

/// The encoded length of a page that holds these envelopes.
fn page_length(envelopes: &[ServerEnvelope], has_more: bool) -> usize {
    let continuation = Some(Continuation { has_more });
    QueryResponse { envelopes: envelopes.to_vec(), continuation }.encoded_len()
}

/// Publishes three envelopes to a topic, so that a page with all of them has exactly `total` bytes.
async fn page_of(backend: &Backend, total: usize) -> (Topic, Vec<ServerEnvelope>) {
    let client = backend.client();
    // A length prefix or a sequence id may turn out a byte longer than planned: then once more.
    for _ in 0..10 {
        let topic = fresh_group();
        client.publish(vec![sized(&topic, 900), sized(&topic, 900)]).await.unwrap();
        let two = client.read(&topic, 0).await.unwrap();
        let metadata = meta(&two[1]).encoded_len() + 2;
        let third = total - page_length(&two, false) - metadata - 3 - 3;
        client.publish_one(sized(&topic, third)).await.unwrap();
        let last = client.query(&[(topic.clone(), id_of(&two[1]))], 1).await.unwrap().envelopes;
        let all = [two, last].concat();
        if page_length(&all, false) == total {
            return (topic, all);
        }
    }
    panic!("no page of exactly {total} bytes came about");
}

#[tokio::test]
async fn api_282_283_a_page_of_the_longest_length_is_whole_and_a_longer_one_fails() {
    let backend = small().await;
    let client = backend.client();
    let (topic, stored) = page_of(&backend, 3000).await;
    let page = client.query(&[(topic, 0)], 5).await.unwrap();
    assert_eq!(page.envelopes, stored);

    let (topic, stored) = page_of(&backend, 3001).await;
    assert_code(client.query(&[(topic.clone(), 0)], 5).await, Code::OutOfRange);
    assert_code(client.query(&[(topic.clone(), 0)], 3).await, Code::OutOfRange);
    // A client that asks for less gets it, page by page.
    let page = client.query(&[(topic.clone(), 0)], 2).await.unwrap();
    assert_eq!(page.envelopes, stored[..2]);
    assert!(page.continuation.unwrap().has_more);
    assert_eq!(client.read(&topic, 0).await.unwrap(), stored);
}

#[tokio::test]
async fn api_283_newest_envelopes_that_do_not_fit_fail_the_answer() {
    let backend = Backend::start(&[
        ("MAX_ENVELOPE_BYTES", "1000"),
        ("MAX_RESPONSE_BYTES", "3000"),
        ("MAX_NEWEST_FULL_TOPICS", "10"),
    ])
    .await;
    let client = backend.client();
    let topics: Vec<_> = (0..4).map(|_| fresh_group()).collect();
    client.publish(topics.iter().map(|topic| sized(topic, 900)).collect()).await.unwrap();
    assert_code(client.query_newest(&topics, true).await, Code::OutOfRange);
    let results = client.query_newest(&topics[..2], true).await.unwrap();
    assert_eq!(results.len(), 2);
    assert!(QueryNewestResponse { results: results.clone() }.encoded_len() < 3000);
    assert!(results.iter().all(|result: &query_newest_response::Result| result.envelope.is_some()));
    assert_eq!(client.query_newest(&topics, false).await.unwrap().len(), 4, "metadata alone fits");
}

/// The answer to 40 small envelopes is longer than 3,000 bytes, whatever became of the publish.
#[tokio::test]
async fn api_224_290_a_query_settles_a_publish_that_ended_in_out_of_range() {
    let backend = small().await;
    let client = backend.client();
    for _ in 0..3 {
        let id = random::<16>();
        let topic = Topic::derive(Kind::GroupMessage, &id).unwrap();
        let batch: Vec<_> = (0..40).map(|_| bare_message(&topic)).collect();
        assert_code(client.publish(batch.clone()).await, Code::OutOfRange);

        let settled = client.read(&topic, 0).await.unwrap();
        assert!(settled.is_empty() || settled.len() == 40, "half of a publish is stored");
        let read: Vec<_> = settled.iter().map(|stored| stored.envelope.clone().unwrap()).collect();
        assert!(settled.is_empty() || read == batch);
        // What is stored stays as it is; what is not is stored now, when a client sends it in parts.
        for (at, envelope) in batch.iter().enumerate() {
            let published = client.publish_one(envelope.clone()).await.unwrap();
            if let Some(stored) = settled.get(at) {
                assert_eq!(meta(stored), &published);
            }
        }
        assert_eq!(ids_of(&client.read(&topic, 0).await.unwrap()).len(), 40);
    }
}

/// The smallest group message that parses, different each time.
fn bare_message(topic: &Topic) -> ClientEnvelope {
    use sealog_proto::backend::{GroupMessage, client_envelope::Payload};
    use sealog_tests::fixtures::{ContentType, private_message};
    let data = private_message(topic.identifier(), ContentType::Application, &random::<8>()).into();
    ClientEnvelope { payload: Some(Payload::GroupMessage(GroupMessage { data, ..Default::default() })) }
}
