//! Objects that nobody calls are evicted while workerd runs: memory goes, storage stays.

use std::time::Duration;

use sealog_proto::{Kind, Topic};
use sealog_tests::backend::Backend;
use sealog_tests::client::{id_of, sequence_id};
use sealog_tests::fixtures::{fresh_topic_on, group_message};
use tokio::time::sleep;

/// workerd evicts an object some 10 s after its last event.
const EVICTED_AFTER: Duration = Duration::from_secs(15);
const PARTITIONS: u32 = 2;

/// A new instance takes a new incarnation, in a commit of its own, and goes on where the last one was; the sequencer's
/// begins behind every id that the last one may have given out.
#[tokio::test]
async fn api_201_286_288_289_evicted_objects_go_on_where_they_were() {
    let backend = Backend::start(&[("LOG_PARTITIONS", &PARTITIONS.to_string())]).await;
    let client = backend.client();
    let topics: Vec<Topic> =
        (0..PARTITIONS).map(|at| fresh_topic_on(Kind::GroupMessage, at, PARTITIONS)).collect();
    let mut stored: Vec<Vec<u64>> = vec![Vec::new(); topics.len()];
    for round in 0..2 {
        if round > 0 {
            sleep(EVICTED_AFTER).await;
        }
        let before = backend.mark("LogPartition");
        for (topic, ids) in topics.iter().zip(&mut stored) {
            let metas = client.publish(vec![group_message(topic.identifier(), 64)]).await.unwrap();
            ids.push(sequence_id(&metas[0]));
        }
        let commits = backend.mark("LogPartition").commits_since(&before).unwrap();
        let starts = if round == 0 { continue } else { u64::from(PARTITIONS) };
        assert_eq!(commits, u64::from(PARTITIONS) + starts, "each partition began anew, and stored one row");
    }
    assert!(stored.concat().iter().max() == stored[1].last(), "later publishes have greater ids");
    for (topic, ids) in topics.iter().zip(&stored) {
        let found: Vec<u64> = client.read(topic, 0).await.unwrap().iter().map(id_of).collect();
        assert_eq!(found, *ids);
    }
    // And a publish over both, by the new instances.
    let both = topics.iter().map(|topic| group_message(topic.identifier(), 64)).collect();
    let metas = client.publish(both).await.unwrap();
    assert!(metas.iter().all(|meta| sequence_id(meta) > stored.concat().into_iter().max().unwrap()));
}
