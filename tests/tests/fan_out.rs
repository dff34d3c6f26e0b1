//! Reads call each partition at most once, however many topics they name.

use std::collections::HashSet;
use std::sync::Arc;

use sealog_proto::{Kind, Topic};
use sealog_tests::backend::Backend;
use sealog_tests::client::id_of;
use sealog_tests::fixtures::{fresh_topic, group_message};
use sealog_tests::status;
use tokio::task::JoinSet;
use tonic::codegen::http::{Method, StatusCode};

const PARTITIONS: u64 = 8;

/// Publishes one envelope to each topic, each in a request of its own.
async fn fill(backend: &Backend, topics: &Arc<[Topic]>) {
    let mut publishers = JoinSet::new();
    for who in 0..16 {
        let (client, topics) = (backend.client(), topics.clone());
        publishers.spawn(async move {
            for topic in topics.iter().skip(who).step_by(16) {
                client.publish_one(group_message(topic.identifier(), 32)).await.unwrap();
            }
        });
    }
    publishers.join_all().await;
}

/// Proves the same for API-240 and API-244: nothing is missing in the one answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_1000_topics_make_at_most_one_call_to_each_partition() {
    let backend = Backend::start(&[("LOG_PARTITIONS", "8"), status::OPEN]).await;
    let raw = backend.raw();
    let topics: Arc<[Topic]> = (0..1000).map(|_| fresh_topic(Kind::GroupMessage)).collect();
    fill(&backend, &topics).await;
    let client = backend.client();

    let before = status::read(&raw).await.unwrap();
    let positions: Vec<_> = topics.iter().map(|topic| (topic.clone(), 0)).collect();
    let page = client.query(&positions, 1000).await.unwrap();
    assert_eq!(page.envelopes.iter().map(id_of).collect::<HashSet<_>>().len(), 1000);
    assert!(!page.continuation.unwrap().has_more);
    let after = status::read(&raw).await.unwrap();
    let calls = after.calls_since(&before);
    assert!(calls.values().sum::<u64>() <= PARTITIONS, "a Query of 1,000 topics made {calls:?}");
    assert!(!calls.is_empty(), "the calls are counted");

    let newest = client.query_newest(&topics, false).await.unwrap();
    assert_eq!(newest.len(), 1000);
    let calls = status::read(&raw).await.unwrap().calls_since(&after);
    assert!(calls.values().sum::<u64>() <= PARTITIONS, "a QueryNewest of 1,000 topics made {calls:?}");
}

/// Also with more partitions than one wave of calls, every page is full and whole.
#[tokio::test]
async fn api_240_241_pages_over_8_partitions_are_full_and_whole() {
    let backend = Backend::start(&[("LOG_PARTITIONS", "8")]).await;
    let topics: Arc<[Topic]> = (0..40).map(|_| fresh_topic(Kind::GroupMessage)).collect();
    for _ in 0..3 {
        fill(&backend, &topics).await;
    }
    let client = backend.client();
    let mut cursors: Vec<(Topic, u64)> = topics.iter().map(|topic| (topic.clone(), 0)).collect();
    let mut read = 0;
    loop {
        let page = client.query(&cursors, 13).await.unwrap();
        let left = 120 - read;
        assert_eq!(page.envelopes.len(), left.min(13));
        for envelope in &page.envelopes {
            let named = envelope.meta.as_ref().unwrap().topic.as_ref().unwrap();
            let (_, cursor) = cursors.iter_mut().find(|(topic, _)| *topic.as_bytes() == named.topic).unwrap();
            assert!(id_of(envelope) > *cursor);
            *cursor = id_of(envelope);
        }
        read += page.envelopes.len();
        assert_eq!(page.continuation.unwrap().has_more, left > 13);
        if left <= 13 {
            break;
        }
    }
    assert_eq!(read, 120);
}

/// A client without the token sees nothing, not even that the page exists.
#[tokio::test]
async fn the_status_page_is_closed_without_its_token() {
    let backend = Backend::start(&[status::OPEN]).await;
    let raw = backend.raw();
    for headers in [&[][..], &[("authorization", "Bearer another token, of the same length")]] {
        let answer = raw.send(Method::GET, status::PATH, headers, b"".to_vec()).await.unwrap();
        assert_ne!(answer.status, StatusCode::OK);
        assert!(!String::from_utf8_lossy(&answer.body).contains("object_calls"));
    }
}
