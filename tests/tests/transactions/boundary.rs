//! The closed allocation boundary, as `/-/status` tells it.

use std::sync::{Arc, Mutex};

use sealog_proto::Topic;
use sealog_tests::backend::{Backend, Var};
use sealog_tests::client::{Client, sequence_id};
use sealog_tests::status;
use tokio::task::JoinSet;

use crate::record::Record;
use crate::support::{Answered, Publish, VARS, a_group_on_each_partition, message_on};

const WRITERS: usize = 16;
const PUBLISHES: usize = 12;

type AllAnswered = Arc<Mutex<Vec<Answered>>>;

/// Publishes to one, two, … five topics by turns.
async fn write(client: Client, topics: Vec<Topic>, writer: usize, answered: AllAnswered) {
    for round in 0..PUBLISHES {
        let turned = topics.iter().cycle().skip(5 * writer + round).take(1 + round % 5);
        let publish: Publish = turned.map(message_on).collect();
        let metas = client.publish(publish.clone()).await.unwrap();
        answered.lock().unwrap().push((publish, metas));
    }
}

/// Every look holds that nothing appears at or below a boundary that was told before, and that the boundary never falls;
/// and here, that whatever was answered is read by who asks after the answer (API-202).
async fn watch_a_load_and_a_restart(vars: &[Var<'_>]) {
    let mut backend = Backend::start(vars).await;
    let topics = a_group_on_each_partition();
    let answered = AllAnswered::default();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(backend.client(), topics.clone(), writer, answered.clone()));
    }
    let mut record = Record::new(&backend, &topics);
    let (mut checked, mut told_under_load) = (0, Vec::new());
    while !writers.is_empty() {
        let before = answered.lock().unwrap().clone();
        record.look().await;
        for (publish, metas) in &before[checked..] {
            record.assert_stored(publish, metas);
        }
        checked = before.len();
        told_under_load.push(record.boundary());
        while let Some(writer) = writers.try_join_next() {
            writer.unwrap();
        }
    }
    told_under_load.dedup();
    assert!(told_under_load.len() > 3, "the boundary rises while others publish: {told_under_load:?}");
    record.assert_boundary_reaches_newest().await;
    let all = answered.lock().unwrap().clone();
    for (publish, metas) in &all {
        record.assert_stored(publish, metas);
    }

    // Over restarts it stays where it was, and goes on from there.
    for _ in 0..3 {
        let told = record.boundary();
        backend.restart(vars).await;
        record.look().await; // asserts that it did not fall
        let publish: Publish = topics[1..6].iter().map(message_on).collect();
        let metas = backend.client().publish(publish.clone()).await.unwrap();
        assert!(metas.iter().all(|meta| sequence_id(meta) > told), "an id below the boundary {told}");
        record.assert_boundary_reaches_newest().await;
        record.assert_stored(&publish, &metas);
        assert!(record.boundary() > told);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_202_203_291_the_boundary_tells_the_truth_over_8_partitions() {
    watch_a_load_and_a_restart(VARS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_202_203_291_the_boundary_tells_the_truth_over_one_partition() {
    watch_a_load_and_a_restart(&[("LOG_PARTITIONS", "1"), status::OPEN]).await;
}
