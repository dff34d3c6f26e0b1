//! Who watches what: topic → (session, generation), 8 bytes for each watch.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::sessions::Slot;
use crate::key::Key;

/// One session that watches a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watcher {
    pub(super) session: Slot,
    /// The ordinal of the Update that registered the topic.
    pub(super) generation: u32,
}

/// The watches of a partition. Ordered by topic: nothing here depends on a hash, so a client cannot choose topics that
/// make it slow.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Each topic's watchers, by session.
    topics: BTreeMap<Key, Vec<Watcher>>,
    watches: usize,
}

impl Index {
    /// How many watches there are.
    pub(super) fn watches(&self) -> usize {
        self.watches
    }

    /// How many topics somebody watches.
    pub(super) fn topics(&self) -> usize {
        self.topics.len()
    }

    /// Ascending by session.
    pub(super) fn watchers(&self, topic: &Key) -> &[Watcher] {
        self.topics.get(topic).map_or(&[], Vec::as_slice)
    }

    /// The generation under which a session watches a topic.
    pub(super) fn generation(&self, topic: &Key, session: Slot) -> Option<u32> {
        let watchers = self.watchers(topic);
        find(watchers, session).ok().map(|at| watchers[at].generation)
    }

    /// Enters a watch; a generation replaces the older one, which is returned.
    pub(super) fn insert(&mut self, topic: Key, watcher: Watcher) -> Option<u32> {
        // Most topics have one watcher.
        let watchers = self.topics.entry(topic).or_insert_with(|| Vec::with_capacity(1));
        match find(watchers, watcher.session) {
            Ok(at) => Some(std::mem::replace(&mut watchers[at], watcher).generation),
            Err(at) => {
                watchers.insert(at, watcher);
                self.watches += 1;
                None
            }
        }
    }

    /// Says whether there was such a watch.
    pub(super) fn remove(&mut self, topic: &Key, session: Slot) -> bool {
        let Some(watchers) = self.topics.get_mut(topic) else { return false };
        let Ok(at) = find(watchers, session) else { return false };
        watchers.remove(at);
        self.watches -= 1;
        if watchers.is_empty() {
            self.topics.remove(topic);
        }
        true
    }

    /// The watched topics behind `topic`, in order.
    pub(super) fn behind(&self, topic: Option<Key>) -> impl Iterator<Item = &Key> {
        let from = topic.map_or(Bound::Unbounded, Bound::Excluded);
        self.topics.range((from, Bound::Unbounded)).map(|(key, _)| key)
    }
}

fn find(watchers: &[Watcher], session: Slot) -> Result<usize, usize> {
    watchers.binary_search_by_key(&session, |watcher| watcher.session)
}
