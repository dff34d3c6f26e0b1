//! What a reader of all topics has seen, look after look; every look is held to the contract.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use prost::Message as _;
use sealog_proto::Topic;
use sealog_proto::backend::{ClientEnvelope, EnvelopeMeta};
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, sequence_id, topic_of};
use sealog_tests::raw::Raw;
use sealog_tests::status;
use tokio::time::{Instant, sleep};

/// How long the boundary may take to reach the newest id once nothing is under way.
const BOUNDARY_LAG: Duration = Duration::from_secs(10);

/// A reader that keeps its cursors and everything it has read.
pub(crate) struct Record {
    client: Client,
    raw: Raw,
    /// The highest id read on each topic.
    cursors: HashMap<Topic, u64>,
    by_envelope: HashMap<Vec<u8>, EnvelopeMeta>,
    ids: HashSet<u64>,
    /// The highest boundary that was told.
    boundary: u64,
    /// The one that was told before the last read: nothing may appear at or below it any more.
    settled: u64,
}

impl Record {
    pub(crate) fn new(backend: &Backend, topics: &[Topic]) -> Self {
        Self {
            client: backend.client(),
            raw: backend.raw(),
            cursors: topics.iter().map(|topic| (topic.clone(), 0)).collect(),
            by_envelope: HashMap::new(),
            ids: HashSet::new(),
            boundary: 0,
            settled: 0,
        }
    }

    /// Reads the boundary, then everything new on every topic.
    pub(crate) async fn look(&mut self) {
        let told = status::read(&self.raw).await.unwrap().boundary;
        self.told(told.expect("the sequencer tells its boundary"));
        self.read().await;
    }

    /// Reads everything new on every topic.
    ///
    /// Holds: what is new lies above all that was read on its topic before (API-201), and above every boundary that was
    /// told before the last read (API-203); no id comes twice (API-287), and no envelope (API-222).
    pub(crate) async fn read(&mut self) {
        let settled = std::mem::replace(&mut self.settled, self.boundary);
        loop {
            let positions: Vec<_> = self.cursors.iter().map(|(topic, id)| (topic.clone(), *id)).collect();
            let page = self.client.query(&positions, 1000).await.unwrap();
            for envelope in page.envelopes {
                let (meta, body) = (envelope.meta.unwrap(), envelope.envelope.unwrap());
                let id = sequence_id(&meta);
                let cursor = self.cursors.get_mut(&topic_of(&meta)).expect("a topic that was asked for");
                assert!(id > *cursor, "{id} came behind {cursor} on its topic");
                assert!(id > settled, "{id} appeared below the boundary {settled}");
                *cursor = id;
                assert!(self.ids.insert(id), "{id} was given twice");
                assert!(
                    self.by_envelope.insert(body.encode_to_vec(), meta).is_none(),
                    "an envelope is there twice"
                );
            }
            if !page.continuation.unwrap_or_default().has_more {
                return;
            }
        }
    }

    /// Takes note of a boundary that was told, here or to somebody else: it never falls (API-291).
    pub(crate) fn told(&mut self, boundary: u64) {
        assert!(boundary >= self.boundary, "the boundary fell from {} to {boundary}", self.boundary);
        self.boundary = boundary;
    }

    pub(crate) fn boundary(&self) -> u64 {
        self.boundary
    }

    /// How many envelopes there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The highest id there is.
    pub(crate) fn newest(&self) -> u64 {
        self.cursors.values().copied().max().unwrap_or(0)
    }

    /// What is stored of an envelope.
    pub(crate) fn find(&self, envelope: &ClientEnvelope) -> Option<&EnvelopeMeta> {
        self.by_envelope.get(&envelope.encode_to_vec())
    }

    /// Asserts that an answered publish is there as it was answered, stored at once.
    pub(crate) fn assert_stored(&self, publish: &[ClientEnvelope], metas: &[EnvelopeMeta]) {
        assert_eq!(publish.len(), metas.len());
        for (envelope, meta) in publish.iter().zip(metas) {
            assert_eq!(
                self.find(envelope),
                Some(meta),
                "an answered envelope is lost, or not as it was answered"
            );
            // A half that a retry had to add later would have a time of its own.
            assert_eq!(meta.server_ns, metas[0].server_ns, "a publish was stored in pieces");
        }
    }

    /// Whether a publish is there.
    ///
    /// # Panics
    /// When a part of it is.
    pub(crate) fn has_all_or_nothing(&self, publish: &[ClientEnvelope]) -> bool {
        let there = publish.iter().filter(|envelope| self.find(envelope).is_some()).count();
        assert!(there == 0 || there == publish.len(), "{there} of {} envelopes are stored", publish.len());
        there > 0
    }

    /// Asserts that the boundary reaches the newest id while nothing is under way.
    pub(crate) async fn assert_boundary_reaches_newest(&mut self) {
        let start = Instant::now();
        self.look().await;
        while self.boundary < self.newest() {
            assert!(
                start.elapsed() < BOUNDARY_LAG,
                "the boundary stays at {}, below {}",
                self.boundary,
                self.newest()
            );
            sleep(Duration::from_millis(20)).await;
            self.look().await;
        }
    }
}
