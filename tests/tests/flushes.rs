//! What a publish costs: commits of SQLite, each one flush to the disk, counted in the objects' write-ahead logs.

#![allow(clippy::disallowed_methods)] // tests live in real time

use std::time::Instant;

use sealog_proto::{Kind, Topic};
use sealog_tests::backend::{Backend, Var};
use sealog_tests::client::Client;
use sealog_tests::fixtures::{fresh_topic, group_message, welcome};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// Every publish of this file commits on one partition, in one flush; costs.rs has those of more.
const ONE_PARTITION: &[Var<'static>] = &[("LOG_PARTITIONS", "1")];

/// The sequencer stores its time limit at most this often (`AHEAD` in its state machine), and a block of ids.
const SECONDS_PER_LIMIT: u64 = 2;

async fn publish(client: &Client, topic: &Topic) {
    client.publish_one(group_message(topic.identifier(), 256)).await.unwrap();
}

/// How often the sequencer may have stored something since `start`, with fewer ids used than a block has.
fn sequencer_allowance(start: Instant) -> u64 {
    2 + start.elapsed().as_secs() / SECONDS_PER_LIMIT
}

#[tokio::test]
async fn a_lone_publish_is_one_flush_of_its_partition() {
    let backend = Backend::start(ONE_PARTITION).await;
    let client = backend.client();
    let topic = fresh_topic(Kind::GroupMessage);
    publish(&client, &topic).await; // the objects are there now, with their tables and their first block

    let start = Instant::now();
    let before = [backend.mark("LogPartition"), backend.mark("Sequencer")];
    for _ in 0..20 {
        publish(&client, &topic).await;
    }
    let [partition, sequencer] = ["LogPartition", "Sequencer"].map(|class| backend.mark(class));
    assert_eq!(partition.commits_since(&before[0]).unwrap(), 20, "one per publish");
    let stored = sequencer.commits_since(&before[1]).unwrap();
    assert!(stored <= sequencer_allowance(start), "{stored} flushes of the sequencer for 20 publishes");
}

#[tokio::test]
async fn a_publish_of_many_envelopes_is_one_flush() {
    let backend = Backend::start(ONE_PARTITION).await;
    let client = backend.client();
    publish(&client, &fresh_topic(Kind::GroupMessage)).await;

    let before = backend.mark("LogPartition");
    let batch = (0..100).map(|_| welcome(fresh_topic(Kind::Welcome).identifier(), 100)).collect();
    client.publish(batch).await.unwrap();
    assert_eq!(backend.mark("LogPartition").commits_since(&before).unwrap(), 1);
}

#[tokio::test]
async fn duplicates_and_reads_flush_nothing() {
    let backend = Backend::start(ONE_PARTITION).await;
    let client = backend.client();
    let topic = fresh_topic(Kind::GroupMessage);
    let envelope = group_message(topic.identifier(), 100);
    client.publish_one(envelope.clone()).await.unwrap();

    let before = backend.mark("LogPartition");
    for _ in 0..5 {
        client.query(&[(topic.clone(), 0)], 0).await.unwrap();
        client.query_newest(std::slice::from_ref(&topic), true).await.unwrap();
    }
    assert_eq!(backend.mark("LogPartition").commits_since(&before).unwrap(), 0, "reads");
    for _ in 0..5 {
        client.publish_one(envelope.clone()).await.unwrap();
    }
    assert_eq!(backend.mark("LogPartition").commits_since(&before).unwrap(), 0, "duplicates");
}

/// 32 publishers that start together and never wait: their publishes share flushes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishes_under_load_share_flushes() {
    const PUBLISHERS: usize = 32;
    const EACH: usize = 10;
    let backend = Backend::start(ONE_PARTITION).await;
    publish(&backend.client(), &fresh_topic(Kind::GroupMessage)).await;

    let start = Instant::now();
    let before = [backend.mark("LogPartition"), backend.mark("Sequencer")];
    let together = std::sync::Arc::new(Barrier::new(PUBLISHERS));
    let mut publishers = JoinSet::new();
    for _ in 0..PUBLISHERS {
        let (client, together) = (backend.client(), together.clone());
        publishers.spawn(async move {
            let topic = fresh_topic(Kind::GroupMessage);
            together.wait().await;
            for _ in 0..EACH {
                publish(&client, &topic).await;
            }
        });
    }
    publishers.join_all().await;
    let count = u64::try_from(PUBLISHERS * EACH).unwrap();
    let commits = backend.mark("LogPartition").commits_since(&before[0]).unwrap();
    println!("{commits} flushes for {count} publishes");
    assert!(commits <= count / 2, "{commits} flushes for {count} publishes");
    let stored = backend.mark("Sequencer").commits_since(&before[1]).unwrap();
    assert!(stored <= sequencer_allowance(start), "{stored} flushes of the sequencer");
}
