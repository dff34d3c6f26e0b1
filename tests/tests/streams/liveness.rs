//! Keepalive: Pings both ways, and what becomes of a client that does not answer.

use std::sync::Weak;
use std::time::{Duration, Instant};

use sealog_proto::backend::{subscribe_response::Response, subscribe_static_response};
use sealog_tests::backend::{Backend, Shared, Var};
use sealog_tests::stream::{Event, Stream};
use tokio::time::timeout;

use crate::support::{DEADLINE_EXCEEDED, from_start, publish, topic};

/// Short enough for a test, long enough for a busy machine.
const INTERVAL: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(8);
const VARS: [Var<'static>; 2] = [("KEEPALIVE_INTERVAL_MS", "1000"), ("MAX_PONG_WAIT_MS", "8000")];

/// What the platform's timers and a busy machine add. The exact times are proved where time is an input (`log`).
const SLACK: Duration = Duration::from_secs(5);

static QUICK: Shared = Shared::const_new(Weak::new());

async fn nonce(stream: &mut Stream) -> u64 {
    match stream.event().await.unwrap() {
        Event::Response(Response::Ping(ping)) => ping.nonce,
        other => panic!("{other:?} instead of a Ping"),
    }
}

#[tokio::test]
async fn api_255_an_idle_stream_is_pinged_in_each_interval_that_started_names() {
    let backend = Backend::once(&QUICK, &VARS).await;
    let (mut stream, interval) = Stream::open(backend.url()).await.unwrap();
    assert_eq!(u128::from(interval), INTERVAL.as_millis());
    let mut last = Instant::now();
    for _ in 0..4 {
        let nonce = nonce(&mut stream).await;
        let silence = last.elapsed();
        assert!(silence < INTERVAL + SLACK, "{silence:?} without a frame");
        last = Instant::now();
        stream.pong(nonce).await.unwrap();
    }
}

#[tokio::test]
async fn api_257_an_unanswered_ping_is_never_doubled_and_ends_the_stream() {
    let backend = Backend::once(&QUICK, &VARS).await;
    let client = backend.client();
    let topic = topic();
    let begun = Instant::now();
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&from_start(std::slice::from_ref(&topic)), &[]).await.unwrap();
    let nonce = nonce(&mut stream).await;
    let pinged = Instant::now();
    // A Pong of another nonce is none, and the stream works on meanwhile (API-259).
    stream.pong(nonce + 1).await.unwrap();
    let stored = publish(&client, std::slice::from_ref(&topic)).await;
    let mut delivered = Vec::new();
    let end = loop {
        match stream.event().await.unwrap() {
            Event::Response(Response::Messages(messages)) => {
                delivered.extend(messages.envelopes.iter().map(sealog_tests::client::id_of));
            }
            Event::Response(other) => panic!("{other:?} while a Ping is unanswered"),
            Event::End(end) => break end,
        }
    };
    assert_eq!(delivered, stored);
    assert_eq!((end.code, end.close), (DEADLINE_EXCEEDED, 1000), "{}", end.message);
    // When the Ping left, the client cannot know: not before an interval had passed, and not after it came.
    let lived = begun.elapsed();
    assert!(lived >= INTERVAL + WAIT, "cut off after {lived:?}");
    let waited = pinged.elapsed();
    assert!(waited < WAIT + Duration::from_secs(1) + SLACK, "cut off only after {waited:?}");
}

#[tokio::test]
async fn api_257_a_late_pong_is_in_time_within_the_wait() {
    let backend = Backend::once(&QUICK, &VARS).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    let first = nonce(&mut stream).await;
    assert!(timeout(WAIT / 2, stream.event()).await.is_err(), "a second Ping");
    stream.pong(first).await.unwrap();
    assert_ne!(nonce(&mut stream).await, first);
}

#[tokio::test]
async fn api_256_a_ping_is_answered_with_its_nonce() {
    let backend = Backend::shared().await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    for nonce in [0, 1, u64::MAX] {
        stream.ping(nonce).await.unwrap();
        match stream.event().await.unwrap() {
            Event::Response(Response::Pong(pong)) => assert_eq!(pong.nonce, nonce),
            other => panic!("{other:?} instead of a Pong"),
        }
    }
}

#[tokio::test]
async fn api_255_a_client_that_only_pings_is_pinged_too() {
    let backend = Backend::once(&QUICK, &VARS).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    let begun = Instant::now();
    let mut pinged = false;
    while begun.elapsed() < 3 * INTERVAL + SLACK && !pinged {
        stream.ping(7).await.unwrap();
        loop {
            match stream.event().await.unwrap() {
                Event::Response(Response::Pong(_)) => break,
                Event::Response(Response::Ping(_)) => pinged = true,
                other => panic!("{other:?}"),
            }
        }
        tokio::time::sleep(INTERVAL / 4).await;
    }
    assert!(pinged, "a half-open connection would never be found");
}

/// Proxies and browsers cut connections that are silent, some after minutes: both kinds of streams outlive that, and work.
#[tokio::test]
#[ignore = "soak: eleven minutes"]
async fn api_255_259_streams_of_both_kinds_outlive_eleven_idle_minutes() {
    const IDLE: Duration = Duration::from_mins(11);
    let backend = Backend::start(&[("KEEPALIVE_INTERVAL_MS", "15000")]).await;
    let client = backend.client();
    let topic = topic();
    let adds = from_start(std::slice::from_ref(&topic));
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&adds, &[]).await.unwrap();
    let mut fixed = client.subscribe_static(&adds).await.unwrap();
    let started = fixed.message().await.unwrap().unwrap().response.unwrap();
    assert!(matches!(started, subscribe_static_response::Response::Started(_)));

    let begun = Instant::now();
    let pings = async {
        while begun.elapsed() < IDLE {
            let nonce = nonce(&mut stream).await;
            stream.pong(nonce).await.unwrap();
        }
    };
    let keepalives = async {
        while begun.elapsed() < IDLE {
            let next = fixed.message().await.unwrap().expect("the stream goes on").response;
            assert!(matches!(next, Some(subscribe_static_response::Response::Keepalive(_))), "{next:?}");
        }
    };
    tokio::join!(pings, keepalives);

    let stored = publish(&client, &[topic]).await;
    assert_eq!(stream.receive(1).await.unwrap(), stored);
    match fixed.message().await.unwrap().unwrap().response.unwrap() {
        subscribe_static_response::Response::Messages(messages) => {
            assert_eq!(
                messages.envelopes.iter().map(sealog_tests::client::id_of).collect::<Vec<_>>(),
                stored
            );
        }
        other => panic!("{other:?} instead of Messages"),
    }
}
