//! What the files of this suite have in common.

use std::time::Duration;

use sealog_proto::backend::ClientEnvelope;
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, sequence_id};
use sealog_tests::fixtures::{fresh_topic, welcome};
use sealog_tests::status;
use tokio::time::{Instant, sleep};

pub(crate) const OK: i32 = 0;
pub(crate) const INVALID_ARGUMENT: i32 = 3;
pub(crate) const DEADLINE_EXCEEDED: i32 = 4;
pub(crate) const RESOURCE_EXHAUSTED: i32 = 8;
pub(crate) const OUT_OF_RANGE: i32 = 11;
pub(crate) const UNIMPLEMENTED: i32 = 12;

/// A topic that nobody else uses.
pub(crate) fn topic() -> Topic {
    fresh_topic(Kind::Welcome)
}

/// So many of them.
pub(crate) fn topics(count: usize) -> Vec<Topic> {
    (0..count).map(|_| topic()).collect()
}

/// Every topic from its beginning.
pub(crate) fn from_start(topics: &[Topic]) -> Vec<(Topic, u64)> {
    topics.iter().map(|topic| (topic.clone(), 0)).collect()
}

/// An envelope on a topic, different each time, with so many bytes of payload.
pub(crate) fn envelope(topic: &Topic, length: usize) -> ClientEnvelope {
    welcome(topic.identifier(), length)
}

/// Publishes one small envelope on each topic, in one request: the ids, in the order of the topics.
pub(crate) async fn publish(client: &Client, topics: &[Topic]) -> Vec<u64> {
    let envelopes = topics.iter().map(|topic| envelope(topic, 48)).collect();
    client.publish(envelopes).await.unwrap().iter().map(sequence_id).collect()
}

/// Publishes so many envelopes of `length` bytes on a topic, in requests that fit: the ids, ascending.
pub(crate) async fn fill(client: &Client, topic: &Topic, count: usize, length: usize) -> Vec<u64> {
    let at_once = (8 << 20) / (length + 200);
    let mut ids = Vec::new();
    while ids.len() < count {
        let envelopes = (0..at_once.min(count - ids.len())).map(|_| envelope(topic, length)).collect();
        ids.extend(client.publish(envelopes).await.unwrap().iter().map(sequence_id));
    }
    ids
}

/// Publishes on a topic until nobody is sent a frame for it, nor any other: every stream of the backend has been found
/// to be gone.
///
/// # Panics
/// When that does not come to pass.
pub(crate) async fn until_nobody_is_told(backend: &Backend, topic: &Topic) {
    let (client, raw) = (backend.client(), backend.raw());
    let start = Instant::now();
    loop {
        let before = status::read(&raw).await.unwrap().streams["frames"];
        publish(&client, std::slice::from_ref(topic)).await;
        sleep(Duration::from_secs(3)).await;
        if status::read(&raw).await.unwrap().streams["frames"] == before {
            return;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "frames are sent to who is gone");
    }
}

/// The same ids, ascending: over several partitions, neither the topics of a publish nor those of a frame are.
pub(crate) fn sorted(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids
}
