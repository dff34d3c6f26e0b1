//! What things are called in the model. Everything is as small as the model needs: ids and numbers are bytes.

use std::ops::{Index, IndexMut};

/// A sequence id. 0 is none.
pub type SequenceId = u8;
/// Which Update of the stream registered a topic, counted by the session from 1 (rule 3).
pub type Generation = u8;

/// One of the two topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// The first.
    A,
    /// The second.
    B,
}

impl Topic {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];
}

/// One of the two log partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartitionId {
    /// It holds topic A, and B too where the scenario has one partition.
    First,
    /// It holds topic B where the scenario has two.
    Second,
}

impl PartitionId {
    /// Both.
    pub const ALL: [Self; 2] = [Self::First, Self::Second];
}

/// One value for each topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PerTopic<T>(pub [T; 2]);

impl<T> Index<Topic> for PerTopic<T> {
    type Output = T;
    fn index(&self, topic: Topic) -> &T {
        &self.0[topic as usize]
    }
}

impl<T> IndexMut<Topic> for PerTopic<T> {
    fn index_mut(&mut self, topic: Topic) -> &mut T {
        &mut self.0[topic as usize]
    }
}

impl<T> PerTopic<Option<T>> {
    /// Whether no topic has one.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Those that there are.
    pub fn iter(&self) -> impl Iterator<Item = (Topic, &T)> {
        Topic::ALL.into_iter().filter_map(|topic| self[topic].as_ref().map(|value| (topic, value)))
    }

    /// Those that there are, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Topic, &mut T)> {
        Topic::ALL
            .into_iter()
            .zip(&mut self.0)
            .filter_map(|(topic, value)| value.as_mut().map(|value| (topic, value)))
    }
}

/// One value for each partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PerPartition<T>(pub [T; 2]);

impl<T> Index<PartitionId> for PerPartition<T> {
    type Output = T;
    fn index(&self, partition: PartitionId) -> &T {
        &self.0[partition as usize]
    }
}

impl<T> IndexMut<PartitionId> for PerPartition<T> {
    fn index_mut(&mut self, partition: PartitionId) -> &mut T {
        &mut self.0[partition as usize]
    }
}

/// Rows of one topic, by ascending sequence id: a set of ids below 16.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rows(u16);

impl Rows {
    /// The highest id that fits.
    pub const LAST_ID: SequenceId = 15;

    /// One row.
    pub fn of(id: SequenceId) -> Self {
        Self(1 << id)
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Those with an id above `id`.
    #[must_use]
    pub fn above(self, id: SequenceId) -> Self {
        // Two shifts: a shift by 16 would overflow.
        Self(self.0 >> id >> 1 << 1 << id)
    }

    /// Those with an id below `id`.
    #[must_use]
    pub fn below(self, id: SequenceId) -> Self {
        Self(self.0 & !(u16::MAX << id))
    }

    /// The lowest id.
    pub fn first(self) -> Option<SequenceId> {
        self.iter().next()
    }

    /// The highest id, or 0: the head of a topic that has these rows.
    pub fn head(self) -> SequenceId {
        self.iter().last().unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Their ids.
    pub fn iter(self) -> impl Iterator<Item = SequenceId> {
        (0..=Self::LAST_ID).filter(move |id| self.0 & 1 << id != 0)
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
