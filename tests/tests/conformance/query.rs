//! Section 4: Query.

use std::collections::HashMap;

use sealog_proto::backend::QueryRequest;
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, QUERY, id_of, topic_of, topic_query};
use sealog_tests::fixtures::{Person, fresh_topic, welcome};
use tonic::Code;

use crate::support::{assert_code, fresh_group, ids, ids_of, message_on, meta};

/// Publishes `count` envelopes on each topic, interleaved, and returns each topic's ids.
async fn fill(client: &Client, topics: &[Topic], count: usize) -> HashMap<Topic, Vec<u64>> {
    let mut stored: HashMap<Topic, Vec<u64>> = HashMap::new();
    for _ in 0..count {
        for meta in client.publish(topics.iter().map(message_on).collect()).await.unwrap() {
            stored.entry(topic_of(&meta)).or_default().push(meta.cursor.unwrap().sequence_id);
        }
    }
    stored
}

#[tokio::test]
async fn api_240_pages_of_any_size_cover_every_topic_without_holes() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topics = [fresh_group(), fresh_topic(Kind::Welcome), fresh_group(), fresh_group()];
    let stored = fill(&client, &topics[..3], 7).await; // nothing on the last topic
    for limit in [1, 2, 3, 5, 7, 20, 21, 22] {
        let mut read: HashMap<Topic, Vec<u64>> = HashMap::new();
        loop {
            let cursor = |topic: &Topic| read.get(topic).map_or(0, |ids| *ids.last().unwrap());
            let positions: Vec<_> = topics.iter().map(|topic| (topic.clone(), cursor(topic))).collect();
            let left = 21 - read.values().map(Vec::len).sum::<usize>();
            let page = client.query(&positions, limit).await.unwrap();
            let size = usize::try_from(limit).unwrap();
            assert!(page.envelopes.len() <= size);
            assert!(left == 0 || !page.envelopes.is_empty(), "something is eligible, and the page is empty");
            let has_more = page.continuation.unwrap().has_more;
            assert_eq!(has_more, left > size, "has_more, with {left} eligible and a limit of {limit}");
            for envelope in &page.envelopes {
                read.entry(topic_of(meta(envelope))).or_default().push(id_of(envelope));
            }
            for (topic, ids) in &read {
                assert!(stored[topic].starts_with(ids), "a hole: {ids:?} of {:?}", stored[topic]);
            }
            if !has_more {
                break;
            }
        }
        assert_eq!(read, stored, "with pages of {limit}");
    }
}

#[tokio::test]
async fn api_240_a_page_lies_above_the_cursor_of_its_topic() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topics = [fresh_group(), fresh_group()];
    let stored = fill(&client, &topics, 5).await;
    let [left, right] = topics.each_ref().map(|topic| &stored[topic]);
    for (after_left, after_right) in [(2, 4), (0, 5), (5, 5), (3, 0)] {
        let at = |ids: &[u64], count: usize| count.checked_sub(1).map_or(0, |last| ids[last]);
        let positions =
            [(topics[0].clone(), at(left, after_left)), (topics[1].clone(), at(right, after_right))];
        let page = client.query(&positions, 0).await.unwrap();
        let on = |topic: &Topic| {
            let envelopes = page.envelopes.iter().filter(|envelope| topic_of(meta(envelope)) == *topic);
            envelopes.map(id_of).collect::<Vec<_>>()
        };
        assert_eq!(on(&topics[0]), left[after_left..]);
        assert_eq!(on(&topics[1]), right[after_right..]);
    }
    // A cursor between two ids of the topic is a position like any other.
    let page = client.query(&[(topics[0].clone(), left[1] + 1)], 0).await.unwrap();
    assert_eq!(ids_of(&page.envelopes), left[2..]);
}

#[tokio::test]
async fn api_240_an_absent_cursor_reads_from_the_beginning() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    let stored = fill(&client, std::slice::from_ref(&topic), 2).await;
    let query = sealog_proto::backend::TopicQuery { topic: Some((&topic).into()), cursor: None };
    let request = QueryRequest { queries: vec![query], limit: 0 };
    let page: sealog_proto::backend::QueryResponse = client.call(QUERY, request).await.unwrap();
    assert_eq!(ids_of(&page.envelopes), stored[&topic]);
}

#[tokio::test]
async fn api_240_an_empty_query_has_an_empty_page() {
    let backend = Backend::shared().await;
    let page = backend.client().query(&[], 0).await.unwrap();
    assert!(page.envelopes.is_empty() && !page.continuation.unwrap_or_default().has_more);
    let page = backend.client().query(&[(fresh_group(), 0)], 0).await.unwrap();
    assert!(page.envelopes.is_empty() && !page.continuation.unwrap_or_default().has_more);
}

