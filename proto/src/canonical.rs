//! The stored bytes of an envelope, and their hash (API-211).
//!
//! The encoder is frozen for as long as data lives: another encoding of the same value would be another hash, and a
//! retry would no longer be recognised (API-222). It writes fields in ascending order, leaves out defaults of fields
//! without presence, writes fields with presence even when empty, uses the shortest varints, and drops what it does
//! not know. `tests/canonical.rs` pins it byte for byte, kind by kind.

use bytes::Bytes;
use prost::Message;
use sha2::{Digest, Sha256};

use crate::backend::ClientEnvelope;

/// SHA-256 of the canonical bytes.
pub type Hash = [u8; 32];

/// An envelope in the form in which it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// What is stored and returned.
    pub body: Bytes,
    /// The message hash of `body`.
    pub hash: Hash,
}

impl Canonical {
    /// Encodes a decoded envelope.
    pub fn of(envelope: &ClientEnvelope) -> Self {
        let body = Bytes::from(envelope.encode_to_vec());
        let hash = Sha256::digest(&body).into();
        Self { body, hash }
    }
}
