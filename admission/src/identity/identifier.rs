//! Who may act for an inbox: a wallet, an installation, a passkey.

use std::borrow::Cow;
use std::sync::Arc;

use base16ct::{lower, mixed};
use bytes::Bytes;
use sealog_proto::associations::{IdentifierKind, MemberIdentifier, Passkey, member_identifier};
use sha2::{Digest, Sha256};

use super::IdentityRejection;

/// An identifier of any kind. Two are equal when kind and bytes are; the relying party of a passkey is no part of it
/// (SEC-031).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identifier {
    /// The text of an address: `0x` and 40 lowercase hexadecimal digits. As a recovery identifier any text, which
    /// then matches no signer (SEC-024).
    Ethereum(Arc<str>),
    /// A key of 32 bytes, when it is a signer; named in a revocation, any bytes.
    Installation(Bytes),
    /// A SEC1 point, when it is a signer; named otherwise, any bytes.
    Passkey(Bytes),
}

impl Identifier {
    /// A member that an update names.
    pub(super) fn member(named: Option<&MemberIdentifier>) -> Result<Self, IdentityRejection> {
        let kind = named.and_then(|named| named.kind.as_ref()).ok_or(IdentityRejection::NoMember)?;
        Ok(match kind {
            member_identifier::Kind::EthereumAddress(address) => Self::address(address)?,
            member_identifier::Kind::InstallationPublicKey(key) => Self::Installation(key.clone()),
            member_identifier::Kind::Passkey(passkey) => Self::Passkey(passkey.key.clone()),
        })
    }

    /// The identifier that founds an inbox, from its text and kind number.
    pub(super) fn founder(text: &str, kind: i32) -> Result<Self, IdentityRejection> {
        match Self::of_text(text, kind)? {
            Self::Ethereum(address) => Self::address(&address),
            other => Ok(other),
        }
    }

    /// The identifier that a recovery role goes to. The text of an address is not judged (SEC-024).
    pub(super) fn recovery(text: &str, kind: i32) -> Result<Self, IdentityRejection> {
        Self::of_text(text, kind)
    }

    /// An unknown kind number reads as Ethereum.
    fn of_text(text: &str, kind: i32) -> Result<Self, IdentityRejection> {
        match IdentifierKind::try_from(kind) {
            Ok(IdentifierKind::Passkey) => {
                Ok(Self::Passkey(passkey_key(text).ok_or(IdentityRejection::PasskeyHex)?))
            }
            Ok(IdentifierKind::Handle) => Err(IdentityRejection::HandleAsIdentifier),
            Ok(IdentifierKind::Unspecified | IdentifierKind::Ethereum) | Err(_) => {
                Ok(Self::Ethereum(text.into()))
            }
        }
    }

    /// IDENT-013. Never rewritten into that form: the text is inside what was signed.
    fn address(text: &str) -> Result<Self, IdentityRejection> {
        if is_canonical_address(text) {
            Ok(Self::Ethereum(text.into()))
        } else {
            Err(IdentityRejection::AddressForm)
        }
    }

    /// How a signature text and an inbox id spell it.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Ethereum(address) => Cow::Borrowed(address),
            Self::Installation(key) | Self::Passkey(key) => Cow::Owned(lower::encode_string(key)),
        }
    }

    /// The id of the inbox that it founds with this nonce (IDENT-010).
    pub fn inbox_id(&self, nonce: u64) -> String {
        let hash = Sha256::new().chain_update(self.text().as_bytes()).chain_update(nonce.to_string());
        lower::encode_string(&hash.finalize())
    }
}

impl From<&Identifier> for MemberIdentifier {
    fn from(identifier: &Identifier) -> Self {
        let kind = match identifier {
            Identifier::Ethereum(address) => member_identifier::Kind::EthereumAddress(address.to_string()),
            Identifier::Installation(key) => member_identifier::Kind::InstallationPublicKey(key.clone()),
            Identifier::Passkey(key) => {
                member_identifier::Kind::Passkey(Passkey { key: key.clone(), relying_party: None })
            }
        };
        Self { kind: Some(kind) }
    }
}

/// `0x` and 40 hexadecimal digits, none of them a capital.
pub(super) fn is_canonical_address(text: &str) -> bool {
    is_address(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// `0x` and 40 hexadecimal digits.
pub(super) fn is_address(text: &str) -> bool {
    text.strip_prefix("0x")
        .is_some_and(|digits| digits.len() == 40 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// The bytes that the text of a passkey stands for: hexadecimal of either case, `0x` before it or not.
pub(super) fn passkey_key(text: &str) -> Option<Bytes> {
    mixed::decode_vec(text.strip_prefix("0x").unwrap_or(text)).ok().map(Bytes::from)
}
