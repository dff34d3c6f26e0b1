//! What a session and the partitions say to each other. The network may lose, repeat and reorder any of it.

use crate::names::{Generation, PartitionId, PerTopic, Rows, SequenceId, Topic};
use crate::scenario::Scenario;

/// One message. Requests and replies alike: a call is two messages, so a reply may be lost too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// Session to partition (rule 3).
    Control(Control),
    /// Partition to session.
    ControlReply(ControlReply),
    /// Partition to session (rule 6).
    Push(Push),
    /// Session to partition.
    PushReply(PushReply),
    /// Session to partition (rule 14).
    Pull(Pull),
    /// Partition to session.
    Page(Page),
    /// Only under [`crate::Mutation::TargetBeforeWatch`]: a partition's second event for one Control, in which it
    /// stores the watches after it has read the heads.
    StoreWatches(Control, ControlReply),
}

/// Watch these topics, and no longer those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Control {
    /// To whom.
    pub to: PartitionId,
    /// Rises over the life of the session, in one counter for all partitions. A retry repeats number and content.
    pub number: u8,
    /// Why it is sent.
    pub kind: Kind,
    /// Topics to watch.
    pub add: PerTopic<Option<Generation>>,
    /// Topics to forget, each only if the partition still has this generation.
    pub remove: PerTopic<Option<Generation>>,
}

/// Why a Control is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An Update of the client asks for it.
    Update,
    /// The session woke, was behind, and asks for the heads of all its topics (rule 20).
    Sync,
}

/// The heads of the added topics, read in the event that stored the watches (rule 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ControlReply {
    /// Who answers.
    pub from: PartitionId,
    /// Of the Control.
    pub number: u8,
    /// Of the added topics.
    pub heads: PerTopic<Option<SequenceId>>,
}

/// News of watched topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Push {
    /// Whose.
    pub name: PushName,
    /// At most one for each topic.
    pub items: PerTopic<Option<Item>>,
}

/// What pairs the answer with its push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PushName {
    /// Whose.
    pub from: PartitionId,
    /// Of the instance that sent it; stored, so no two instances share one.
    pub incarnation: u8,
    /// Counted in memory, from 1 in each instance.
    pub number: u8,
}

/// News of one topic. A fact about the log: in (`previous`, `head`] are exactly `rows`.
///
/// A hint has no rows and `previous` = `head`: it says only how far the topic goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    /// The watch for which it is sent.
    pub generation: Generation,
    /// The topic's head before the first of `rows`.
    pub previous: SequenceId,
    /// All rows in (`previous`, `head`].
    pub rows: Rows,
    /// The last of `rows`; of a hint, the topic's head.
    pub head: SequenceId,
}

impl Item {
    /// Says only how far the topic goes.
    pub fn hint(generation: Generation, head: SequenceId) -> Self {
        Self { generation, previous: head, rows: Rows::default(), head }
    }
}

/// The session's answer to a push, given in the event in which it came (rule 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PushReply {
    /// Of the push.
    pub name: PushName,
    /// The stream is over.
    pub gone: bool,
    /// Watches that the session does not have.
    pub unwanted: PerTopic<Option<Generation>>,
}

/// A request for rows of one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pull {
    /// Whose rows.
    pub topic: Topic,
    /// Of the registration.
    pub generation: Generation,
    /// Which of the registration's pulls: pairs the page with its call.
    pub number: u8,
    /// Rows with a higher id are wanted.
    pub after: SequenceId,
}

/// One page: the first row above `after`. A fact about the log: in (`after`, `through`] are exactly `rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Page {
    /// What it answers.
    pub pull: Pull,
    /// One row, or none.
    pub rows: Rows,
    /// `head` if nothing more is stored, else the last of `rows`.
    pub through: SequenceId,
    /// The topic's head when the page was read.
    pub head: SequenceId,
}

impl Message {
    /// The partition to which it goes; `None`: to the session.
    pub fn partition(&self, scenario: &Scenario) -> Option<PartitionId> {
        match self {
            Self::Control(control) | Self::StoreWatches(control, _) => Some(control.to),
            Self::PushReply(reply) => Some(reply.name.from),
            Self::Pull(pull) => Some(scenario.partition(pull.topic)),
            Self::ControlReply(_) | Self::Push(_) | Self::Page(_) => None,
        }
    }
}
