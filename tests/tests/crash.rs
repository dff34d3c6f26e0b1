//! workerd is killed with SIGKILL while many publish, and started again on the same state (field report 40).

use std::collections::HashMap;
use std::sync::Arc;

use sealog_proto::backend::{ClientEnvelope, EnvelopeMeta, ServerEnvelope};
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::{Backend, Var};
use sealog_tests::client::{Client, id_of, sequence_id};
use sealog_tests::fixtures::{commit_log_entry, fresh_topic, group_message};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const PUBLISHERS: usize = 32;
/// How many publishes are answered before the kill, and when it comes then. Odd numbers, so that it meets batches at any
/// stage.
const ROUNDS: [(u32, Moment); 6] = [
    (5, Moment::Answer),
    (29, Moment::Commit),
    (61, Moment::Commit),
    (93, Moment::Answer),
    (137, Moment::Commit),
    (251, Moment::Commit),
];

/// What the kill follows at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The answer to a publish.
    Answer,
    /// Rows in the log of a partition: they are there, and nobody has been told.
    Commit,
}

type Publish = Vec<ClientEnvelope>;

/// What one publisher knows when the backend is gone.
struct Outcome {
    answered: Vec<(Publish, Vec<EnvelopeMeta>)>,
    /// The publish that failed: nobody knows whether it is stored.
    unanswered: Publish,
}

/// Publishes one or two envelopes at a time until the backend is gone. Two lie on one partition: a group's message and
/// an entry of its commit log.
async fn publish_until_killed(
    client: Client,
    groups: Arc<[Topic]>,
    who: usize,
    answered: Arc<Semaphore>,
) -> Outcome {
    let mut outcome = Outcome { answered: Vec::new(), unanswered: Vec::new() };
    for round in 0.. {
        let id = groups[(who + round) % groups.len()].identifier();
        let mut publish = vec![group_message(id, 200)];
        if round % 3 == 0 {
            publish.push(commit_log_entry(id, 200));
        }
        let Ok(metas) = client.publish(publish.clone()).await else {
            outcome.unanswered = publish;
            break;
        };
        outcome.answered.push((publish, metas));
        answered.add_permits(1);
    }
    outcome
}

/// Everything that is stored on the topics, by sequence id. Checks the order on the way.
async fn read_all(client: &Client, topics: &[Topic]) -> HashMap<u64, ServerEnvelope> {
    let mut all = HashMap::new();
    for topic in topics {
        let stored = client.read(topic, 0).await.unwrap();
        assert!(stored.is_sorted_by(|a, b| id_of(a) < id_of(b)), "a topic is out of order");
        for envelope in stored {
            assert!(all.insert(id_of(&envelope), envelope).is_none(), "an id was given twice");
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_220_222_224_288_289_a_kill_loses_nothing_that_was_answered() {
    kill_again_and_again(&[]).await;
}

/// The same while 8 partitions draw their ids from one sequencer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_220_222_224_288_289_a_kill_loses_nothing_over_8_partitions() {
    kill_again_and_again(&[("LOG_PARTITIONS", "8")]).await;
}

async fn kill_again_and_again(vars: &[Var<'_>]) {
    let mut backend = Backend::start(vars).await;
    let groups: Arc<[Topic]> = (0..6).map(|_| fresh_topic(Kind::GroupMessage)).collect();
    let logs = groups.iter().map(|group| Topic::derive(Kind::CommitLog, group.identifier()).unwrap());
    let topics: Vec<Topic> = groups.iter().cloned().chain(logs).collect();
    let mut known: HashMap<u64, (EnvelopeMeta, ClientEnvelope)> = HashMap::new();
    let mut survivors = 0;
    for (kill_after, moment) in ROUNDS {
        let answered = Arc::new(Semaphore::new(0));
        let mut publishers = JoinSet::new();
        for who in 0..PUBLISHERS {
            let (client, groups, answered) = (backend.client(), groups.clone(), answered.clone());
            publishers.spawn(publish_until_killed(client, groups, who, answered));
        }
        answered.acquire_many(kill_after).await.unwrap().forget();
        if moment == Moment::Commit {
            let before = backend.mark("LogPartition");
            while backend.mark("LogPartition") == before {
                tokio::task::yield_now().await;
            }
        }
        backend.kill();
        let outcomes = publishers.join_all().await;

        backend.restart(vars).await;
        let client = backend.client();
        let before = known.keys().max().copied().unwrap_or(0);
        let mut unanswered = Vec::new();
        for outcome in outcomes {
            for (publish, metas) in outcome.answered {
                for (envelope, meta) in publish.into_iter().zip(metas) {
                    assert!(sequence_id(&meta) > before, "a later publish got an earlier id");
                    assert!(
                        known.insert(sequence_id(&meta), (meta, envelope)).is_none(),
                        "an id was given twice"
                    );
                }
            }
            unanswered.push(outcome.unanswered);
        }

        // Whatever was answered is there, as it was answered.
        let stored = read_all(&client, &topics).await;
        for (id, (meta, envelope)) in &known {
            let found = stored.get(id).expect("an answered envelope is lost");
            assert_eq!((found.meta.as_ref(), found.envelope.as_ref()), (Some(meta), Some(envelope)));
        }
        let highest = stored.keys().max().copied().unwrap_or(0);

        // A retry of the rest succeeds, once: what the kill let through keeps its id, all of a publish or nothing.
        for publish in unanswered {
            let metas = client.publish(publish.clone()).await.unwrap();
            let there = metas.iter().filter(|meta| stored.contains_key(&sequence_id(meta))).count();
            assert!(there == 0 || there == metas.len(), "half of a publish survived the kill");
            survivors += usize::from(there > 0);
            for (envelope, meta) in publish.into_iter().zip(metas) {
                let id = sequence_id(&meta);
                if let Some(found) = stored.get(&id) {
                    assert_eq!(
                        (found.meta.as_ref(), found.envelope.as_ref()),
                        (Some(&meta), Some(&envelope))
                    );
                } else {
                    assert!(id > highest, "{id} slipped in behind {highest}, which was visible");
                }
                assert!(known.insert(id, (meta, envelope)).is_none(), "an envelope was stored twice");
            }
        }

        // Nothing else is there.
        let stored = read_all(&client, &topics).await;
        assert_eq!(stored.len(), known.len());
        assert!(known.keys().all(|id| stored.contains_key(id)));
    }
    println!("{survivors} publishes were stored, and their answers lost");
}
