//! How a stream ends: by its client, or with a status that its client can read.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost::Message as _;
use sealog_proto::Topic;
use sealog_proto::backend::SubscribeStaticRequest;
use sealog_tests::backend::{Backend, Var};
use sealog_tests::client::{SUBSCRIBE_STATIC, topic_query};
use sealog_tests::raw::{COMPRESSED, GRPC_WEB, GRPC_WEB_TEXT, MESSAGE, Unary, frame};
use sealog_tests::status::{self, OPEN};
use sealog_tests::stream::Stream;
use tokio::time::{sleep, timeout};
use tonic::codegen::http::Method;

use crate::support::{
    INVALID_ARGUMENT, OUT_OF_RANGE, RESOURCE_EXHAUSTED, UNIMPLEMENTED, fill, from_start, publish, topic,
    topics, until_nobody_is_told,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// Calls `SubscribeStatic`, and reads the answer to its end.
async fn subscribe_static(backend: &Backend, content_type: &str, body: Vec<u8>) -> Unary {
    let body = if content_type == GRPC_WEB_TEXT { STANDARD.encode(body).into_bytes() } else { body };
    let raw = backend.raw();
    let headers = [("content-type", content_type)];
    let answer = timeout(PATIENCE, raw.send(Method::POST, SUBSCRIBE_STATIC, &headers, body));
    answer.await.expect("the stream goes on").unwrap().unary().unwrap()
}

fn static_request(positions: &[(Topic, u64)]) -> Vec<u8> {
    let topics = positions.iter().map(|(topic, after)| topic_query(topic, *after)).collect();
    frame(MESSAGE, &SubscribeStaticRequest { topics }.encode_to_vec())
}

#[tokio::test]
async fn api_281_what_does_not_fit_a_frame_ends_either_stream_with_resource_exhausted() {
    const SMALL: [Var<'static>; 2] = [("MAX_ENVELOPE_BYTES", "3000"), ("MAX_RESPONSE_BYTES", "4096")];
    let mut backend = Backend::start(&[]).await;
    let large = topic();
    fill(&backend.client(), &large, 1, 10_000).await;
    backend.restart(&SMALL).await;
    for (what, adds, frames) in [
        ("the targets of many topics", from_start(&topics(200)), 0),
        ("an envelope that was stored when more was allowed", from_start(&[large]), 1),
    ] {
        let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
        stream.update(&adds, &[]).await.unwrap();
        let end = stream.end().await.unwrap();
        assert_eq!((end.code, end.close), (RESOURCE_EXHAUSTED, 1000), "{what}: {}", end.message);
        for content_type in [GRPC_WEB, GRPC_WEB_TEXT] {
            let answer = subscribe_static(&backend, content_type, static_request(&adds)).await;
            assert_eq!(answer.code(), RESOURCE_EXHAUSTED, "{what}: {answer:?}");
            assert_eq!(answer.messages.len(), frames, "{what}");
        }
    }
}

#[tokio::test]
async fn api_281_a_malformed_request_of_a_static_stream_is_answered_with_its_status() {
    let backend = Backend::shared().await;
    let good = static_request(&from_start(&topics(1)));
    for (what, body, code) in [
        ("no message", vec![], INVALID_ARGUMENT),
        ("half a message", good[..good.len() - 1].to_vec(), INVALID_ARGUMENT),
        ("two messages", good.repeat(2), INVALID_ARGUMENT),
        ("an empty message", frame(MESSAGE, b""), INVALID_ARGUMENT),
        ("what is no message", frame(MESSAGE, b"\xff"), INVALID_ARGUMENT),
        ("a compressed message", frame(COMPRESSED, b"\x1f\x8b"), UNIMPLEMENTED),
        ("a message over the ceiling", vec![0, 1, 0x90, 0, 1], OUT_OF_RANGE),
    ] {
        for content_type in [GRPC_WEB, GRPC_WEB_TEXT] {
            let answer = subscribe_static(&backend, content_type, body.clone()).await;
            assert_eq!((answer.code(), answer.messages.len()), (code, 0), "{what}: {answer:?}");
        }
    }
}

async fn pushes(backend: &Backend) -> u64 {
    let calls = status::read(&backend.raw()).await.unwrap().isolate_calls;
    calls.get("push").copied().unwrap_or_default()
}

#[tokio::test]
async fn api_259_a_client_that_closes_is_answered_and_forgotten() {
    let backend = Backend::start(&[OPEN]).await;
    let topic = topic();
    for code in [None, Some(1_000), Some(1_001), Some(4_321)] {
        let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
        stream.apply(&from_start(std::slice::from_ref(&topic)), &[]).await.unwrap();
        assert!(stream.leave(code).await.is_ok(), "{code:?}");
    }
    until_nobody_is_told(&backend, &topic).await;
    // And nobody is asked any more.
    let asked = pushes(&backend).await;
    publish(&backend.client(), std::slice::from_ref(&topic)).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(pushes(&backend).await, asked);
}
