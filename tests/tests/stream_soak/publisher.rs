//! Publishers at full speed.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use sealog_proto::Topic;
use sealog_proto::backend::ClientEnvelope;
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, sequence_id};
use sealog_tests::fixtures::group_message;
use tokio::time::sleep;
use tonic::Code;

use crate::run::World;

/// Topics of one publish at most.
const WIDTH: usize = 4;
/// Payload bytes of an envelope at most.
const SIZE: usize = 1_000;
/// Before the same bytes are sent again.
const PAUSE: Duration = Duration::from_millis(50);

/// Publishes one request after another.
pub(crate) struct Publisher {
    client: Client,
    world: Arc<World>,
    rng: Rng,
    /// What was answered.
    answered: Vec<(Topic, u64)>,
}

impl Publisher {
    pub(crate) fn new(backend: &Backend, world: Arc<World>, rng: Rng) -> Self {
        Self { client: backend.client(), world, rng, answered: Vec::new() }
    }

    /// Publishes until the world says that it is enough, and gives what was answered: topic and id.
    ///
    /// # Panics
    /// When a publish fails with another status than one after which the same bytes may be sent again.
    pub(crate) async fn publish(mut self) -> Vec<(Topic, u64)> {
        let mut again: Option<(Vec<Topic>, Vec<ClientEnvelope>)> = None;
        while self.world.is_publishing() || again.is_some() {
            let (topics, envelopes) = again.take().unwrap_or_else(|| self.make());
            let moment = self.world.moment();
            match self.client.publish(envelopes.clone()).await {
                Ok(metas) => self.answered.extend(topics.into_iter().zip(metas.iter().map(sequence_id))),
                Err(status) => {
                    let may_be_repeated = matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded)
                        || self.world.is_excused(moment);
                    assert!(may_be_repeated, "{status:?}");
                    again = Some((topics, envelopes));
                    sleep(PAUSE).await;
                }
            }
        }
        self.answered
    }

    fn make(&mut self) -> (Vec<Topic>, Vec<ClientEnvelope>) {
        let width = self.rng.usize(1..=WIDTH);
        let topics: Vec<Topic> =
            self.rng.choose_multiple(self.world.topics.iter(), width).into_iter().cloned().collect();
        let envelopes =
            topics.iter().map(|topic| group_message(topic.identifier(), self.rng.usize(32..SIZE))).collect();
        (topics, envelopes)
    }
}
