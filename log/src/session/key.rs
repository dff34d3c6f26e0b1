//! Topics, as a session keeps a hundred thousand of them: without an allocation for each.

use bytes::{Bytes, BytesMut};
use sealog_proto::{Kind, Topic};

/// The longest topic: a kind byte and an identifier of 32 bytes.
const WIDTH: usize = 33;

/// A topic, padded with zeros. The kind byte fixes the length, so that no two topics have the same key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key([u8; WIDTH]);

impl Key {
    pub(super) fn new(topic: &Topic) -> Self {
        Self::padded(topic.as_bytes()).expect("a topic has at most 33 bytes")
    }

    /// The key of a topic in a message of a partition, which names topics as it was told them. `None` for what can be
    /// no topic.
    pub(super) fn of_message(topic: &[u8]) -> Option<Self> {
        let kind = Kind::ALL.get(usize::from(*topic.first()?))?;
        (topic.len() == 1 + kind.identifier_len()).then(|| Self::padded(topic))?
    }

    fn padded(topic: &[u8]) -> Option<Self> {
        let mut bytes = [0; WIDTH];
        bytes.get_mut(..topic.len())?.copy_from_slice(topic);
        Some(Self(bytes))
    }

    /// Kind byte and identifier.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.0[..=Kind::ALL[usize::from(self.0[0])].identifier_len()]
    }
}

/// Says the kind only: an identifier must not reach a log (SEC-051).
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({:?})", Kind::ALL[usize::from(self.0[0])])
    }
}

/// The topics of many keys, in order, in one allocation that they share.
pub(super) fn shared<'a>(keys: impl Iterator<Item = &'a Key>) -> Vec<Bytes> {
    let mut bytes = BytesMut::new();
    let lengths: Vec<usize> = keys
        .map(|key| {
            bytes.extend_from_slice(key.as_slice());
            key.as_slice().len()
        })
        .collect();
    let mut bytes = bytes.freeze();
    lengths.into_iter().map(|length| bytes.split_to(length)).collect()
}
