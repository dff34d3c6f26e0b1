//! What one run of the model is about: what the client asks for, what is stored, what the adversary may do, and which
//! rule is broken, if any.

use crate::mutation::Mutation;
use crate::names::{PartitionId, PerPartition, PerTopic, Rows, SequenceId, Topic};

/// One Update of the client. It names a topic at most once (API-251).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Update(pub PerTopic<Option<Change>>);

/// What an Update asks for one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Add it, from this cursor.
    Add(SequenceId),
    /// Remove it.
    Remove,
}

impl Update {
    /// The same, and adds `topic` from `cursor`.
    #[must_use]
    pub fn add(mut self, topic: Topic, cursor: SequenceId) -> Self {
        self.0[topic] = Some(Change::Add(cursor));
        self
    }

    /// The same, and removes `topic`.
    #[must_use]
    pub fn remove(mut self, topic: Topic) -> Self {
        self.0[topic] = Some(Change::Remove);
        self
    }
}

/// How often the adversary may act in one run. Losing and reordering messages costs nothing: a message that never
/// arrives is lost, and any may arrive next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A message is delivered and stays under way.
    pub repeats: u8,
    /// A call is given up, whatever became of it, and made again.
    pub time_outs: u8,
    /// A partition loses its memory.
    pub crashes: u8,
    /// A partition has more queued than it may keep: what it owes becomes hints (rules 6 and 9).
    pub overflows: u8,
    /// The session hibernates: at a quiet moment its memory goes, the socket stays.
    pub hibernations: u8,
    /// The session's memory is lost while it is busy, and the socket stays.
    pub losses: u8,
}

/// What the protocol could do instead: not broken, not chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The session sends no removes; the first unwanted push ends the watch.
    NoRemoves,
    /// A partition forgets a session's last Control number together with its last watch.
    NumberForgotten,
    /// Rows that follow a hint are appended to it.
    HintGrows,
}

/// One instance of the model.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What the client does.
    pub name: &'static str,
    /// Its Updates, sent one by one at any moments.
    pub updates: Vec<Update>,
    /// How many partitions hold the topics: 1 or 2.
    pub partitions: u8,
    /// Rows at the start, by rising id.
    pub stored: Vec<Topic>,
    /// Rows that may commit, at any moments.
    pub commits: u8,
    /// On these topics.
    pub committed: Vec<Topic>,
    /// What the adversary may do.
    pub faults: Faults,
    /// What the protocol could do instead.
    pub variant: Option<Variant>,
    /// Progress is not tested, only safety.
    pub safety_only: bool,
    /// Messages that can change nothing any more stay under way.
    pub keeps_inert: bool,
    /// The broken rule.
    pub mutation: Option<Mutation>,
}

impl Scenario {
    /// These Updates, one partition, nothing stored, no commits and no faults.
    pub fn new(name: &'static str, updates: impl Into<Vec<Update>>) -> Self {
        Self {
            name,
            updates: updates.into(),
            partitions: 1,
            stored: Vec::new(),
            commits: 0,
            committed: Vec::new(),
            faults: Faults::default(),
            variant: None,
            safety_only: false,
            keeps_inert: false,
            mutation: None,
        }
    }

    /// The same; each topic has a partition of its own.
    #[must_use]
    pub fn two_partitions(mut self) -> Self {
        self.partitions = 2;
        self
    }

    /// The same with these rows stored at the start.
    #[must_use]
    pub fn stored(mut self, rows: &[Topic]) -> Self {
        self.stored = rows.to_vec();
        self
    }

    /// The same; so many rows may commit, on these topics.
    #[must_use]
    pub fn commits(mut self, rows: u8, on: &[Topic]) -> Self {
        self.commits = rows;
        self.committed = on.to_vec();
        self
    }

    /// The same; so many messages may be repeated.
    #[must_use]
    pub fn repeats(mut self, times: u8) -> Self {
        self.faults.repeats = times;
        self
    }

    /// The same; so many calls may time out.
    #[must_use]
    pub fn time_outs(mut self, times: u8) -> Self {
        self.faults.time_outs = times;
        self
    }

    /// The same; partitions may crash so often.
    #[must_use]
    pub fn crashes(mut self, times: u8) -> Self {
        self.faults.crashes = times;
        self
    }

    /// The same; the session may hibernate so often.
    #[must_use]
    pub fn hibernations(mut self, times: u8) -> Self {
        self.faults.hibernations = times;
        self
    }

    /// The same; the session may lose its memory so often while it is busy.
    #[must_use]
    pub fn losses(mut self, times: u8) -> Self {
        self.faults.losses = times;
        self
    }

    /// The same; what is queued may become hints so often.
    #[must_use]
    pub fn overflows(mut self, times: u8) -> Self {
        self.faults.overflows = times;
        self
    }

    /// The same for a variant of the protocol.
    #[must_use]
    pub fn variant(mut self, variant: Variant) -> Self {
        self.variant = Some(variant);
        self
    }

    /// The same; progress is not tested.
    #[must_use]
    pub fn safety_only(mut self) -> Self {
        self.safety_only = true;
        self
    }

    /// The same without the reduction that forgets inert messages: more states, and the same verdict.
    #[must_use]
    pub fn keeps_inert(mut self) -> Self {
        self.keeps_inert = true;
        self
    }

    /// The same with a rule broken.
    #[must_use]
    pub fn mutated(mut self, mutation: Mutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    /// Whether this run is about a variant of the protocol.
    pub fn is(&self, variant: Variant) -> bool {
        self.variant == Some(variant)
    }

    /// Whether this run breaks the protocol in this way.
    pub fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The Update with this ordinal, counted from 1.
    pub fn update(&self, ordinal: u8) -> &Update {
        &self.updates[usize::from(ordinal) - 1]
    }

    /// Who holds a topic.
    pub fn partition(&self, topic: Topic) -> PartitionId {
        if self.partitions == 2 && topic == Topic::B { PartitionId::Second } else { PartitionId::First }
    }

    /// Whether a partition has anything to do.
    pub fn uses(&self, partition: PartitionId) -> bool {
        partition == PartitionId::First || self.partitions == 2
    }

    /// What a partition has stored at the start.
    pub fn stored_at_start(&self) -> PerPartition<PerTopic<Rows>> {
        let mut rows = PerPartition::<PerTopic<Rows>>::default();
        for (id, topic) in (1..).zip(&self.stored) {
            rows[self.partition(*topic)][*topic].extend(Rows::of(id));
        }
        rows
    }

    /// The highest id that is ever given out.
    pub fn last_id(&self) -> SequenceId {
        u8::try_from(self.stored.len()).unwrap_or(u8::MAX).saturating_add(self.commits)
    }
}
