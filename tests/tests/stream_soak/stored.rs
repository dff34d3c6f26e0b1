//! What is stored, read page by page.

use std::collections::HashMap;
use std::sync::Arc;

use sealog_proto::Topic;
use sealog_tests::client::{Client, id_of, topic_of};

use crate::journal::{Entry, Journal, entry};

/// Every envelope of every topic, as far as it was read.
#[derive(Debug)]
pub(crate) struct Stored {
    topics: Arc<[Topic]>,
    logs: HashMap<Topic, Vec<Entry>>,
}

impl Stored {
    pub(crate) fn new(topics: Arc<[Topic]>) -> Self {
        let logs = topics.iter().map(|topic| (topic.clone(), Vec::new())).collect();
        Self { topics, logs }
    }

    /// Reads what is new.
    pub(crate) async fn read(&mut self, client: &Client) {
        loop {
            let positions: Vec<_> =
                self.topics.iter().map(|topic| (topic.clone(), self.head(topic))).collect();
            let page = client.query(&positions, 1_000).await.expect("a page of what is stored");
            for envelope in &page.envelopes {
                let topic = topic_of(envelope.meta.as_ref().expect("metadata"));
                assert!(id_of(envelope) > self.head(&topic), "a page is ascending");
                self.logs.get_mut(&topic).expect("a topic that was asked for").push(entry(envelope));
            }
            if !page.continuation.unwrap_or_default().has_more {
                return;
            }
        }
    }

    /// The newest id of a topic, 0 when it has none.
    pub(crate) fn head(&self, topic: &Topic) -> u64 {
        self.logs[topic].last().map_or(0, |(id, _)| *id)
    }

    /// The newest id of all topics.
    pub(crate) fn newest(&self) -> u64 {
        self.topics.iter().map(|topic| self.head(topic)).max().unwrap_or_default()
    }

    /// How many envelopes are stored.
    pub(crate) fn len(&self) -> usize {
        self.logs.values().map(Vec::len).sum()
    }

    /// Whether an id is stored on a topic.
    pub(crate) fn has(&self, topic: &Topic, id: u64) -> bool {
        self.logs[topic].binary_search_by_key(&id, |(id, _)| *id).is_ok()
    }

    /// # Panics
    /// When a client received something else on a topic than what is stored above its cursor.
    pub(crate) fn judge(&self, who: usize, topic: &Topic, journal: &Journal) {
        let log = &self.logs[topic];
        let above = &log[log.partition_point(|(id, _)| *id <= journal.start())..];
        if let Some(at) = (0..above.len().max(journal.entries().len()))
            .find(|at| above.get(*at) != journal.entries().get(*at))
        {
            panic!(
                "reader {who} received {:?} where {:?} is stored, {at} envelopes above {}",
                journal.entries().get(at),
                above.get(at),
                journal.start()
            );
        }
    }
}
