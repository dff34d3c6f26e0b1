//! Streams as large as the limits allow.

use std::time::{Duration, Instant};

use sealog_proto::backend::subscribe_static_response::Response;
use sealog_tests::backend::Backend;
use sealog_tests::client::id_of;
use sealog_tests::status::{self, OPEN};
use sealog_tests::stream::Stream;

use crate::support::{fill, from_start, publish, sorted, topic, topics};

#[tokio::test]
async fn api_252_a_hundred_thousand_topics_are_registered_by_one_update_and_survive_sleep() {
    let backend = Backend::start(&[OPEN]).await;
    let (client, raw) = (backend.client(), backend.raw());
    let all = topics(100_000);
    let some: Vec<_> = all.iter().step_by(1_000).cloned().collect();
    let stored = publish(&client, &some).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    let before = status::read(&raw).await.unwrap();
    let begun = Instant::now();
    let targets = stream.apply(&from_start(&all), &[]).await.unwrap();
    println!("Applied after {} ms", begun.elapsed().as_millis());
    assert_eq!(targets.len(), all.len());
    assert_eq!(targets.iter().step_by(1_000).copied().collect::<Vec<_>>(), stored);
    assert_eq!(sorted(stream.receive(some.len()).await.unwrap()), sorted(stored));

    tokio::time::sleep(Duration::from_secs(14)).await;
    let stored = publish(&client, &some[..2]).await;
    assert_eq!(sorted(stream.receive(2).await.unwrap()), sorted(stored));
    let after = status::read(&raw).await.unwrap();
    assert!(after.streams["wakes"] > before.streams["wakes"], "it slept");
    assert_eq!(after.streams["busy_restarts"], 0);
}

/// More pages of history than the calls that one event of an object may make: the session goes on in others.
const ROWS: usize = 40_000;

#[tokio::test]
async fn api_254_a_history_of_more_pages_than_one_event_may_fetch_is_delivered_whole() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = topic();
    let stored = fill(&client, &topic, ROWS, 16).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&from_start(std::slice::from_ref(&topic)), &[]).await.unwrap();
    assert_eq!(stream.receive(ROWS).await.unwrap(), stored);

    let mut stream = client.subscribe_static(&from_start(std::slice::from_ref(&topic))).await.unwrap();
    let mut received = Vec::with_capacity(ROWS);
    while received.len() < ROWS {
        match stream.message().await.unwrap().unwrap().response.unwrap() {
            Response::Messages(messages) => received.extend(messages.envelopes.iter().map(id_of)),
            Response::Started(_) | Response::Keepalive(_) => {}
        }
    }
    assert_eq!(received, stored);
}
