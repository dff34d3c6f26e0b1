//! Publishers that go on until workerd is gone, and the moment at which it goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use fastrand::Rng;
use sealog_proto::Topic;
use sealog_proto::backend::EnvelopeMeta;
use sealog_tests::backend::Backend;
use sealog_tests::client::Client;
use sealog_tests::raw::Raw;
use sealog_tests::status;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::support::{Answered, Publish, may_be_repeated, message_on};

/// When a kill comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// So many milliseconds after the publishers started: the objects start, too.
    Start(u64),
    /// So many milliseconds after so many answers.
    Answer(u32, u64),
    /// After so many answers, at once after a commit of a partition has been seen so many times: the last one may be
    /// a staged copy, a decided one that was applied, or a publish of one partition.
    Commit(u32, u32),
}

impl Moment {
    pub(crate) fn any(rng: &mut Rng) -> Self {
        match rng.u8(..3) {
            0 => Self::Start(rng.u64(..300)),
            1 => Self::Answer(rng.u32(1..150), rng.u64(..50)),
            _ => Self::Commit(rng.u32(1..150), rng.u32(1..5)),
        }
    }

    pub(crate) async fn wait(self, backend: &Backend, answers: &Semaphore) {
        match self {
            Self::Start(millis) => sleep(Duration::from_millis(millis)).await,
            Self::Answer(count, millis) => {
                answers.acquire_many(count).await.unwrap().forget();
                sleep(Duration::from_millis(millis)).await;
            }
            Self::Commit(count, commits) => {
                answers.acquire_many(count).await.unwrap().forget();
                for _ in 0..commits {
                    let before = backend.mark("LogPartition");
                    while backend.mark("LogPartition") == before {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }
}

/// What the publishers of one round share.
#[derive(Clone)]
pub(crate) struct Round {
    pub(crate) topics: Arc<[Topic]>,
    /// How many topics a publish may have.
    pub(crate) widths: &'static [usize],
    /// Set just before the kill: from then on a failure says nothing.
    pub(crate) killed: Arc<AtomicBool>,
    /// One permit for each answer.
    pub(crate) answers: Arc<Semaphore>,
}

/// What one publisher knows when the backend is gone.
pub(crate) struct Outcome {
    pub(crate) answered: Vec<Answered>,
    /// A publish of an earlier round that was answered now.
    pub(crate) retried: Option<Answered>,
    /// The publish that failed: nobody knows whether it is stored.
    pub(crate) open: Publish,
}

impl Round {
    /// Publishes one after another, beginning with `retry` if there is one, until the backend is gone.
    pub(crate) async fn publish_until_killed(
        self,
        client: Client,
        mut rng: Rng,
        mut retry: Option<Publish>,
    ) -> Outcome {
        let (mut answered, mut retried) = (Vec::new(), None);
        loop {
            let is_retry = retry.is_some();
            let publish = retry.take().unwrap_or_else(|| self.new_publish(&mut rng));
            let Some(metas) = self.publish(&client, &publish).await else {
                return Outcome { answered, retried, open: publish };
            };
            if is_retry {
                retried = Some((publish, metas));
            } else {
                answered.push((publish, metas));
            }
        }
    }

    fn new_publish(&self, rng: &mut Rng) -> Publish {
        let width = self.widths[rng.usize(..self.widths.len())];
        rng.choose_multiple(self.topics.iter(), width).into_iter().map(message_on).collect()
    }

    /// The answer, or `None` when the backend is gone.
    async fn publish(&self, client: &Client, publish: &Publish) -> Option<Vec<EnvelopeMeta>> {
        loop {
            match client.publish(publish.clone()).await {
                Ok(metas) => {
                    self.answers.add_permits(1);
                    return Some(metas);
                }
                Err(_) if self.killed.load(SeqCst) => return None,
                Err(status) => assert!(may_be_repeated(&status), "{status:?}"),
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Asks for the boundary until the backend is gone, and gives the last one that was told, `told` if there was none.
/// Asserts that it never falls (API-291).
pub(crate) async fn watch_boundary(raw: Raw, mut told: u64) -> u64 {
    while let Ok(page) = status::read(&raw).await {
        let boundary = page.boundary.unwrap_or(told);
        assert!(boundary >= told, "the boundary fell from {told} to {boundary}");
        told = boundary;
        sleep(Duration::from_millis(2)).await;
    }
    told
}
