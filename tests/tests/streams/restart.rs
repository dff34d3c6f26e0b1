//! The backend is killed under its streams: clients come back from their cursors.

use std::time::Duration;

use sealog_tests::backend::Backend;
use sealog_tests::status::{self, OPEN};
use sealog_tests::stream::Stream;

use crate::support::{from_start, publish, sorted, topics};

#[tokio::test]
async fn api_254_a_client_that_resumes_from_its_cursors_misses_nothing() {
    let mut backend = Backend::start(&[OPEN]).await;
    let client = backend.client();
    let all = topics(8);
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&from_start(&all), &[]).await.unwrap();
    let mut first = publish(&client, &all).await;
    assert_eq!(sorted(stream.receive(all.len()).await.unwrap()), sorted(first.clone()));

    for _ in 0..2 {
        // Stored, and perhaps not delivered any more.
        let stored = publish(&client, &all).await;
        backend.restart(&[OPEN]).await;
        assert!(stream.end().await.is_err(), "the socket is gone with the server, without trailers");
        let client = backend.client();
        let before: Vec<_> = all.iter().zip(&first).map(|(topic, id)| (topic.clone(), *id)).collect();
        (stream, _) = Stream::open(backend.url()).await.unwrap();
        stream.apply(&before, &[]).await.unwrap();
        assert_eq!(sorted(stream.receive(all.len()).await.unwrap()), sorted(stored.clone()));
        first = stored;
        // What the dead sessions had registered disturbs nobody.
        let live = publish(&client, &all[..1]).await;
        assert_eq!(stream.receive(1).await.unwrap(), live);
        first[0] = live[0];
    }
    assert!(stream.is_silent_for(Duration::from_millis(500)).await);
    assert_eq!(status::read(&backend.raw()).await.unwrap().streams["busy_restarts"], 0);
}
