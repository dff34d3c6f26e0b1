//! What one client has received on one topic.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use prost::Message as _;
use sealog_proto::backend::ServerEnvelope;
use sealog_tests::client::id_of;

/// A sequence id and a hash of the envelope with its metadata.
pub(crate) type Entry = (u64, u64);

/// The entry of an envelope.
pub(crate) fn entry(envelope: &ServerEnvelope) -> Entry {
    let mut hasher = DefaultHasher::new();
    envelope.encode_to_vec().hash(&mut hasher);
    (id_of(envelope), hasher.finish())
}

/// One topic of one client: ascending, none twice.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Only what lies above is wanted.
    start: u64,
    entries: Vec<Entry>,
    /// A stream carries the topic now.
    pub(crate) is_registered: bool,
}

impl Journal {
    pub(crate) fn new(start: u64) -> Self {
        Self { start, entries: Vec::new(), is_registered: false }
    }

    /// Where the next registration resumes.
    pub(crate) fn cursor(&self) -> u64 {
        self.entries.last().map_or(self.start, |(id, _)| *id)
    }

    /// The newest id that was received, 0 when nothing was.
    pub(crate) fn last_received(&self) -> u64 {
        self.entries.last().map_or(0, |(id, _)| *id)
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The cursor as it was `count` entries ago.
    pub(crate) fn cursor_before(&self, count: usize) -> u64 {
        let at = self.entries.len().saturating_sub(count);
        at.checked_sub(1).map_or(self.start, |at| self.entries[at].0)
    }

    /// A new registration begins at `cursor`: what was received above it comes again.
    pub(crate) fn register(&mut self, cursor: u64) {
        self.entries.truncate(self.entries.partition_point(|(id, _)| *id <= cursor));
        self.is_registered = true;
    }

    /// # Panics
    /// When the topic is not registered, or the envelope comes twice or behind a later one (API-252, 253, 254).
    pub(crate) fn receive(&mut self, envelope: &ServerEnvelope) {
        let (id, hash) = entry(envelope);
        assert!(self.is_registered, "envelope {id} came on a topic that is not registered");
        let cursor = self.cursor();
        assert!(id > cursor, "envelope {id} came behind {cursor} on its topic");
        self.entries.push((id, hash));
    }
}
