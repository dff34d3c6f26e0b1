//! Topics, as an index keeps a million of them: without an allocation for each.

use bytes::{Bytes, BytesMut};
use sealog_proto::{Kind, Topic};

/// The longest topic: a kind byte and an identifier of 32 bytes.
const WIDTH: usize = 33;

/// A topic, padded with zeros. The kind byte fixes the length, so that no two topics have the same key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key([u8; WIDTH]);

impl Key {
    /// Before every topic.
    pub(crate) const MIN: Self = Self([0; WIDTH]);
    /// Behind every topic.
    pub(crate) const MAX: Self = Self([u8::MAX; WIDTH]);

    pub(crate) fn new(topic: &Topic) -> Self {
        Self::padded(topic.as_bytes())
    }

    /// The key of a topic in a message. `None` for what can be no topic.
    pub(crate) fn parse(topic: &[u8]) -> Option<Self> {
        let kind = Kind::ALL.get(usize::from(*topic.first()?))?;
        (topic.len() == 1 + kind.identifier_len()).then(|| Self::padded(topic))
    }

    /// A topic has at most [`WIDTH`] bytes.
    fn padded(topic: &[u8]) -> Self {
        let mut bytes = [0; WIDTH];
        bytes[..topic.len()].copy_from_slice(topic);
        Self(bytes)
    }

    /// Kind byte and identifier.
    pub(crate) fn as_slice(&self) -> &[u8] {
        let kind = Kind::ALL.get(usize::from(self.0[0]));
        &self.0[..kind.map_or(WIDTH, |kind| 1 + kind.identifier_len())]
    }

    pub(crate) fn to_bytes(self) -> Bytes {
        Bytes::copy_from_slice(self.as_slice())
    }
}

/// Says the kind only: an identifier must not reach a log (SEC-051).
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({:?})", Kind::ALL.get(usize::from(self.0[0])))
    }
}

/// The topics of many keys, in order, in one allocation that they share.
pub(crate) fn shared<'a>(keys: impl Iterator<Item = &'a Key>) -> Vec<Bytes> {
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
