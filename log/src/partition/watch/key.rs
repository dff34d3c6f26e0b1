//! Topics, as the index keeps a million of them: without an allocation for each.

use bytes::Bytes;
use sealog_proto::Kind;

/// The longest topic: a kind byte and an identifier of 32 bytes.
const WIDTH: usize = 33;

/// A topic, padded with zeros. The kind byte fixes the length, so that no two topics have the same key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key([u8; WIDTH]);

impl Key {
    /// Before every topic.
    pub(super) const MIN: Self = Self([0; WIDTH]);
    /// Behind every topic.
    pub(super) const MAX: Self = Self([u8::MAX; WIDTH]);

    /// `None` for what can be no topic.
    pub(super) fn parse(topic: &[u8]) -> Option<Self> {
        let kind = Kind::ALL.get(usize::from(*topic.first()?))?;
        if topic.len() != 1 + kind.identifier_len() {
            return None;
        }
        let mut bytes = [0; WIDTH];
        bytes[..topic.len()].copy_from_slice(topic);
        Some(Self(bytes))
    }

    /// Kind byte and identifier.
    pub(super) fn as_slice(&self) -> &[u8] {
        let kind = Kind::ALL.get(usize::from(self.0[0]));
        &self.0[..kind.map_or(WIDTH, |kind| 1 + kind.identifier_len())]
    }

    pub(super) fn to_bytes(self) -> Bytes {
        Bytes::copy_from_slice(self.as_slice())
    }
}

/// Says the kind only: an identifier must not reach a log (SEC-051).
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({:?})", Kind::ALL.get(usize::from(self.0[0])))
    }
}
