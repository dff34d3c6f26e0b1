//! Key packages: one `KeyPackage` of RFC 9420 section 10 and nothing behind it, addressed by its leaf's signature key.
//!
//! [`check`] is what the admission table asks beyond parsing (JOIN-004, JOIN-007, JOIN-008; SEC-012), and nothing
//! beyond that: API-235 and SEC-013 name what must pass. `docs/decisions/0007` says how far this agrees with
//! OpenMLS, and why it is not OpenMLS that runs here.

use std::collections::BTreeSet;

use ed25519_dalek::{Signature, VerifyingKey};
use prost::Message;
use sealog_proto::backend::KeyPackage;
use sealog_proto::{Kind, MlsCredential, Topic};
use thiserror::Error;

use crate::Rejection;
use crate::mls::{self, Credential, LeafNode, LeafNodeSource, Reader, SyntaxError};

const MLS10: u16 = 1;
const BASIC_CREDENTIAL: u16 = 1;

/// Extension types of RFC 9420 section 17.3 and of the extensions draft, as far as a rule names them.
mod extension_type {
    pub(super) const APPLICATION_ID: u16 = 1;
    pub(super) const RATCHET_TREE: u16 = 2;
    pub(super) const REQUIRED_CAPABILITIES: u16 = 3;
    pub(super) const EXTERNAL_PUB: u16 = 4;
    pub(super) const EXTERNAL_SENDERS: u16 = 5;
    pub(super) const LAST_RESORT: u16 = 10;
    /// Of the network's own, and for group contexts.
    pub(super) const GROUP_CONTEXT_ONLY: u16 = 0xf000;
}

/// Why a key package that parses is not valid. The text tells a client developer what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyPackageFault {
    /// The leaf node was made for an update or a commit.
    #[error("its leaf node is not of the source `key_package`: build the leaf for the package")]
    LeafNodeSource,
    /// Another protocol version than MLS 1.0.
    #[error("its protocol version is {0}: 1 (mls10) is the one in use")]
    Version(u16),
    /// The init key is the leaf's encryption key.
    #[error("its init_key equals its leaf's encryption_key: generate two key pairs")]
    SameKeys,
    /// An extension that belongs into another object.
    #[error("it has an extension of type {0}, which does not belong into a key package")]
    MisplacedExtension(u16),
    /// An extension that the leaf does not claim to support.
    #[error("its extension of type {0} is not listed in its leaf's capabilities: list it")]
    UnlistedExtension(u16),
    /// `not_before` lies ahead.
    #[error("its lifetime has not begun: check the clock of the device")]
    NotYetValid,
    /// `not_after` has been reached.
    #[error("its lifetime is over: publish a fresh one")]
    Expired,
    /// The credential is not a basic one.
    #[error("its credential has the type {0}: 1 (basic) is the one in use")]
    CredentialType(u16),
    /// The identity is no `MlsCredential`.
    #[error("the identity of its credential is no encoded MlsCredential")]
    CredentialIdentity,
    /// The cipher suite signs with something else than Ed25519.
    #[error("its signature key has 32 bytes, and cipher suite {0} does not sign with such keys")]
    SignatureScheme(u16),
    /// The leaf's signature is not that of its own key.
    #[error("the signature of its leaf node does not verify")]
    LeafSignature,
    /// The package's signature is not that of the leaf's key.
    #[error("its signature does not verify under its leaf's signature_key")]
    Signature,
}

/// What a cipher suite signs with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignatureScheme {
    Ed25519,
    Other,
}

impl SignatureScheme {
    /// The scheme of the suites of RFC 9420 section 17.1, and of the drafts with X-Wing and ML-KEM that clients
    /// know. `None` for any other suite: nobody can decode or verify such a package.
    const fn of(cipher_suite: u16) -> Option<Self> {
        match cipher_suite {
            1 | 3 | 0x004d | 0x004e | 0x004f => Some(Self::Ed25519),
            2 | 4..=7 => Some(Self::Other),
            _ => None,
        }
    }
}

pub(crate) fn topic(package: &KeyPackage) -> Result<Topic, Rejection> {
    let parsed = parse(&package.key_package_tls_serialized)?;
    let signature_key = parsed.leaf.signature_key;
    Topic::derive(Kind::KeyPackage, signature_key)
        .map_err(|_| Rejection::SignatureKeyLength(signature_key.len()))
}

/// The checks of a key package that is not stored yet: a duplicate succeeds without them (API-222).
///
/// `tls_serialized` is `KeyPackage.key_package_tls_serialized`; `now_seconds` counts from 1970, rounded down.
pub fn check(tls_serialized: &[u8], now_seconds: u64) -> Result<(), Rejection> {
    let package = parse(tls_serialized)?;
    let signature_key = package.leaf.signature_key;
    let key = signature_key.try_into().map_err(|_| Rejection::SignatureKeyLength(signature_key.len()))?;
    // Every fault has the same reason, so that the signatures, which cost most, come last.
    check_leaf(&package.leaf, now_seconds)?;
    check_package(&package)?;
    check_signatures(&package, key)?;
    Ok(())
}

