//! Streams whose object sleeps: it loses its memory after ten seconds without an event, and keeps the socket.

use std::time::Duration;

use sealog_proto::backend::subscribe_response::Response;
use sealog_tests::backend::Backend;
use sealog_tests::status::{self, OPEN};
use sealog_tests::stream::{Event, HALF_CLOSE, Stream, data, framed, targets, update};

use crate::support::{OK, from_start, publish, sorted, topic, topics, until_nobody_is_told};

/// Longer than the platform waits before it puts an idle object to sleep, and shorter than the keepalive.
const LONG: Duration = Duration::from_secs(14);

#[tokio::test]
async fn api_254_api_259_a_stream_that_slept_goes_on_where_it_was() {
    let backend = Backend::start(&[OPEN]).await;
    let (client, raw) = (backend.client(), backend.raw());
    let all = topics(30);
    let before = publish(&client, &all).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&from_start(&all), &[]).await.unwrap();
    assert_eq!(sorted(stream.receive(all.len()).await.unwrap()), sorted(before.clone()));
    let wakes = |status: &status::Status| (status.streams["wakes"], status.streams["busy_restarts"]);
    assert_eq!(wakes(&status::read(&raw).await.unwrap()), (0, 0));

    tokio::time::sleep(LONG).await;
    let after = publish(&client, &all[..3]).await;
    assert_eq!(sorted(stream.receive(3).await.unwrap()), sorted(after.clone()));
    assert_eq!(
        wakes(&status::read(&raw).await.unwrap()),
        (1, 0),
        "the object slept, and woke in good health"
    );

    // Everything else is there, too: what is registered, the ids of Updates, the bucket, the numbers of Controls.
    let gone = all[0].clone();
    assert_eq!(stream.apply(&from_start(&all), &[]).await.unwrap(), [0; 0]);
    assert_eq!(stream.apply(&[], std::slice::from_ref(&gone)).await.unwrap(), [0; 0]);
    assert_eq!(stream.apply(&[(gone, before[0])], &[]).await.unwrap(), [after[0]]);
    assert_eq!(stream.receive(1).await.unwrap(), after[..1]);
    assert!(stream.is_silent_for(Duration::from_millis(500)).await, "nothing comes twice");
}

#[tokio::test]
async fn a_partition_that_slept_tells_nobody_what_they_have() {
    // No keepalive wakes anybody, however slow the machine is.
    let vars = [OPEN, ("KEEPALIVE_INTERVAL_MS", "600000"), ("MAX_PONG_WAIT_MS", "900000")];
    let backend = Backend::start(&vars).await;
    let client = backend.client();
    let [ones, others] = [topics(20), topics(20)];
    let (mut one, _) = Stream::open(backend.url()).await.unwrap();
    let (mut other, _) = Stream::open(backend.url()).await.unwrap();
    one.apply(&from_start(&ones), &[]).await.unwrap();
    other.apply(&from_start(&others), &[]).await.unwrap();
    publish(&client, &ones).await;
    one.receive(ones.len()).await.unwrap();

    tokio::time::sleep(LONG).await;
    publish(&client, &others).await;
    other.receive(others.len()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await; // whatever else was sent is there now
    let status = status::read(&backend.raw()).await.unwrap();
    assert_eq!(status.streams["wakes"], 1, "the first stream was left asleep");
}

#[tokio::test]
async fn api_255_a_sleeping_stream_is_pinged_and_ends_as_it_should() {
    let backend = Backend::start(&[OPEN, ("KEEPALIVE_INTERVAL_MS", "16000")]).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    let nonce = match stream.event().await.unwrap() {
        Event::Response(Response::Ping(ping)) => ping.nonce,
        other => panic!("{other:?} instead of a Ping"),
    };
    let status = status::read(&backend.raw()).await.unwrap();
    assert_eq!((status.streams["wakes"], status.streams["busy_restarts"]), (1, 0));
    tokio::time::sleep(LONG).await;
    // The Pong finds an object that slept again.
    stream.pong(nonce).await.unwrap();
    stream.send_message(HALF_CLOSE).await.unwrap();
    assert_eq!(stream.end().await.unwrap().code, OK);
}

#[tokio::test]
async fn half_a_frame_survives_sleep_however_long_it_is() {
    let backend = Backend::shared().await;
    for count in [3, 200] {
        let adds = from_start(&topics(count));
        let whole = framed(update(1, &adds, &[]));
        assert_eq!(whole.len() > 2_048, count == 200, "one half fits the attachment, the other does not");
        let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
        let (first, second) = whole.split_at(whole.len() / 2 + 1);
        stream.send_message(data(first)).await.unwrap();
        tokio::time::sleep(LONG).await;
        stream.send_message(data(second)).await.unwrap();
        assert_eq!(targets(&stream.applied().await.unwrap().added_targets), vec![0; count]);
    }
}

#[tokio::test]
async fn a_stream_that_is_lost_without_a_close_leaves_nothing_that_disturbs() {
    let backend =
        Backend::start(&[OPEN, ("KEEPALIVE_INTERVAL_MS", "1000"), ("MAX_PONG_WAIT_MS", "2000")]).await;
    let topic = topic();
    for _ in 0..3 {
        let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
        stream.apply(&from_start(std::slice::from_ref(&topic)), &[]).await.unwrap();
        drop(stream); // the connection goes, without a close frame
    }
    until_nobody_is_told(&backend, &topic).await;
}
