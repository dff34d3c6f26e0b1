//! Section 7 and decisions.md: gRPC-Web, CORS, and requests that are none.

use prost::Message as _;
use sealog_proto::backend::{PublishRequest, publish_error::Reason};
use sealog_proto::health::health_check_response::ServingStatus;
use sealog_tests::backend::Backend;
use sealog_tests::client::{HEALTH, PUBLISH, QUERY, QUERY_NEWEST};
use sealog_tests::fixtures::group_envelope;
use sealog_tests::raw::{
    Answer, COMPRESSED, GRPC_WEB, GRPC_WEB_TEXT, MESSAGE, TRAILERS, Unary, frame, to_text,
};
use tonic::Code;
use tonic::codegen::http::{Method, StatusCode};

use crate::support::{assert_code, fresh_group, message_on};

const INVALID_ARGUMENT: i32 = 3;
const UNIMPLEMENTED: i32 = 12;

fn small_publish() -> Vec<u8> {
    frame(MESSAGE, &PublishRequest { envelopes: vec![message_on(&fresh_group())] }.encode_to_vec())
}

fn header_words(answer: &Answer, name: &str) -> Vec<String> {
    let text = answer.header(name).unwrap_or_else(|| panic!("no {name}"));
    text.split(',').map(|word| word.trim().to_ascii_lowercase()).collect()
}

#[tokio::test]
async fn api_285_every_service_answers_grpc_web() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    for path in [PUBLISH, QUERY, QUERY_NEWEST, HEALTH] {
        let answer = raw.post(path, frame(MESSAGE, b"")).await.unwrap();
        assert!(answer.header("content-type").unwrap().starts_with("application/grpc-web"));
        let unary = answer.unary().unwrap();
        assert_eq!((unary.code(), unary.messages.len()), (0, 1), "{path}");
    }
}

#[tokio::test]
async fn api_285_a_browser_may_read_the_status_and_its_details() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    let origin = ("origin", "https://app.example");
    let bad =
        frame(MESSAGE, &PublishRequest { envelopes: vec![group_envelope(b"no".to_vec())] }.encode_to_vec());
    let headers = [("content-type", GRPC_WEB), origin];
    let answers = [
        raw.send(Method::POST, PUBLISH, &headers, small_publish()).await.unwrap(),
        raw.send(Method::POST, PUBLISH, &headers, bad).await.unwrap(),
        raw.send(Method::POST, "/xmtp.backend.v1.QueryService/Get", &headers, frame(MESSAGE, b""))
            .await
            .unwrap(),
        raw.send(Method::POST, PUBLISH, &headers, b"nonsense".to_vec()).await.unwrap(),
        raw.send(Method::GET, PUBLISH, &[origin], b"".to_vec()).await.unwrap(),
        raw.send(Method::POST, PUBLISH, &[("content-type", "text/plain"), origin], b"".to_vec())
            .await
            .unwrap(),
    ];
    for answer in &answers {
        let allowed = answer.header("access-control-allow-origin").expect("every answer allows the origin");
        assert!(matches!(allowed, "*" | "https://app.example"));
        let exposed = header_words(answer, "access-control-expose-headers");
        for name in ["grpc-status", "grpc-message", "grpc-status-details-bin"] {
            assert!(exposed.iter().any(|word| word == name), "{name} is not exposed: {exposed:?}");
        }
    }
}

#[tokio::test]
async fn api_285_a_preflight_is_answered() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    let asked = "content-type,x-grpc-web,x-user-agent,grpc-timeout,authorization,traceparent,tracestate";
    for path in [PUBLISH, QUERY, QUERY_NEWEST, HEALTH] {
        let headers = [
            ("origin", "https://app.example"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", asked),
        ];
        let answer = raw.send(Method::OPTIONS, path, &headers, b"".to_vec()).await.unwrap();
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert!(answer.body.is_empty());
        assert!(answer.header("access-control-allow-origin").is_some());
        assert!(header_words(&answer, "access-control-allow-methods").contains(&"post".to_owned()));
        let allowed = header_words(&answer, "access-control-allow-headers");
        for name in asked.split(',') {
            assert!(
                allowed.iter().any(|word| word == name || word == "*"),
                "{name} is not allowed: {allowed:?}"
            );
        }
        assert!(answer.header("access-control-max-age").is_some());
    }
}

