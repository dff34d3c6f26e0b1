//! How often a client may send (API-258).

use std::sync::Weak;
use std::time::Duration;

use sealog_proto::backend::{Ping, subscribe_request::Request, subscribe_response::Response};
use sealog_tests::backend::{Backend, Shared, Var};
use sealog_tests::stream::{Event, Stream, data, framed, update};

use crate::support::RESOURCE_EXHAUSTED;

/// One token per second and few of them: the buckets are full or empty, whatever the machine does.
const VARS: [Var<'static>; 4] = [
    ("MAX_UPDATE_FRAMES_PER_SECOND", "1"),
    ("MAX_UPDATE_BURST", "5"),
    ("MAX_PING_FRAMES_PER_SECOND", "1"),
    ("MAX_PING_BURST", "3"),
];

static SLOW: Shared = Shared::const_new(Weak::new());

fn updates(ids: std::ops::RangeInclusive<u64>) -> Vec<u8> {
    data(&ids.flat_map(|id| framed(update(id, &[], &[]))).collect::<Vec<u8>>()).to_vec()
}

#[tokio::test]
async fn api_258_a_burst_of_updates_is_taken_and_one_more_fails_the_stream() {
    let backend = Backend::once(&SLOW, &VARS).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.send_message(updates(1..=5)).await.unwrap();
    for id in 1..=5 {
        assert_eq!(stream.applied().await.unwrap().id, id);
    }
    drop(stream);
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.send_message(updates(1..=6)).await.unwrap();
    for id in 1..=5 {
        assert_eq!(stream.applied().await.unwrap().id, id, "what was accepted is answered");
    }
    let end = stream.end().await.unwrap();
    assert_eq!((end.code, end.close), (RESOURCE_EXHAUSTED, 1000), "{}", end.message);
}

#[tokio::test]
async fn api_258_tokens_come_back() {
    let backend = Backend::once(&SLOW, &VARS).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.send_message(updates(1..=5)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    stream.send_message(updates(6..=7)).await.unwrap();
    for id in 1..=7 {
        assert_eq!(stream.applied().await.unwrap().id, id);
    }
}

#[tokio::test]
async fn api_258_pings_have_a_bucket_of_their_own_and_pongs_none() {
    let backend = Backend::once(&SLOW, &VARS).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    for nonce in 0..50 {
        stream.pong(nonce).await.unwrap();
    }
    stream.send_message(updates(1..=5)).await.unwrap();
    // In one message, so that no token comes back in between.
    let pings = (1..=4).flat_map(|nonce| framed(Request::Ping(Ping { nonce }))).collect::<Vec<u8>>();
    stream.send_message(data(&pings)).await.unwrap();
    for id in 1..=5 {
        assert_eq!(stream.applied().await.unwrap().id, id);
    }
    for nonce in 1..=3 {
        match stream.event().await.unwrap() {
            Event::Response(Response::Pong(pong)) => assert_eq!(pong.nonce, nonce),
            other => panic!("{other:?} instead of a Pong"),
        }
    }
    assert_eq!(stream.end().await.unwrap().code, RESOURCE_EXHAUSTED);
}
