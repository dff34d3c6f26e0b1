//! The backend of a run, who uses it, and what becomes of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use fastrand::Rng;
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::{Backend, Var};
use sealog_tests::fixtures::fresh_topic;
use sealog_tests::status;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::counts::Counts;
use crate::journal::Journal;
use crate::publisher::Publisher;
use crate::reader::{Reader, Tally};
use crate::stored::Stored;

const TOPICS: usize = 500;
const READERS: usize = 200;
/// Every so manyth reader uses `SubscribeStatic`.
const STATIC: usize = 5;
/// Topics of one reader at most.
const WIDTH: usize = 20;
const PUBLISHERS: usize = 8;
/// Kills in one cycle.
const KILLS: usize = 3;
/// An interval that a test lives to see, and in which an idle object goes to sleep: after ten seconds.
const VARS: &[Var<'static>] = &[status::OPEN, ("KEEPALIVE_INTERVAL_MS", "13000")];
/// Long enough for that.
const SLEEP: Duration = Duration::from_secs(14);
/// How long the readers may take to receive what is stored, once nobody publishes.
const PATIENCE: Duration = Duration::from_mins(2);
/// The seed of a run that is to be repeated: what clients do follows from it, not when.
const SEED: &str = "SEALOG_TEST_SEED";

/// The newest id of each topic.
pub(crate) type Heads = Arc<HashMap<Topic, u64>>;

/// A moment in the life of the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(u64);

/// What clients know of each other.
pub(crate) struct World {
    pub(crate) url: String,
    pub(crate) topics: Arc<[Topic]>,
    /// Goes up before a kill and after a restart: odd = nothing is to be expected of the backend.
    lives: AtomicU64,
    publishing: AtomicBool,
    wild: AtomicBool,
}

impl World {
    /// Publishers go on.
    pub(crate) fn is_publishing(&self) -> bool {
        self.publishing.load(SeqCst)
    }

    /// Readers cut their streams and change their topics.
    pub(crate) fn is_wild(&self) -> bool {
        self.wild.load(SeqCst)
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment(self.lives.load(SeqCst))
    }

    /// Whether what began at a moment may fail for a kill.
    pub(crate) fn is_excused(&self, began: Moment) -> bool {
        began.0 % 2 == 1 || self.moment() != began
    }

    fn turn(&self) {
        self.lives.fetch_add(1, SeqCst);
    }
}

/// A run.
pub(crate) struct Run {
    backend: Backend,
    world: Arc<World>,
    rng: Rng,
    readers: Vec<Reader>,
    stored: Stored,
    answered: Vec<(Topic, u64)>,
    counts: Counts,
    start: Instant,
}

impl Run {
    /// A fresh backend, and something in the logs before the readers come.
    pub(crate) async fn start() -> Self {
        let seed = std::env::var(SEED).ok().map(|text| text.parse().expect("a seed is a number"));
        let seed = seed.unwrap_or_else(|| fastrand::u64(..));
        println!("{SEED}={seed}");
        // Opening and ending a stream takes some dozen flushes: on a disk they would be all that happens.
        let backend = Backend::start_in_memory(VARS).await;
        let topics: Arc<[Topic]> = (0..TOPICS).map(|_| fresh_topic(Kind::GroupMessage)).collect();
        let world = World {
            url: backend.url().to_owned(),
            topics: topics.clone(),
            lives: AtomicU64::new(0),
            publishing: AtomicBool::new(false),
            wild: AtomicBool::new(true),
        };
        let mut run = Self {
            backend,
            world: Arc::new(world),
            rng: Rng::with_seed(seed),
            readers: Vec::new(),
            stored: Stored::new(topics),
            answered: Vec::new(),
            counts: Counts::default(),
            start: Instant::now(),
        };
        run.publish_for(Duration::from_millis(1_500)).await;
        run.stored.read(&run.backend.client()).await;
        run.readers = (0..READERS).map(|who| run.reader(who)).collect();
        run
    }

    /// How long it has been going.
    pub(crate) fn age(&self) -> Duration {
        self.start.elapsed()
    }

    /// A reader of topics at random, from cursors at random: the beginning, the middle, the end, beyond.
    fn reader(&mut self, who: usize) -> Reader {
        let rng = &mut self.rng;
        let count = rng.usize(1..=WIDTH);
        let order: Vec<_> =
            rng.choose_multiple(self.world.topics.iter(), count).into_iter().cloned().collect();
        let journals = order.iter().map(|topic| {
            let newest = self.stored.newest();
            let start = match rng.u8(..4) {
                0 => rng.u64(..=newest),
                1 => self.stored.head(topic),
                2 => newest + rng.u64(..1_000),
                _ => 0,
            };
            (topic.clone(), Journal::new(start))
        });
        Reader {
            who,
            is_static: who.is_multiple_of(STATIC),
            world: self.world.clone(),
            client: self.backend.client(),
            journals: journals.collect(),
            order,
            rng: rng.fork(),
            heads: watch::channel(None).1,
            tally: Tally::default(),
        }
    }

    fn publishers(&mut self) -> JoinSet<Vec<(Topic, u64)>> {
        self.world.publishing.store(true, SeqCst);
        let mut publishers = JoinSet::new();
        for _ in 0..PUBLISHERS {
            publishers.spawn(Publisher::new(&self.backend, self.world.clone(), self.rng.fork()).publish());
        }
        publishers
    }

    async fn publish_for(&mut self, time: Duration) {
        let publishers = self.publishers();
        sleep(time).await;
        self.stop(publishers).await;
    }

    async fn stop(&mut self, publishers: JoinSet<Vec<(Topic, u64)>>) {
        self.world.publishing.store(false, SeqCst);
        self.answered.extend(publishers.join_all().await.into_iter().flatten());
    }

    async fn kill(&mut self) {
        self.counts.add(&self.backend.raw()).await;
        self.world.turn();
        self.backend.kill();
        sleep(Duration::from_millis(self.rng.u64(..500))).await;
        self.backend.restart(VARS).await;
        self.world.turn();
    }

    /// Load and kills; then a quiet time in which objects sleep, and what wakes them; then everybody has everything.
    pub(crate) async fn cycle(&mut self) {
        let (tell, heads) = watch::channel(None);
        self.world.wild.store(true, SeqCst);
        let mut readers = JoinSet::new();
        for mut reader in self.readers.drain(..) {
            reader.heads = heads.clone();
            readers.spawn(reader.read());
        }
        let publishers = self.publishers();
        for _ in 0..KILLS {
            sleep(Duration::from_millis(self.rng.u64(4_000..8_000))).await;
            self.kill().await;
        }
        sleep(Duration::from_secs(5)).await;
        self.world.wild.store(false, SeqCst);
        self.stop(publishers).await;

        sleep(SLEEP).await;
        self.publish_for(Duration::from_secs(2)).await;
        self.stored.read(&self.backend.client()).await;
        let told: HashMap<_, _> =
            self.world.topics.iter().map(|topic| (topic.clone(), self.stored.head(topic))).collect();
        tell.send_replace(Some(Arc::new(told)));
        let start = Instant::now();
        self.readers =
            timeout(PATIENCE, readers.join_all()).await.expect("some reader did not receive what is stored");
        println!(
            "{:.1?}: {} envelopes are stored, all readers have theirs, after {:.1?}",
            self.age(),
            self.stored.len(),
            start.elapsed()
        );
        self.judge();
    }

    fn judge(&self) {
        for reader in &self.readers {
            for (topic, journal) in &reader.journals {
                self.stored.judge(reader.who, topic, journal);
            }
        }
        for (topic, id) in &self.answered {
            assert!(self.stored.has(topic, *id), "envelope {id} was answered, and is lost");
        }
    }

    /// Prints what happened; more than one in `limit` may not be unusual.
    pub(crate) async fn end(mut self, limit: u64) {
        self.counts.add(&self.backend.raw()).await;
        let mut all = Tally::default();
        for Reader { tally, .. } in &self.readers {
            all.streams += tally.streams;
            all.registrations += tally.registrations;
            all.received += tally.received;
            all.killed += tally.killed;
            all.unavailable += tally.unavailable;
        }
        println!("{all:?}, {} envelopes published", self.answered.len());
        self.counts.judge(limit);
        assert!(all.unavailable * 100 <= all.streams, "streams ended for no reason");
    }
}