#[tokio::test]
async fn api_285_text_mode_works_with_padding_anywhere() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    let body = small_publish();
    // One text, and several that are each padded for themselves.
    let (head, tail) = body.split_at(10);
    let pieces = [to_text(head), to_text(&tail[..1]), to_text(&tail[1..])].concat();
    assert!(pieces.trim_end_matches('=').contains('='));
    for content_type in
        ["application/grpc-web-text", GRPC_WEB_TEXT, "application/grpc-web-text; charset=utf-8"]
    {
        for text in [to_text(&body), pieces.clone()] {
            let answer =
                raw.send(Method::POST, PUBLISH, &[("content-type", content_type)], text).await.unwrap();
            assert!(answer.header("content-type").unwrap().starts_with("application/grpc-web-text"));
            assert_eq!(answer.unary().unwrap().code(), 0, "{content_type}");
        }
    }
    // What the client accepts decides the form of the answer.
    let headers = [("content-type", GRPC_WEB_TEXT), ("accept", GRPC_WEB)];
    let answer = raw.send(Method::POST, PUBLISH, &headers, to_text(&body)).await.unwrap();
    assert_eq!(answer.header("content-type"), Some(GRPC_WEB));
    let headers = [("content-type", GRPC_WEB), ("accept", GRPC_WEB_TEXT)];
    let answer = raw.send(Method::POST, PUBLISH, &headers, body).await.unwrap();
    assert_eq!(answer.header("content-type"), Some(GRPC_WEB_TEXT));
    assert_eq!(answer.unary().unwrap().code(), 0);

    let broken =
        raw.send(Method::POST, PUBLISH, &[("content-type", GRPC_WEB_TEXT)], "*** no base64 ***").await;
    assert_eq!(broken.unwrap().unary().unwrap().code(), INVALID_ARGUMENT);
}

#[tokio::test]
async fn api_285_content_types_may_have_parameters() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    for content_type in [
        "application/grpc-web",
        GRPC_WEB,
        "application/grpc-web+proto; charset=utf-8",
        "Application/gRPC-Web+Proto",
    ] {
        let answer =
            raw.send(Method::POST, PUBLISH, &[("content-type", content_type)], small_publish()).await;
        assert_eq!(answer.unwrap().unary().unwrap().code(), 0, "{content_type}");
    }
}

#[tokio::test]
async fn api_285_what_is_no_grpc_web_is_told_so() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let answer =
            raw.send(method.clone(), PUBLISH, &[("content-type", GRPC_WEB)], b"".to_vec()).await.unwrap();
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    let answer =
        raw.send(Method::POST, PUBLISH, &[("content-type", "application/json")], "{}").await.unwrap();
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

/// Field report 38: a native gRPC client learns what to do.
#[tokio::test]
async fn api_281_a_native_grpc_request_is_unimplemented_and_says_why() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    for content_type in ["application/grpc", "application/grpc+proto"] {
        let answer = raw
            .send(Method::POST, PUBLISH, &[("content-type", content_type)], small_publish())
            .await
            .unwrap();
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.header("content-type").unwrap().starts_with("application/grpc"));
        assert_eq!(answer.header("grpc-status"), Some("12"));
        let message = answer.header("grpc-message").unwrap().to_ascii_lowercase();
        assert!(message.contains("grpc-web") && message.contains("gateway"), "{message}");
    }
}

#[tokio::test]
async fn api_281_unknown_methods_are_unimplemented() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    for path in [
        "/xmtp.backend.v1.QueryService/Get",
        "/xmtp.backend.v1.PublishService/publish",
        "/xmtp.backend.v2.PublishService/Publish",
        "/xmtp.backend.v1.PublishService/Publish/",
        "/nothing",
        "/",
    ] {
        let answer = raw.unary(path, b"").await.unwrap();
        assert_eq!((answer.code(), answer.messages.len()), (UNIMPLEMENTED, 0), "{path}");
    }
}

#[tokio::test]
async fn api_281_a_bidirectional_stream_over_plain_grpc_web_is_unimplemented_and_the_message_says_what_to_use()
 {
    let backend = Backend::shared().await;
    let answer = backend.raw().unary("/xmtp.backend.v1.SubscriptionService/Subscribe", b"").await.unwrap();
    assert_eq!(answer.code(), UNIMPLEMENTED);
    for what in ["WebSocket", "grpc-websockets", "SubscribeStatic"] {
        assert!(answer.message().contains(what), "{}", answer.message());
    }
}

