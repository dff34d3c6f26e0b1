//! The framing of a stream over a WebSocket: pieces, order of things, and what is malformed.

use std::time::Duration;

use sealog_proto::backend::{Ping, subscribe_request::Request, subscribe_response::Response};
use sealog_tests::backend::Backend;
use sealog_tests::raw::{COMPRESSED, MESSAGE, TRAILERS, frame};
use sealog_tests::stream::{Event, HALF_CLOSE, SUBSCRIBE, Stream, data, framed};
use tonic::codegen::http::Method;

use crate::support::{INVALID_ARGUMENT, OK, OUT_OF_RANGE, UNIMPLEMENTED};

fn ping(nonce: u64) -> Request {
    Request::Ping(Ping { nonce })
}

async fn pong(stream: &mut Stream) -> u64 {
    match stream.event().await.unwrap() {
        Event::Response(Response::Pong(pong)) => pong.nonce,
        other => panic!("{other:?} instead of a Pong"),
    }
}

#[tokio::test]
async fn frames_may_be_split_at_every_byte_and_joined() {
    let backend = Backend::shared().await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    for byte in framed(ping(1)) {
        stream.send_message(data(&[byte])).await.unwrap();
        stream.send_message(data(&[])).await.unwrap(); // a piece of no bytes is a piece
    }
    assert_eq!(pong(&mut stream).await, 1);
    let joined = [framed(ping(2)), framed(ping(3)), framed(ping(4))].concat();
    let (first, second) = joined.split_at(joined.len() - 3);
    stream.send_message(data(first)).await.unwrap();
    stream.send_message(data(second)).await.unwrap();
    for nonce in 2..=4 {
        assert_eq!(pong(&mut stream).await, nonce);
    }
}

#[tokio::test]
async fn api_281_every_malformed_message_ends_the_stream_with_its_status() {
    let backend = Backend::shared().await;
    for (what, message, code) in [
        ("an empty message", vec![], INVALID_ARGUMENT),
        ("an unknown first byte", vec![2], INVALID_ARGUMENT),
        ("a half-close with a byte behind it", vec![1, 0], INVALID_ARGUMENT),
        ("a frame of trailers", data(&frame(TRAILERS, b"a: b\r\n")).to_vec(), INVALID_ARGUMENT),
        ("a frame of unknown flags", data(&frame(2, b"")).to_vec(), INVALID_ARGUMENT),
        ("a compressed frame", data(&frame(COMPRESSED, b"\x1f\x8b")).to_vec(), UNIMPLEMENTED),
        ("a frame over the ceiling", data(&[0, 1, 0x90, 0, 1]).to_vec(), OUT_OF_RANGE),
        ("a request that does not decode", data(&frame(MESSAGE, b"\xff")).to_vec(), INVALID_ARGUMENT),
        ("a request that is not set (API-251)", data(&frame(MESSAGE, b"")).to_vec(), INVALID_ARGUMENT),
    ] {
        let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
        stream.send_message(message).await.unwrap();
        let end = stream.end().await.unwrap();
        assert_eq!((end.code, end.close), (code, 1000), "{what}: {}", end.message);
    }
    let (open, _) = Stream::open(backend.url()).await.unwrap();
    let opening = Stream::connect(backend.url()).await.unwrap();
    for mut stream in [open, opening] {
        stream.send_text("x-grpc-web: 1\r\n").await.unwrap();
        assert_eq!(stream.end().await.unwrap().code, INVALID_ARGUMENT, "text");
    }
}

#[tokio::test]
async fn api_281_a_header_block_comes_first_and_names_no_compression() {
    let backend = Backend::shared().await;
    for (block, code) in [
        (data(&framed(ping(1))).to_vec(), INVALID_ARGUMENT),
        (HALF_CLOSE.to_vec(), INVALID_ARGUMENT),
        (b"no colon".to_vec(), INVALID_ARGUMENT),
        (b"grpc-encoding: gzip\r\n".to_vec(), UNIMPLEMENTED),
    ] {
        let mut stream = Stream::connect(backend.url()).await.unwrap();
        stream.send_message(block).await.unwrap();
        match stream.event().await.unwrap() {
            Event::End(end) => assert_eq!((end.code, end.close), (code, 1000), "{}", end.message),
            other @ Event::Response(_) => panic!("{other:?} before the header block was read"),
        }
    }
}

#[tokio::test]
async fn what_stands_before_a_malformed_frame_is_answered_and_what_follows_is_not_read() {
    let backend = Backend::shared().await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    let pieces = [framed(ping(1)).to_vec(), frame(COMPRESSED, b""), framed(ping(2)).to_vec()].concat();
    stream.send_message(data(&pieces)).await.unwrap();
    assert_eq!(pong(&mut stream).await, 1);
    match stream.event().await.unwrap() {
        Event::End(end) => assert_eq!(end.code, UNIMPLEMENTED),
        other @ Event::Response(_) => panic!("{other:?} after the stream had failed"),
    }
}

#[tokio::test]
async fn api_259_nothing_is_read_behind_a_half_close() {
    let backend = Backend::shared().await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.send_message(HALF_CLOSE).await.unwrap();
    stream.ping(1).await.unwrap();
    match stream.event().await.unwrap() {
        Event::End(end) => assert_eq!((end.code, end.close), (OK, 1000)),
        other @ Event::Response(_) => panic!("{other:?} behind a half-close"),
    }
}

#[tokio::test]
async fn api_250_started_waits_for_the_header_block_only() {
    let backend = Backend::shared().await;
    let mut stream = Stream::connect(backend.url()).await.unwrap();
    assert!(stream.is_silent_for(Duration::from_millis(500)).await);
    drop(stream);
    let (_, interval) = Stream::open(backend.url()).await.unwrap();
    assert_eq!(interval, 30_000);
}

#[tokio::test]
async fn api_259_a_page_of_any_origin_opens_a_stream_that_outlives_its_time_limit() {
    let backend = Backend::shared().await;
    let handshake = [("sec-websocket-protocol", "json, grpc-websockets"), ("origin", "https://app.example")];
    let mut stream = Stream::connect_with(backend.url(), &handshake).await.unwrap();
    stream.send_message(&b"grpc-timeout: 500m\r\n"[..]).await.unwrap();
    let Event::Response(Response::Started(_)) = stream.event().await.unwrap() else { panic!("no Started") };
    assert!(stream.is_silent_for(Duration::from_secs(1)).await);
    stream.ping(1).await.unwrap();
    assert_eq!(pong(&mut stream).await, 1);
}

#[tokio::test]
async fn a_request_for_a_socket_of_another_protocol_is_told_what_to_do() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    let plain = raw.send(Method::GET, SUBSCRIBE, &[], "").await.unwrap();
    assert_eq!(plain.status, 426);
    let other = [
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ("sec-websocket-protocol", "json"),
    ];
    let refused = raw.send(Method::GET, SUBSCRIBE, &other, "").await.unwrap();
    assert_eq!(refused.status, 426);
    assert!(String::from_utf8_lossy(&refused.body).contains("grpc-websockets"));
}
