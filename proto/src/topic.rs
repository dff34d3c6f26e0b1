//! Topics: one kind byte and an identifier whose length the kind fixes (TOPIC-001).

use std::fmt;

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// What a topic carries. The number is the kind byte; it is never given to another payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Group messages, by group id.
    GroupMessage = 0,
    /// Welcomes, by installation key.
    Welcome = 1,
    /// Identity updates, by inbox id.
    IdentityUpdate = 2,
    /// Key packages, by installation key.
    KeyPackage = 3,
    /// Commit-log entries, by group id.
    CommitLog = 4,
}

impl Kind {
    /// Every kind, in the order of the kind byte.
    pub const ALL: [Self; 5] =
        [Self::GroupMessage, Self::Welcome, Self::IdentityUpdate, Self::KeyPackage, Self::CommitLog];

    /// Bytes of the identifier of such a topic.
    pub const fn identifier_len(self) -> usize {
        match self {
            Self::GroupMessage | Self::CommitLog => 16,
            Self::Welcome | Self::IdentityUpdate | Self::KeyPackage => 32,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

/// A valid topic. Cheap to clone; ordered and hashed by its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Bytes);

/// Why bytes are no topic (TOPIC-003).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// There is no byte at all, or no `Topic` message.
    #[error("the topic is empty: it needs a kind byte and an identifier")]
    Empty,
    /// The first byte names no kind.
    #[error("the topic's kind byte is {0}: known kinds are 0 to 4")]
    UnknownKind(u8),
    /// The rest has not the length that the kind demands.
    #[error("the topic's identifier has {actual} bytes: kind {kind} needs {expected}")]
    WrongLength {
        /// The kind byte.
        kind: u8,
        /// Bytes that the kind demands.
        expected: usize,
        /// Bytes that were there.
        actual: usize,
    },
}

impl Topic {
    /// Takes the bytes of a `Topic` message.
    pub fn parse(bytes: Bytes) -> Result<Self, TopicError> {
        let (&byte, identifier) = bytes.split_first().ok_or(TopicError::Empty)?;
        let kind = Kind::from_byte(byte).ok_or(TopicError::UnknownKind(byte))?;
        check_len(kind, identifier.len())?;
        Ok(Self(bytes))
    }

    /// Takes the optional message of a request; a missing one is an empty topic.
    pub fn from_message(message: Option<&crate::backend::Topic>) -> Result<Self, TopicError> {
        Self::parse(message.ok_or(TopicError::Empty)?.topic.clone())
    }

    /// Derives the topic of a payload from the identifier that it carries (TOPIC-001, TOPIC-002).
    pub fn derive(kind: Kind, identifier: &[u8]) -> Result<Self, TopicError> {
        check_len(kind, identifier.len())?;
        let mut bytes = Vec::with_capacity(1 + identifier.len());
        bytes.push(kind as u8);
        bytes.extend_from_slice(identifier);
        Ok(Self(bytes.into()))
    }

    /// What the topic carries.
    pub fn kind(&self) -> Kind {
        Kind::ALL[usize::from(self.0[0])] // checked when the topic was made
    }

    /// The bytes behind the kind byte.
    pub fn identifier(&self) -> &[u8] {
        &self.0[1..]
    }

    /// Kind byte and identifier.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Which of `partitions` log partitions keeps this topic.
    ///
    /// A fixed hash of the identifier *without* the kind byte, so that a group's messages and its commit log, or an
    /// installation's key packages and Welcomes, live together. It must never change: the rows are where it says.
    ///
    /// # Panics
    /// When `partitions` is 0.
    pub fn partition(&self, partitions: u32) -> u32 {
        let digest = Sha256::digest(self.identifier());
        let word = u64::from_be_bytes(digest[..8].try_into().expect("a digest has 32 bytes"));
        u32::try_from(word % u64::from(partitions)).expect("a remainder is below its divisor")
    }
}

fn check_len(kind: Kind, actual: usize) -> Result<(), TopicError> {
    let expected = kind.identifier_len();
    if actual == expected {
        Ok(())
    } else {
        Err(TopicError::WrongLength { kind: kind as u8, expected, actual })
    }
}

impl From<&Topic> for crate::backend::Topic {
    fn from(topic: &Topic) -> Self {
        Self { topic: topic.0.clone() }
    }
}

/// Says the kind only: an identifier must not reach a log (SEC-051).
impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({:?})", self.kind())
    }
}
