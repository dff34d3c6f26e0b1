//! Section 1 under load: order and visibility while many publish and many read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use sealog_proto::Topic;
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, id_of, sequence_id, topic_of};
use tokio::task::JoinSet;

use crate::support::{fresh_group, ids_of, message_on, meta};

const WRITERS: usize = 16;
const PUBLISHES: usize = 12;
/// Topics in one publish, by turns.
const WIDTHS: [usize; 3] = [1, 2, 4];

/// What the tasks of one run share.
struct Run {
    topics: Vec<Topic>,
    /// The highest id that anybody has seen visible.
    visible: AtomicU64,
    writers_left: AtomicUsize,
}

impl Run {
    fn new(topics: usize) -> Arc<Self> {
        let topics = (0..topics).map(|_| fresh_group()).collect();
        Arc::new(Self { topics, visible: AtomicU64::new(0), writers_left: AtomicUsize::new(WRITERS) })
    }

    /// Publishes to one or several topics at a time and reads each publish back (API-202, API-289).
    async fn write(self: Arc<Self>, client: Client, writer: usize) -> Vec<(Topic, u64)> {
        let mut stored = Vec::new();
        for round in 0..PUBLISHES {
            let width = WIDTHS[round % WIDTHS.len()];
            let topics = self.topics.iter().cycle().skip(writer + round).take(width);
            let seen_before = self.visible.load(SeqCst);
            let metas = client.publish(topics.map(message_on).collect()).await.unwrap();
            for meta in &metas {
                let (topic, id) = (topic_of(meta), sequence_id(meta));
                assert!(id > seen_before, "{id} was given after {seen_before} was visible");
                self.visible.fetch_max(id, SeqCst);
                let page = client.query(&[(topic.clone(), id - 1)], 1).await.unwrap();
                assert_eq!(ids_of(&page.envelopes), [id], "a publish does not read itself");
                stored.push((topic, id));
            }
        }
        self.writers_left.fetch_sub(1, SeqCst);
        stored
    }

    /// Reads every topic from its beginning, again and again: each answer must continue the one before (API-201).
    async fn watch(self: Arc<Self>, client: Client) -> usize {
        let mut seen: HashMap<Topic, Vec<u64>> = HashMap::new();
        let mut reads = 0;
        loop {
            let last = self.writers_left.load(SeqCst) == 0;
            let positions: Vec<_> = self.topics.iter().map(|topic| (topic.clone(), 0)).collect();
            let page = client.query(&positions, 1000).await.unwrap();
            assert!(!page.continuation.unwrap_or_default().has_more, "the run fits one page");
            let mut now: HashMap<Topic, Vec<u64>> = HashMap::new();
            for envelope in &page.envelopes {
                now.entry(topic_of(meta(envelope))).or_default().push(id_of(envelope));
            }
            for (topic, ids) in &now {
                assert!(ids.is_sorted_by(|a, b| a < b), "out of order: {ids:?}");
                self.visible.fetch_max(*ids.last().unwrap(), SeqCst);
                let before = seen.get(topic).map_or(&[][..], Vec::as_slice);
                assert!(ids.starts_with(before), "{ids:?} does not continue {before:?}");
            }
            assert!(seen.keys().all(|topic| now.contains_key(topic)), "a topic's envelopes vanished");
            seen = now;
            reads += 1;
            if last {
                return reads;
            }
        }
    }

    /// Follows one topic from a cursor, as a client does, and returns what it got.
    async fn follow(self: Arc<Self>, client: Client, topic: Topic) -> Vec<u64> {
        let (mut cursor, mut got) = (0, Vec::new());
        loop {
            let last = self.writers_left.load(SeqCst) == 0;
            let page = client.query(&[(topic.clone(), cursor)], 7).await.unwrap();
            let ids = ids_of(&page.envelopes);
            assert!(ids.first().is_none_or(|first| *first > cursor), "{ids:?} at or below cursor {cursor}");
            cursor = ids.last().copied().unwrap_or(cursor);
            got.extend(ids);
            if last && !page.continuation.unwrap_or_default().has_more {
                return got;
            }
        }
    }
}

/// Also API-240: a client that pages while others publish misses nothing. Field reports 1, 11 and 15.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_201_202_289_readers_see_prefixes_while_16_writers_publish() {
    let backend = Backend::shared().await;
    write_and_read_at_once(&backend).await;
}

/// The same over 8 partitions: most publishes are transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_201_202_289_readers_see_prefixes_over_8_partitions() {
    let backend = Backend::start(&[("LOG_PARTITIONS", "8")]).await;
    write_and_read_at_once(&backend).await;
}

async fn write_and_read_at_once(backend: &Backend) {
    let run = Run::new(5);
    let (mut writers, mut watchers, mut followers) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
    for _ in 0..2 {
        watchers.spawn(run.clone().watch(backend.client()));
    }
    for topic in run.topics.clone() {
        let (run, client) = (run.clone(), backend.client());
        followers.spawn(async move { (topic.clone(), run.follow(client, topic).await) });
    }
    for writer in 0..WRITERS {
        writers.spawn(run.clone().write(backend.client(), writer));
    }

    let mut stored: HashMap<Topic, HashSet<u64>> = HashMap::new();
    for (topic, id) in writers.join_all().await.into_iter().flatten() {
        assert!(stored.entry(topic).or_default().insert(id), "{id} was given twice");
    }
    assert!(watchers.join_all().await.iter().all(|reads| *reads > 1), "the watchers read while others wrote");
    for (topic, got) in followers.join_all().await {
        assert!(got.is_sorted_by(|a, b| a < b), "a follower got {got:?}");
        assert_eq!(got.into_iter().collect::<HashSet<_>>(), stored[&topic], "a follower missed something");
    }
}

/// On one partition a read sees all of a publish or nothing. Two partitions may differ for a moment: across topics
/// the contract promises nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_220_a_reader_never_sees_half_of_a_publish() {
    let backend = Backend::start(&[("LOG_PARTITIONS", "1")]).await;
    let (left, right) = (fresh_group(), fresh_group());
    let done = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..8 {
        let (client, left, right, done) = (backend.client(), left.clone(), right.clone(), done.clone());
        writers.spawn(async move {
            for _ in 0..10 {
                client.publish(vec![message_on(&left), message_on(&right)]).await.unwrap();
            }
            done.fetch_add(1, SeqCst);
        });
    }
    let client = backend.client();
    loop {
        let last = done.load(SeqCst) == 8;
        let page = client.query(&[(left.clone(), 0), (right.clone(), 0)], 1000).await.unwrap();
        let on = |topic: &Topic| page.envelopes.iter().filter(|e| topic_of(meta(e)) == *topic).count();
        assert_eq!(on(&left), on(&right), "one half of a publish is visible without the other");
        if last {
            assert_eq!(on(&left), 80);
            break;
        }
    }
    writers.join_all().await;
}
