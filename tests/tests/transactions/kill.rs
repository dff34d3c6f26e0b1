//! workerd is killed with SIGKILL under a load over many partitions, and started again on the same state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use fastrand::Rng;
use sealog_proto::Topic;
use sealog_tests::backend::Backend;
use sealog_tests::client::sequence_id;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::load::{Moment, Round, watch_boundary};
use crate::record::Record;
use crate::support::{Answered, Publish, VARS, a_group_on_each_partition, publish_until_stored};

const PUBLISHERS: usize = 32;
/// After a restart nothing is staged any more when so much time has passed: participants ask what became of a copy
/// that is 10 s old.
const SETTLED: Duration = Duration::from_secs(15);
/// How long a publish may take that nothing stands in the way of, on a busy machine. A copy that a kill left staged stands
/// there for some nine seconds.
const AT_ONCE: Duration = Duration::from_secs(6);
/// How often a kill is tried again that left nothing staged; about every second one does.
const ATTEMPTS: usize = 20;
/// The seed of a run that is to be repeated: the moments of the kills follow from it, not what they hit.
const SEED: &str = "SEALOG_TEST_SEED";

/// A backend that is killed again and again, and what is known of it.
struct Run {
    backend: Backend,
    topics: Arc<[Topic]>,
    rng: Rng,
    record: Record,
    answered: Vec<Answered>,
    /// Nobody knows whether these are stored.
    open: Vec<Publish>,
}

impl Run {
    async fn start() -> Self {
        let seed = std::env::var(SEED).ok().map(|text| text.parse().expect("a seed is a number"));
        let seed = seed.unwrap_or_else(|| fastrand::u64(..));
        println!("{SEED}={seed}");
        let backend = Backend::start(VARS).await;
        let topics: Arc<[Topic]> = (0..3).flat_map(|_| a_group_on_each_partition()).collect();
        let record = Record::new(&backend, &topics);
        let rng = Rng::with_seed(seed);
        Self { backend, topics, rng, record, answered: Vec::new(), open: Vec::new() }
    }

    /// 32 publishers, one who watches the boundary, a kill, a restart, and a look at what is left.
    async fn round(&mut self, widths: &'static [usize], moment: Moment) {
        let round = Round {
            topics: self.topics.clone(),
            widths,
            killed: Arc::new(AtomicBool::new(false)),
            answers: Arc::new(Semaphore::new(0)),
        };
        let mut publishers = JoinSet::new();
        for _ in 0..PUBLISHERS {
            // Some begin with what an earlier kill left open: a retry in the middle of everything.
            let begin_with_retry = !self.open.is_empty() && self.rng.u8(..4) == 0;
            let retry = begin_with_retry.then(|| self.open.swap_remove(self.rng.usize(..self.open.len())));
            let (client, rng) = (self.backend.client(), self.rng.fork());
            publishers.spawn(round.clone().publish_until_killed(client, rng, retry));
        }
        let watcher = tokio::spawn(watch_boundary(self.backend.raw(), self.record.boundary()));
        moment.wait(&self.backend, &round.answers).await;
        round.killed.store(true, SeqCst);
        self.backend.kill();
        let outcomes = publishers.join_all().await;
        let told = watcher.await.unwrap();
        self.backend.restart(VARS).await;

        let visible = self.record.newest();
        // What was told before the kill holds after it: all of it is visible, before anybody asks the sequencer anything.
        self.record.told(told);
        self.record.read().await;
        self.record.look().await;
        for outcome in outcomes {
            for (_, metas) in &outcome.answered {
                let later = metas.iter().all(|meta| sequence_id(meta) > visible);
                assert!(later, "a publish got an id below {visible}, which was visible before it began");
            }
            for (publish, metas) in outcome.answered.into_iter().chain(outcome.retried) {
                self.record.assert_stored(&publish, &metas);
                self.answered.push((publish, metas));
            }
            self.open.push(outcome.open);
        }
    }

    /// Retries everything that is open, 32 at once. How many had to wait for the end of what was staged?
    async fn retry(&mut self) -> usize {
        let mut waited = 0;
        while !self.open.is_empty() {
            let mut retries = JoinSet::new();
            for publish in self.open.drain(..self.open.len().min(PUBLISHERS)) {
                let client = self.backend.client();
                retries.spawn(async move {
                    let start = Instant::now();
                    let metas = publish_until_stored(&client, &publish, SETTLED).await;
                    (publish, metas, start.elapsed())
                });
            }
            for (publish, metas, took) in retries.join_all().await {
                waited += usize::from(took > AT_ONCE);
                self.answered.push((publish, metas));
            }
        }
        waited
    }

    /// Judges every publish of the run, once nothing is under way and what was staged has been given up or finished.
    async fn judge(mut self) {
        sleep(SETTLED).await;
        self.record.assert_boundary_reaches_newest().await;
        let survived = self.open.iter().filter(|publish| self.record.has_all_or_nothing(publish)).count();
        println!(
            "{} publishes were answered, {} were not, {survived} of them are stored",
            self.answered.len(),
            self.open.len()
        );
        assert_eq!(self.retry().await, 0, "something was still staged after {SETTLED:?}");
        self.record.assert_boundary_reaches_newest().await;

        // A reader who begins now sees the same as one who was there all the time, and nothing that nobody published.
        let mut afresh = Record::new(&self.backend, &self.topics);
        afresh.look().await;
        let envelopes: usize = self.answered.iter().map(|(publish, _)| publish.len()).sum();
        assert_eq!([self.record.len(), afresh.len()], [envelopes; 2]);
        for (publish, metas) in &self.answered {
            self.record.assert_stored(publish, metas);
            afresh.assert_stored(publish, metas);
        }
    }
}

async fn kill_again_and_again(rounds: usize) {
    let mut run = Run::start().await;
    let start = Instant::now();
    for _ in 0..rounds {
        let moment = Moment::any(&mut run.rng);
        run.round(&[1, 2, 5], moment).await;
    }
    println!("{rounds} rounds in {:?}", start.elapsed());
    run.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_201_220_222_224_287_289_291_20_kills_over_8_partitions_lose_and_split_nothing() {
    kill_again_and_again(20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: ten runs of 50 kills take minutes"]
async fn api_201_220_222_224_287_289_291_many_more_kills_over_8_partitions_lose_and_split_nothing() {
    for _ in 0..10 {
        kill_again_and_again(50).await;
    }
}

/// Who retries at once after a kill may meet a staged copy, and gets through when its participant has asked what became
/// of it. Where nobody retries and nobody publishes, it ends all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_203_220_224_what_a_kill_left_staged_ends_by_itself() {
    let mut run = Run::start().await;
    let mut met = 0;
    for _ in 0..ATTEMPTS {
        run.round(&[5], Moment::Commit(1, 1)).await;
        met = run.retry().await;
        if met > 0 {
            break;
        }
    }
    println!("{met} retries met a staged copy");
    assert!(met > 0, "no kill left anything staged");
    run.record.assert_boundary_reaches_newest().await;

    run.round(&[5], Moment::Commit(1, 1)).await;
    run.judge().await;
}