#[tokio::test]
async fn api_241_the_default_is_100_and_the_ceiling_1000() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_topic(Kind::Welcome);
    let batch = (0..1001).map(|_| welcome(topic.identifier(), 8)).collect();
    let stored = ids(&client.publish(batch).await.unwrap());
    for (limit, size) in
        [(0, 100), (1, 1), (99, 99), (101, 101), (1000, 1000), (1001, 1000), (u32::MAX, 1000)]
    {
        let page = client.query(&[(topic.clone(), 0)], limit).await.unwrap();
        assert_eq!(ids_of(&page.envelopes), stored[..size], "with limit {limit}");
        assert!(page.continuation.unwrap().has_more);
    }
    let page = client.query(&[(topic, stored[0])], u32::MAX).await.unwrap();
    assert_eq!(page.envelopes.len(), 1000);
    assert!(!page.continuation.unwrap().has_more, "exactly the ceiling was left");
}

#[tokio::test]
async fn api_242_a_repeated_topic_is_read_once_from_its_lowest_cursor() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topics = [fresh_group(), fresh_group()];
    let stored = fill(&client, &topics, 4).await;
    let ids = &stored[&topics[0]];
    for order in [[3, 1, 2], [1, 2, 3], [2, 3, 1]] {
        let mut positions: Vec<_> = order.map(|i| (topics[0].clone(), ids[i - 1])).to_vec();
        positions.insert(1, (topics[1].clone(), u64::from(u32::MAX)));
        let page = client.query(&positions, 0).await.unwrap();
        assert_eq!(ids_of(&page.envelopes), ids[1..]);
        assert!(!page.continuation.unwrap().has_more, "the limit was not reached");
    }
    // No cursor at all is the lowest one.
    let absent = sealog_proto::backend::TopicQuery { topic: Some((&topics[0]).into()), cursor: None };
    let request = QueryRequest { queries: vec![topic_query(&topics[0], ids[2]), absent], limit: 0 };
    let page: sealog_proto::backend::QueryResponse = client.call(QUERY, request).await.unwrap();
    assert_eq!(ids_of(&page.envelopes), *ids);
}

#[tokio::test]
async fn api_242_bad_cursors_are_refused_before_topics_are_merged() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    assert_code(client.query(&[(topic.clone(), 1 << 63), (topic, 0)], 0).await, Code::InvalidArgument);
}

#[tokio::test]
async fn api_243_key_package_topics_cannot_be_paged() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let person = Person::new("Kay").unwrap();
    client.publish_one(person.key_package().unwrap()).await.unwrap();
    let packages = (person.key_package_topic(), 0);
    assert_code(client.query(std::slice::from_ref(&packages), 0).await, Code::InvalidArgument);
    let mixed = [(fresh_group(), 0), packages, (person.welcome_topic(), 0)];
    let status = client.query(&mixed, 0).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.details().is_empty(), "only a publish has a PublishError");
    // Every other kind is accepted.
    for kind in [Kind::GroupMessage, Kind::Welcome, Kind::IdentityUpdate, Kind::CommitLog] {
        assert!(client.query(&[(fresh_topic(kind), 0)], 0).await.unwrap().envelopes.is_empty());
    }
}

/// Field report 15: two commits of one epoch are in the same order for everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_201_competing_commits_have_one_order_for_all_readers() {
    use openmls::prelude::PURE_CIPHERTEXT_WIRE_FORMAT_POLICY;
    let backend = Backend::shared().await;
    let (alice, bob) = (Person::new("Alice").unwrap(), Person::new("Bob").unwrap());
    let Some(sealog_proto::backend::client_envelope::Payload::KeyPackage(package)) =
        bob.key_package().unwrap().payload
    else {
        panic!("a key package")
    };
    let package = alice.check_key_package(&package.key_package_tls_serialized).unwrap();
    let mut first = alice.create_group(PURE_CIPHERTEXT_WIRE_FORMAT_POLICY).unwrap();
    let invitation = first.invite(&[package]).unwrap();
    first.confirm().unwrap();
    let welcome = invitation.welcome_data().to_vec();
    let mut second = bob.join(&welcome, PURE_CIPHERTEXT_WIRE_FORMAT_POLICY).unwrap();

    let (from_alice, from_bob) = (first.rotate().unwrap(), second.rotate().unwrap());
    let (a, b) = (backend.client(), backend.client());
    let (to_a, to_b) = tokio::join!(a.publish_one(from_alice.clone()), b.publish_one(from_bob));
    assert_ne!(to_a.as_ref().unwrap(), to_b.as_ref().unwrap());
    let order = ids_of(&a.read(&first.topic(), 0).await.unwrap());
    assert_eq!(order.len(), 2);
    for _ in 0..5 {
        assert_eq!(ids_of(&backend.client().read(&first.topic(), 0).await.unwrap()), order);
    }
    // A retry of either changes nothing.
    assert_eq!(b.publish_one(from_alice).await.unwrap(), to_a.unwrap());
    assert_eq!(ids_of(&b.read(&first.topic(), 0).await.unwrap()), order);
}