/// Reads the package to its end, and refuses what no client can decode.
fn parse(tls_serialized: &[u8]) -> Result<mls::KeyPackage<'_>, Rejection> {
    let mut reader = Reader::new(tls_serialized);
    mls::key_package(&mut reader)
        .and_then(|package| {
            reader.finish()?;
            decodes(&package)?;
            Ok(package)
        })
        .map_err(Rejection::KeyPackage)
}

/// Clients cannot decode a package of a suite that they do not know, nor a leaf with an extension that is not for
/// leaves, nor an extension whose data does not fit its type.
fn decodes(package: &mls::KeyPackage<'_>) -> Result<(), SyntaxError> {
    if SignatureScheme::of(package.cipher_suite).is_none() {
        return Err(SyntaxError::UnknownValue { field: "cipher_suite", value: package.cipher_suite });
    }
    for (&extension_type, data) in &package.leaf.extensions {
        match extension_type {
            extension_type::APPLICATION_ID => {
                let mut reader = Reader::new(data);
                reader
                    .vector()
                    .and_then(|_application_id| reader.finish())
                    .map_err(|_| SyntaxError::ExtensionData(extension_type))?;
            }
            extension_type::RATCHET_TREE
            | extension_type::REQUIRED_CAPABILITIES
            | extension_type::EXTERNAL_PUB
            | extension_type::EXTERNAL_SENDERS
            | extension_type::LAST_RESORT
            | extension_type::GROUP_CONTEXT_ONLY => {
                return Err(SyntaxError::UnknownValue {
                    field: "LeafNode.extensions.extension_type",
                    value: extension_type,
                });
            }
            _ => {}
        }
    }
    match package.extensions.get(&extension_type::LAST_RESORT) {
        Some(data) if !data.is_empty() => Err(SyntaxError::ExtensionData(extension_type::LAST_RESORT)),
        _ => Ok(()),
    }
}

fn check_leaf(leaf: &LeafNode<'_>, now_seconds: u64) -> Result<(), KeyPackageFault> {
    match leaf.source {
        LeafNodeSource::KeyPackage { not_before, .. } if now_seconds < not_before => {
            return Err(KeyPackageFault::NotYetValid);
        }
        LeafNodeSource::KeyPackage { not_after, .. } if not_after <= now_seconds => {
            return Err(KeyPackageFault::Expired);
        }
        LeafNodeSource::KeyPackage { .. } => {}
        LeafNodeSource::Update | LeafNodeSource::Commit => return Err(KeyPackageFault::LeafNodeSource),
    }
    let Credential { credential_type, content } = leaf.credential;
    if credential_type != BASIC_CREDENTIAL {
        return Err(KeyPackageFault::CredentialType(credential_type));
    }
    // Any inbox id will do, and none (API-235).
    MlsCredential::decode(content).map_err(|_| KeyPackageFault::CredentialIdentity)?;
    Ok(())
}

fn check_package(package: &mls::KeyPackage<'_>) -> Result<(), KeyPackageFault> {
    if package.version != MLS10 {
        return Err(KeyPackageFault::Version(package.version));
    }
    if package.init_key == package.leaf.encryption_key {
        return Err(KeyPackageFault::SameKeys);
    }
    let misplaced = package.extensions.keys().find(|&&extension_type| {
        matches!(
            extension_type,
            extension_type::APPLICATION_ID
                | extension_type::RATCHET_TREE
                | extension_type::REQUIRED_CAPABILITIES
                | extension_type::EXTERNAL_PUB
                | extension_type::EXTERNAL_SENDERS
                | extension_type::GROUP_CONTEXT_ONLY
        )
    });
    if let Some(&extension_type) = misplaced {
        return Err(KeyPackageFault::MisplacedExtension(extension_type));
    }
    if package.extensions.is_empty() {
        return Ok(());
    }
    // As a set: both lists may be long.
    let listed: BTreeSet<u16> = package
        .leaf
        .listed_extensions
        .chunks_exact(2)
        .map(|number| u16::from_be_bytes([number[0], number[1]]))
        .collect();
    match package.extensions.keys().find(|extension_type| !listed.contains(extension_type)) {
        Some(&extension_type) => Err(KeyPackageFault::UnlistedExtension(extension_type)),
        None => Ok(()),
    }
}

fn check_signatures(package: &mls::KeyPackage<'_>, key: &[u8; 32]) -> Result<(), KeyPackageFault> {
    if SignatureScheme::of(package.cipher_suite) != Some(SignatureScheme::Ed25519) {
        return Err(KeyPackageFault::SignatureScheme(package.cipher_suite));
    }
    let leaf = &package.leaf;
    // Bytes that are no point of the curve have signed nothing.
    let key = VerifyingKey::from_bytes(key).map_err(|_| KeyPackageFault::LeafSignature)?;
    if !verifies(&key, "LeafNodeTBS", leaf.signed, leaf.signature) {
        return Err(KeyPackageFault::LeafSignature);
    }
    if !verifies(&key, "KeyPackageTBS", package.signed, package.signature) {
        return Err(KeyPackageFault::Signature);
    }
    Ok(())
}

/// `VerifyWithLabel` of RFC 9420 section 5.1.2. Strict, as clients verify: no key and no `R` of small order.
fn verifies(key: &VerifyingKey, label: &str, content: &[u8], signature: &[u8]) -> bool {
    let Ok(signature) = Signature::from_slice(signature) else { return false };
    key.verify_strict(&mls::sign_content(label, content), &signature).is_ok()
}
