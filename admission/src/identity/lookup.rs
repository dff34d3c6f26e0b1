//! What inboxes are looked up by (API-270, API-299), in the forms that updates are projected to (SEC-023).

use bytes::Bytes;
use sealog_proto::associations::IdentifierKind;
use sealog_proto::internal;
use thiserror::Error;

use super::Identifier;
use super::handle;
use super::identifier::{is_canonical_address, passkey_key};

/// An identifier or a handle in its normal form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupKey {
    /// Never `Unspecified`.
    pub kind: IdentifierKind,
    /// An address: its lowercase text. A passkey: its SEC1 bytes. A handle: its lowercase text.
    pub key: Bytes,
}

impl LookupKey {
    /// The key of a member; installations have none (SEC-025).
    pub(super) fn of(member: &Identifier) -> Option<Self> {
        match member {
            Identifier::Ethereum(address) => {
                Some(Self { kind: IdentifierKind::Ethereum, key: Bytes::copy_from_slice(address.as_bytes()) })
            }
            Identifier::Passkey(key) => Some(Self { kind: IdentifierKind::Passkey, key: key.clone() }),
            Identifier::Installation(_) => None,
        }
    }
}

impl From<LookupKey> for internal::LookupKey {
    fn from(LookupKey { kind, key }: LookupKey) -> Self {
        Self { kind: kind.into(), key }
    }
}

/// Why a whole lookup fails with `INVALID_ARGUMENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LookupError {
    /// API-299.
    #[error(
        "a handle is 1 to 32 letters, digits and underscores, not beginning with a digit, then at most a dot and 2 to 9 digits"
    )]
    Handle,
}

/// The key that an entry of `GetInboxIds` asks for. `None`: nothing can ever be associated with it.
pub fn lookup_key(identifier: &str, kind: i32) -> Result<Option<LookupKey>, LookupError> {
    // As in an update, a number that is not known reads as the first.
    let key = match IdentifierKind::try_from(kind).unwrap_or_default() {
        IdentifierKind::Unspecified | IdentifierKind::Ethereum => {
            let address = identifier.to_ascii_lowercase();
            is_canonical_address(&address)
                .then(|| LookupKey { kind: IdentifierKind::Ethereum, key: address.into() })
        }
        IdentifierKind::Passkey => {
            passkey_key(identifier).map(|key| LookupKey { kind: IdentifierKind::Passkey, key })
        }
        IdentifierKind::Handle => {
            let handle = identifier.to_ascii_lowercase();
            handle::name_part(&handle).ok_or(LookupError::Handle)?;
            Some(LookupKey { kind: IdentifierKind::Handle, key: handle.into() })
        }
    };
    Ok(key)
}
