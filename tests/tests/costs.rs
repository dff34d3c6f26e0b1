//! What a lone publish costs over 1, 2 and 8 partitions: flushes, calls to objects, time. `--nocapture` shows the table;
//! the calls that objects make to each other are not in it, and times are shown, not judged.

#![allow(clippy::disallowed_methods)] // tests live in real time

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sealog_proto::backend::ClientEnvelope;
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::Backend;
use sealog_tests::client::Client;
use sealog_tests::fixtures::{fresh_topic_on, group_message};
use sealog_tests::status;

/// Publishes that are counted, and then repeated.
const COUNTED: u64 = 10;
/// Publishes that are timed.
const TIMED: usize = 50;
/// The sequencer stores its time limit at most this often, and now and then a block of ids.
const SECONDS_PER_LIMIT: u64 = 2;

/// What one step of a measurement cost.
#[derive(Debug, PartialEq)]
struct Cost {
    /// Commits of all partitions.
    partition_flushes: u64,
    /// Commits of the sequencer.
    sequencer_flushes: u64,
    /// The worker's calls to objects, by command.
    calls: BTreeMap<String, u64>,
}

/// How the topics of a publish lie.
#[derive(Clone, Copy)]
struct Shape {
    /// `LOG_PARTITIONS`.
    partitions: u32,
    /// How many of them the publish touches, evenly.
    touched: u32,
    /// Topics, one envelope each.
    topics: usize,
}

struct Bench {
    backend: Backend,
    client: Client,
    topics: Vec<Topic>,
}

impl Bench {
    async fn start(shape: Shape) -> Self {
        let vars = [("LOG_PARTITIONS", &*shape.partitions.to_string()), status::OPEN];
        let backend = Backend::start(&vars).await;
        let spread = (0..shape.touched).cycle().take(shape.topics);
        let topics = spread.map(|at| fresh_topic_on(Kind::GroupMessage, at, shape.partitions)).collect();
        let this = Self { client: backend.client(), backend, topics };
        this.client.publish(this.publish()).await.unwrap(); // the objects are there now, with tables and first block
        this
    }

    fn publish(&self) -> Vec<ClientEnvelope> {
        self.topics.iter().map(|topic| group_message(topic.identifier(), 256)).collect()
    }

    /// Publishes one after another, and counts.
    async fn count(&self, publishes: &[Vec<ClientEnvelope>]) -> Cost {
        let raw = self.backend.raw();
        let before = status::read(&raw).await.unwrap();
        let [partitions, sequencer] = ["LogPartition", "Sequencer"].map(|class| self.backend.mark(class));
        for publish in publishes {
            self.client.publish(publish.clone()).await.unwrap();
        }
        let flushes = |class, mark| self.backend.mark(class).commits_since(mark).unwrap();
        Cost {
            partition_flushes: flushes("LogPartition", &partitions),
            sequencer_flushes: flushes("Sequencer", &sequencer),
            calls: status::read(&raw).await.unwrap().calls_since(&before),
        }
    }

    /// Half of the publishes took less.
    async fn median(&self) -> Duration {
        let mut times = Vec::with_capacity(TIMED);
        for _ in 0..TIMED {
            let publish = self.publish();
            let start = Instant::now();
            self.client.publish(publish).await.unwrap();
            times.push(start.elapsed());
        }
        times.sort_unstable();
        times[TIMED / 2]
    }
}

/// The calls of [`COUNTED`] publishes that make so many each.
fn calls(each: &[(&str, u32)]) -> BTreeMap<String, u64> {
    each.iter().map(|(command, count)| ((*command).to_owned(), COUNTED * u64::from(*count))).collect()
}

/// On one partition: one call, one flush and nothing staged, however many topics. Over k partitions: k staged copies,
/// one decision and k steps, each a call and a flush. A repetition of what is stored flushes nothing.
#[tokio::test]
async fn a_lone_publish_costs_one_flush_on_one_partition_and_2k_plus_1_over_k() {
    println!("| LOG_PARTITIONS | touched | topics | flushes of partitions + sequencer | calls | median |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (partitions, touched, topics) in [(1, 1, 1), (1, 1, 8), (8, 1, 8), (2, 2, 2), (8, 2, 2), (8, 8, 8)] {
        let bench = Bench::start(Shape { partitions, touched, topics }).await;
        let publishes: Vec<_> = (0..COUNTED).map(|_| bench.publish()).collect();
        let start = Instant::now();
        let cost = bench.count(&publishes).await;
        let (partition_flushes, decisions, once, again) = if touched == 1 {
            (1, 0, calls(&[("store", 1)]), calls(&[("store", 1)]))
        } else {
            let once = calls(&[("stage", touched), ("decide", 1), ("apply", touched)]);
            (2 * touched, 1, once, calls(&[("stage", touched), ("apply", touched)]))
        };
        assert_eq!(cost.partition_flushes, COUNTED * u64::from(partition_flushes));
        assert_eq!(cost.calls, once);
        let others = 2 + start.elapsed().as_secs() / SECONDS_PER_LIMIT;
        let of_sequencer = COUNTED * decisions..=COUNTED * decisions + others;
        assert!(of_sequencer.contains(&cost.sequencer_flushes), "{cost:?}");

        let repeated = bench.count(&publishes).await;
        assert_eq!((repeated.partition_flushes, repeated.calls), (0, again), "a repetition");

        let calls: Vec<_> =
            once.iter().map(|(command, count)| format!("{} {command}", count / COUNTED)).collect();
        println!(
            "| {partitions} | {touched} | {topics} | {partition_flushes} + {decisions} | {} | {:.1?} |",
            calls.join(", "),
            bench.median().await
        );
    }
}
