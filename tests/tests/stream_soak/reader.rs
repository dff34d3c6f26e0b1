//! A client that wants everything on its topics, whatever happens to its streams.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use fastrand::Rng;
use sealog_proto::Topic;
use sealog_proto::backend::ServerEnvelope;
use sealog_tests::client::{Client, topic_of};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tonic::Code;

use crate::journal::Journal;
use crate::run::{Heads, World};

/// The longest silence of a stream: the keepalive interval, and what a busy machine adds.
pub(crate) const SILENCE: Duration = Duration::from_secs(45);
/// The mean life of a stream, in seconds. Opening one takes about 15 ms of the backend's time, most of it flushes: lives
/// that are shorter would leave none for the publishers.
const LIFE: f64 = 15.0;
/// How long a client does nothing else than read, in milliseconds; likewise.
const READ: std::ops::Range<u64> = 500..8_000;

/// How a stream ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The client left.
    Cut,
    /// The client has everything.
    Done,
    /// The server ended it.
    Status { code: Code, message: String },
}

/// What a reader counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) streams: u64,
    pub(crate) registrations: u64,
    pub(crate) received: u64,
    /// Streams that a kill ended, or that did not open for one.
    pub(crate) killed: u64,
    /// Streams that ended with `UNAVAILABLE`.
    pub(crate) unavailable: u64,
}

/// One client.
pub(crate) struct Reader {
    pub(crate) who: usize,
    pub(crate) is_static: bool,
    pub(crate) world: Arc<World>,
    pub(crate) client: Client,
    pub(crate) rng: Rng,
    pub(crate) journals: HashMap<Topic, Journal>,
    /// The topics in one order, so that a seed says which are chosen.
    pub(crate) order: Vec<Topic>,
    pub(crate) heads: watch::Receiver<Option<Heads>>,
    pub(crate) tally: Tally,
}

impl Reader {
    /// Reads until everything up to the heads has been received, once they are told.
    ///
    /// # Panics
    /// When a stream breaks a rule of the contract, or ends without a reason.
    pub(crate) async fn read(mut self) -> Self {
        loop {
            let moment = self.world.moment();
            self.journals.values_mut().for_each(|journal| journal.is_registered = false);
            let ended = if self.is_static { self.follow_static().await } else { self.follow().await };
            match ended {
                Ok(Ended::Done) => return self,
                Ok(Ended::Cut) => {}
                Ok(Ended::Status { code: Code::Unavailable, message }) => {
                    if self.world.is_excused(moment) {
                        self.tally.killed += 1;
                    } else {
                        println!("reader {}: UNAVAILABLE: {message}", self.who);
                        self.tally.unavailable += 1;
                    }
                    self.pause().await;
                }
                Err(_) if self.world.is_excused(moment) => {
                    self.tally.killed += 1;
                    self.pause().await;
                }
                other => panic!("reader {} (static: {}): {other:?}", self.who, self.is_static),
            }
        }
    }

    async fn pause(&mut self) {
        sleep(Duration::from_millis(self.rng.u64(100..500))).await;
    }

    pub(crate) fn journal(&mut self, topic: &Topic) -> &mut Journal {
        self.journals.get_mut(topic).expect("a topic of this reader")
    }

    /// Every topic, from its cursor.
    pub(crate) fn positions(&self) -> Vec<(Topic, u64)> {
        self.order.iter().map(|topic| (topic.clone(), self.journals[topic].cursor())).collect()
    }

    /// The topics that no registration of the stream carries, from their cursors.
    pub(crate) fn unregistered(&self) -> Vec<(Topic, u64)> {
        let mut positions = self.positions();
        positions.retain(|(topic, _)| !self.journals[topic].is_registered);
        positions
    }

    pub(crate) fn choose(&mut self, count: usize) -> Vec<Topic> {
        self.rng.choose_multiple(self.order.iter(), count).into_iter().cloned().collect()
    }

    /// A registration is in force. What was received of the topic before was visible: the target is not below it.
    pub(crate) fn register(&mut self, topic: &Topic, cursor: u64, target: u64) -> anyhow::Result<()> {
        self.tally.registrations += 1;
        let journal = self.journal(topic);
        let seen = journal.last_received();
        ensure!(target >= seen, "target {target}, and {seen} was received before");
        journal.register(cursor);
        Ok(())
    }

    pub(crate) fn receive(&mut self, envelopes: &[ServerEnvelope]) {
        for envelope in envelopes {
            let topic = topic_of(envelope.meta.as_ref().expect("metadata"));
            self.journal(&topic).receive(envelope);
            self.tally.received += 1;
        }
    }

    /// Everything is there, and the heads have been told.
    pub(crate) fn is_done(&self) -> bool {
        let heads = self.heads.borrow();
        let Some(heads) = heads.as_ref() else { return false };
        self.journals.iter().all(|(topic, journal)| journal.is_registered && journal.cursor() >= heads[topic])
    }

    /// Returns when the heads are told. Never, when they have been told already.
    pub(crate) async fn news(&mut self) {
        if self.heads.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn cut_at(&mut self) -> Instant {
        let life = -LIFE * (1.0 - self.rng.f64()).ln();
        Instant::now() + Duration::from_secs_f64(life)
    }

    pub(crate) fn act_at(&mut self) -> Instant {
        Instant::now() + Duration::from_millis(self.rng.u64(READ))
    }
}
