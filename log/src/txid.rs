//! Names of transactions (rule 12).

use bytes::Bytes;
use sealog_proto::internal::failure::Kind;

use crate::{CommandError, Nanos, SqlError, Value};

/// 16 random bytes and the time after which the transaction is no longer decided. Ordered by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Txid([u8; Txid::LEN]);

impl Txid {
    /// Bytes of a txid.
    pub const LEN: usize = 24;

    /// Makes one. `random` must never be used again: a txid serves one attempt.
    pub fn new(random: [u8; 16], not_after: Nanos) -> Self {
        let mut bytes = [0; Self::LEN];
        bytes[..16].copy_from_slice(&random);
        bytes[16..].copy_from_slice(&not_after.to_be_bytes());
        Self(bytes)
    }

    /// Reads one from a message or a row.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Reads the one that a command names.
    pub(crate) fn of_request(bytes: &[u8]) -> Result<Self, CommandError> {
        Self::parse(bytes).ok_or_else(|| CommandError::refused(Kind::BadCommand, "a txid has 24 bytes"))
    }

    /// When it can no longer be decided, in nanoseconds since the Unix epoch.
    pub fn not_after(&self) -> Nanos {
        self.0[16..].iter().fold(0, |all, byte| all << 8 | Nanos::from(*byte))
    }

    /// For a message or a row.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// For a message.
    pub fn to_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.0)
    }

    pub(crate) fn of_column(value: &Value) -> Result<Self, SqlError> {
        Self::parse(&value.blob()?).ok_or_else(|| SqlError("a stored txid has not 24 bytes".to_owned()))
    }
}
