//! `SubscribeStatic`: a fixed set of topics, over gRPC-Web.

use std::sync::Weak;
use std::time::Duration;

use sealog_proto::backend::subscribe_static_response::{Response, Started};
use sealog_proto::backend::{ServerEnvelope, SubscribeStaticResponse};
use sealog_tests::backend::{Backend, Shared};
use sealog_tests::client::id_of;
use sealog_tests::status::OPEN;
use sealog_tests::stream::targets;
use tokio::time::timeout;
use tonic::{Code, Streaming};

use crate::support::{fill, from_start, publish, sorted, topic, topics, until_nobody_is_told};

const PATIENCE: Duration = Duration::from_secs(30);

type Stream = Streaming<SubscribeStaticResponse>;

async fn next(stream: &mut Stream) -> Response {
    let next = timeout(PATIENCE, stream.message()).await.expect("the stream brought nothing in time");
    next.unwrap().expect("the stream goes on").response.expect("a response has a member")
}

async fn started(stream: &mut Stream) -> Started {
    match next(stream).await {
        Response::Started(started) => started,
        other => panic!("{other:?} instead of Started"),
    }
}

async fn messages(stream: &mut Stream) -> Vec<ServerEnvelope> {
    loop {
        match next(stream).await {
            Response::Messages(messages) => return messages.envelopes,
            Response::Keepalive(_) => {}
            Response::Started(_) => panic!("a second Started"),
        }
    }
}

async fn receive(stream: &mut Stream, count: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    while ids.len() < count {
        ids.extend(messages(stream).await.iter().map(id_of));
    }
    ids
}

#[tokio::test]
async fn api_260_started_comes_first_with_every_target_in_the_order_of_the_request() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let all = topics(40);
    let stored = publish(&client, &all[..20]).await;
    let order: Vec<_> = all.iter().rev().cloned().collect();
    let mut stream = client.subscribe_static(&from_start(&order)).await.unwrap();
    let started = started(&mut stream).await;
    assert_eq!(started.keepalive_interval_ms, 30_000);
    let expected: Vec<u64> = vec![0; 20].into_iter().chain(stored.iter().rev().copied()).collect();
    assert_eq!(targets(&started.targets), expected);
    let named: Vec<_> = started.targets.iter().map(|target| target.topic.clone().unwrap().topic).collect();
    assert_eq!(named, order.iter().map(|topic| topic.as_bytes().to_vec()).collect::<Vec<_>>());
    assert_eq!(sorted(receive(&mut stream, 20).await), sorted(stored));
    let live = publish(&client, &all[30..31]).await;
    assert_eq!(receive(&mut stream, 1).await, live);
}

#[tokio::test]
async fn api_254_a_long_history_comes_whole_and_in_order_to_a_reader_of_any_speed() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = topic();
    let stored = fill(&client, &topic, 40, 500_000).await;
    let mut stream = client.subscribe_static(&[(topic.clone(), stored[2])]).await.unwrap();
    assert_eq!(targets(&started(&mut stream).await.targets), [stored[39]]);
    let mut received = Vec::new();
    while received.len() < 37 {
        received.extend(messages(&mut stream).await.iter().map(id_of));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(received, stored[3..]);
}

#[tokio::test]
async fn api_260_an_empty_or_repeated_set_of_topics_is_refused() {
    static BOUNDED: Shared = Shared::const_new(Weak::new());
    let backend = Backend::once(&BOUNDED, &[("MAX_STATIC_TOPICS", "3")]).await;
    let client = backend.client();
    let one = topic();
    for (what, positions) in [
        ("no topic", vec![]),
        ("a topic twice", vec![(one.clone(), 0), (topic(), 0), (one.clone(), 5)]),
        ("a cursor over the range", vec![(one.clone(), 1 << 63)]),
        ("more than max_static_topics", from_start(&topics(4))),
    ] {
        let outcome = match client.subscribe_static(&positions).await {
            Ok(mut stream) => stream.message().await,
            Err(status) => Err(status),
        };
        assert_eq!(outcome.unwrap_err().code(), Code::InvalidArgument, "{what}");
    }
    assert!(client.subscribe_static(&from_start(&topics(3))).await.is_ok());
}

#[tokio::test]
async fn api_255_api_259_an_idle_stream_stays_open_and_brings_keepalives() {
    static QUICK: Shared = Shared::const_new(Weak::new());
    let backend = Backend::once(&QUICK, &[OPEN, ("KEEPALIVE_INTERVAL_MS", "1000")]).await;
    let client = backend.client();
    let topic = topic();
    let mut stream = client.subscribe_static(&from_start(std::slice::from_ref(&topic))).await.unwrap();
    assert_eq!(started(&mut stream).await.keepalive_interval_ms, 1_000);
    for _ in 0..3 {
        let silence = timeout(Duration::from_secs(6), next(&mut stream)); // an interval, and a busy machine
        assert!(matches!(silence.await.expect("too long a silence"), Response::Keepalive(_)));
    }
    let stored = publish(&client, std::slice::from_ref(&topic)).await;
    assert_eq!(receive(&mut stream, 1).await, stored);

    // The producer stops when the client is gone: it finds out by its next keepalive.
    drop(stream);
    until_nobody_is_told(&backend, &topic).await;
}