#[tokio::test]
async fn api_281_compressed_requests_are_unimplemented() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let headers = [("content-type", GRPC_WEB), ("grpc-encoding", encoding)];
        let answer = raw.send(Method::POST, PUBLISH, &headers, small_publish()).await.unwrap();
        assert_eq!(answer.unary().unwrap().code(), UNIMPLEMENTED, "{encoding}");
    }
    let flagged = frame(COMPRESSED, b"\x1f\x8b\x08\0");
    assert_eq!(
        raw.post(PUBLISH, flagged).await.unwrap().unary().unwrap().code(),
        UNIMPLEMENTED,
        "the frame's flag"
    );
    // `identity` is no compression, and nothing is done with what a client would accept.
    let headers =
        [("content-type", GRPC_WEB), ("grpc-encoding", "identity"), ("grpc-accept-encoding", "gzip")];
    let answer = raw.send(Method::POST, PUBLISH, &headers, small_publish()).await.unwrap();
    assert_eq!(answer.unary().unwrap().code(), 0);
}

fn assert_malformed_request(what: &str, answer: &Unary) {
    assert_eq!(answer.code(), INVALID_ARGUMENT, "{what}: {}", answer.message());
    assert!(answer.messages.is_empty(), "{what}");
    let failure = answer.failure().unwrap_or_else(|| panic!("{what}: no PublishError"));
    assert_eq!((failure.index, failure.reason), (None, Reason::MalformedPayload), "{what}");
}

#[tokio::test]
async fn api_281_223_bytes_that_are_no_request_are_malformed() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    let good = small_publish();
    let longer_than_it_is = [&[MESSAGE, 0, 0, 1, 0], &good[5..20]].concat();
    for (what, body) in [
        ("no protobuf", frame(MESSAGE, b"\xff\xff\xff\xff")),
        ("an envelope that is a number", frame(MESSAGE, b"\x08\x01")),
        ("a field that is cut short", frame(MESSAGE, b"\x0a\x7f\x01")),
        ("a group of old", frame(MESSAGE, b"\x0b\x0c\x0c")),
        ("nothing", vec![]),
        ("half a frame header", vec![MESSAGE, 0, 0]),
        ("a frame that is cut short", longer_than_it_is),
        ("two messages", [good.clone(), good.clone()].concat()),
        ("a trailers frame only", frame(TRAILERS, b"grpc-status: 0\r\n")),
        ("an unknown flag", frame(0x42, &good[5..])),
        ("a message and three bytes", [&good[..], &[0, 0, 0]].concat()),
    ] {
        let answer = raw.post(PUBLISH, body).await.unwrap().unary().unwrap();
        assert_malformed_request(what, &answer);
    }
    // Other methods have the same code, without the detail.
    let answer = raw.unary(QUERY, b"\xff\xff").await.unwrap();
    assert_eq!(answer.code(), INVALID_ARGUMENT);
    assert!(answer.failure().is_none());
}

#[tokio::test]
async fn api_223_the_message_of_a_failure_is_readable_text() {
    let backend = Backend::shared().await;
    let bad = PublishRequest { envelopes: vec![group_envelope(b"no".to_vec())] }.encode_to_vec();
    let answer = backend.raw().unary(PUBLISH, &bad).await.unwrap();
    assert_eq!(answer.code(), INVALID_ARGUMENT);
    assert!(!answer.message().is_empty());
    assert!(answer.message().bytes().all(|byte| (0x20..0x7f).contains(&byte)), "percent-encoded");
    let failure = answer.failure().unwrap();
    assert!(!failure.message.is_empty());
    // base64 without padding, as the other gRPC implementations write it.
    assert!(!answer.trailers["grpc-status-details-bin"].contains('='));
}

#[tokio::test]
async fn api_285_health_names_every_service() {
    let backend = Backend::shared().await;
    let client = backend.client();
    for service in ["", "xmtp.backend.v1.PublishService", "xmtp.backend.v1.QueryService"] {
        assert_eq!(client.health(service).await.unwrap(), ServingStatus::Serving, "`{service}`");
    }
    assert_code(client.health("xmtp.backend.v1.NoSuchService").await, Code::NotFound);
}

#[tokio::test]
async fn api_281_a_request_with_many_connections_and_headers_is_like_any_other() {
    let backend = Backend::shared().await;
    let raw = backend.raw();
    let headers = [
        ("content-type", GRPC_WEB),
        ("x-grpc-web", "1"),
        ("x-user-agent", "grpc-web-javascript/0.1"),
        ("grpc-timeout", "30S"),
        ("authorization", "Bearer nothing that anybody checks"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ];
    let answer = raw.send(Method::POST, PUBLISH, &headers, small_publish()).await.unwrap();
    assert_eq!(answer.unary().unwrap().code(), 0);
}
