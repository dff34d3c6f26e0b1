//! `/-/repair`: restores what the Directories know from the identity logs, for operators.
//!
//! The logs are the truth; associations and handles in the Directories follow from them. The repair walks the logs, one
//! batch of inboxes per request, and tells the Directories again what each update did. They take what they lack and
//! ignore the rest, so it may run at any time, beside traffic, and as often as one likes. `scripts/repair` asks for
//! batch after batch.

use std::collections::BTreeMap;

use base16ct::{lower, mixed};
use bytes::Bytes;
use sealog_log::directory;
use sealog_proto::{
    Topic,
    internal::{AssociateRequest, Claim, InboxesRequest, LookupKey, associate_request::Association},
};
use serde::Serialize;

use crate::{
    admit::{
        self,
        history::{self, Reading},
    },
    deployment::Deployment,
    error::Status,
};

/// Inboxes per batch: each may have a long history, and a request has a limit of calls and of time.
const BATCH: u32 = 50;

/// Where a batch begins: behind a topic of a log partition. As text, the index and the topic in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    partition: u32,
    after: Bytes,
}

impl Position {
    /// Reads a position as a batch gave it; empty text is the beginning.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let (partition, after) = text.split_once('-')?;
        let after = mixed::decode_vec(after).ok()?.into();
        Some(Self { partition: partition.parse().ok()?, after })
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.partition, lower::encode_string(&self.after))
    }
}

/// What a batch did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Inboxes that were walked.
    pub inboxes: usize,
    /// Where the next batch begins; nowhere when all is done.
    pub next: Option<String>,
}

/// Walks one batch.
pub async fn batch(deployment: &Deployment, from: &Position) -> Result<Progress, Status> {
    if from.partition >= deployment.config.log_partitions {
        return Ok(Progress { inboxes: 0, next: None });
    }
    let request = InboxesRequest { after: from.after.clone(), limit: BATCH };
    let topics = deployment.store.inboxes(from.partition, request).await?.topics;
    let inboxes = topics.len();
    let next = match topics.last() {
        Some(last) => Position { partition: from.partition, after: last.clone() },
        None => Position { partition: from.partition + 1, after: Bytes::new() },
    };
    restore(deployment, topics).await?;
    let done = next.partition >= deployment.config.log_partitions;
    Ok(Progress { inboxes, next: (!done).then(|| next.to_string()) })
}

/// Reads the logs of these inboxes, and tells the Directories what is in them.
async fn restore(deployment: &Deployment, topics: Vec<Bytes>) -> Result<(), Status> {
    let mut readings = Vec::with_capacity(topics.len());
    for topic in topics {
        readings.push(Reading::of(Topic::parse(topic)?));
    }
    let mut news =
        News { directories: deployment.config.directory_partitions, by_directory: BTreeMap::new() };
    loop {
        let pages = history::next_pages(deployment, readings.iter()).await?;
        if pages.is_empty() {
            break;
        }
        for (place, page) in pages {
            for (sequence_id, change) in history::fold(deployment, &mut readings[place], page).await? {
                let key = LookupKey { kind: change.key.kind.into(), key: change.key.key };
                news.association(&readings[place], key, sequence_id, change.live);
            }
        }
    }
    for reading in &readings {
        for handle in reading.state.handles() {
            news.claim(reading, handle);
        }
    }
    for (directory, request) in news.by_directory {
        deployment.store.associate(directory, request).await?;
    }
    Ok(())
}

/// What each Directory is told.
struct News {
    directories: u32,
    by_directory: BTreeMap<u32, AssociateRequest>,
}

impl News {
    fn of(&mut self, key: &LookupKey) -> &mut AssociateRequest {
        self.by_directory.entry(directory::partition_of(key, self.directories)).or_default()
    }

    fn association(&mut self, reading: &Reading, key: LookupKey, sequence_id: u64, live: bool) {
        let inbox_id = Bytes::copy_from_slice(reading.topic.identifier());
        let request = self.of(&key);
        request.associations.push(Association { key: Some(key), inbox_id, sequence_id, live });
    }

    fn claim(&mut self, reading: &Reading, handle: &str) {
        let key = admit::handle_key(handle);
        let inbox_id = Bytes::copy_from_slice(reading.topic.identifier());
        self.of(&key).claims.push(Claim { handle: handle.to_owned(), inbox_id });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let position = Position { partition: 7, after: Bytes::from_static(&[2, 0xab, 0]) };
        assert_eq!(position.to_string(), "7-02ab00");
        assert_eq!(Position::parse("7-02ab00"), Some(position));
        assert_eq!(Position::parse(""), Some(Position::default()));
        for text in ["7", "-02", "7-0", "7-0g", "7-+1", "x-02", "4294967296-"] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_position_or_none(text: String) {
            if let Some(position) = Position::parse(&text) {
                prop_assert_eq!(Position::parse(&position.to_string()), Some(position));
            }
        }
    }
}
