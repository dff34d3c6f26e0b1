//! Copies of one publish, whole or in part, one after another and in flight together: one row each (API-222).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use sealog_proto::backend::EnvelopeMeta;
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, sequence_id, topic_of};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::support::{Publish, a_group_on_each_partition, ids, message_on, publish_until_stored, shared};

/// Rivals over the same envelopes may be told to come again; none of them waits for long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends all publishes at the same moment, each over a connection of its own, and gives the answers in their order.
async fn publish_at_once(backend: &Backend, publishes: &[Publish]) -> Vec<Vec<EnvelopeMeta>> {
    let together = Arc::new(Barrier::new(publishes.len()));
    let mut tasks = JoinSet::new();
    for (index, publish) in publishes.iter().cloned().enumerate() {
        let (client, together) = (backend.client(), together.clone());
        tasks.spawn(async move {
            together.wait().await;
            (index, publish_until_stored(&client, &publish, PATIENCE).await)
        });
    }
    let mut answers = tasks.join_all().await;
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, metas)| metas).collect()
}

/// Asserts that each envelope has the same metadata in all answers, and is the one row of its topic that has it.
async fn assert_one_row_each(client: &Client, publishes: &[Publish], answers: &[Vec<EnvelopeMeta>]) {
    let mut told: HashMap<Vec<u8>, &EnvelopeMeta> = HashMap::new();
    let mut topics = HashSet::new();
    for (publish, metas) in publishes.iter().zip(answers) {
        assert_eq!(publish.len(), metas.len());
        for (envelope, meta) in publish.iter().zip(metas) {
            assert_eq!(*told.entry(envelope.encode_to_vec()).or_insert(meta), meta, "two copies differ");
            topics.insert(topic_of(meta));
        }
    }
    let mut rows = 0;
    for topic in topics {
        let stored = client.read(&topic, 0).await.unwrap();
        rows += stored.len();
        for row in stored {
            let body = row.envelope.unwrap().encode_to_vec();
            assert_eq!(told.get(&body).copied(), row.meta.as_ref(), "a row that nobody was told of");
        }
    }
    assert_eq!(rows, told.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_222_20_copies_in_flight_over_8_partitions_are_stored_once() {
    let backend = shared().await;
    for _ in 0..3 {
        let publish: Publish = a_group_on_each_partition().iter().map(message_on).collect();
        let publishes = vec![publish; 20];
        let answers = publish_at_once(&backend, &publishes).await;
        assert_one_row_each(&backend.client(), &publishes, &answers).await;
        assert!(answers.iter().all(|metas| metas[0].server_ns == metas[7].server_ns), "one transaction");
    }
}

/// The halves are publishes of one partition: they commit without a transaction, and must not get past one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_222_copies_of_one_half_beside_the_whole_are_stored_once() {
    let backend = shared().await;
    for _ in 0..3 {
        let whole: Publish = a_group_on_each_partition()[2..4].iter().map(message_on).collect();
        let mut publishes = vec![whole.clone(); 10];
        for half in &whole {
            publishes.extend(vec![vec![half.clone()]; 5]);
        }
        fastrand::shuffle(&mut publishes);
        let answers = publish_at_once(&backend, &publishes).await;
        assert_one_row_each(&backend.client(), &publishes, &answers).await;
    }
}

/// Publishes that share envelopes and name them in opposite orders block each other; all of them get through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_220_222_crosswise_publishes_with_shared_envelopes_all_get_through() {
    let backend = shared().await;
    for _ in 0..3 {
        let topics = a_group_on_each_partition();
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| message_on(&topics[at]));
        let publishes: Vec<Publish> = [[&a, &b], [&b, &a], [&b, &c], [&c, &d], [&d, &a], [&a, &c]]
            .iter()
            .map(|pair| {
                let new = [message_on(&topics[6]), message_on(&topics[7])];
                pair.iter().copied().cloned().chain(new).collect()
            })
            .collect();
        let answers = publish_at_once(&backend, &publishes).await;
        assert_one_row_each(&backend.client(), &publishes, &answers).await;
        for metas in answers {
            assert_eq!(metas[2].server_ns, metas[3].server_ns, "what was new was stored at once");
        }
    }
}

#[tokio::test]
async fn api_220_222_of_a_partial_duplicate_only_the_new_envelopes_are_stored() {
    let backend = shared().await;
    let client = backend.client();
    let topics = a_group_on_each_partition();
    let first: Publish = topics[..2].iter().map(message_on).collect();
    let stored = client.publish(first.clone()).await.unwrap();

    let new: Publish = topics[1..4].iter().map(message_on).collect();
    let mixed = [&new[..1], &first[..], &new[1..]].concat();
    let metas = client.publish(mixed.clone()).await.unwrap();
    assert_eq!(metas[1..3], stored[..], "what was stored keeps its metadata");
    let highest = ids(&stored).into_iter().max().unwrap();
    for meta in [&metas[0], &metas[3], &metas[4]] {
        assert!(sequence_id(meta) > highest);
        assert_eq!(meta.server_ns, metas[0].server_ns, "one transaction, one time");
    }

    // API-224: whatever was stored by which publish, a repetition tells the same.
    assert_eq!(client.publish(mixed.clone()).await.unwrap(), metas);
    assert_eq!(client.publish(first.clone()).await.unwrap(), stored);
    assert_one_row_each(&client, &[first, mixed], &[stored, metas]).await;
}
