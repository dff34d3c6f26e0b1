//! What is stored beside an admitted update: who signed what, so that no signature is verified twice.

use bytes::Bytes;
use prost::Message;
use sealog_proto::associations::MemberIdentifier;
use sealog_proto::associations::member_identifier::Kind;
use sealog_proto::internal::IdentityFacts;
use sealog_proto::internal::identity_facts::{self as wire, action};
use thiserror::Error;

use super::signature::Evidence;
use super::state::Verified;
use super::structure::Action;
use super::{Identifier, IdentityRejection};

/// The version that is written.
const VERSION: u32 = 1;

/// Why a stored entry does not fold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FoldError {
    /// Written by a newer version of the backend.
    #[error("the facts have version {0}")]
    UnknownVersion(u32),
    /// Not what this crate writes.
    #[error("the facts cannot be read")]
    Undecodable,
    /// The entry does not follow from the ones before it, which was checked when it was stored.
    #[error("a stored update does not apply: {0}")]
    DoesNotApply(#[from] IdentityRejection),
}

pub(super) fn encode(update: &Verified) -> Bytes {
    let place = |place: usize| u32::try_from(place).expect("a request has fewer signatures");
    let action = |action: &Action| match action {
        Action::Create { nonce, signature, .. } => {
            action::Kind::Create(wire::Create { signature: place(*signature), nonce: *nonce })
        }
        Action::Add { existing, new, .. } => {
            action::Kind::Add(wire::Add { existing_member: place(*existing), new_member: place(*new) })
        }
        Action::Revoke { member, signature } => action::Kind::Revoke(wire::Revoke {
            member: Some(abridged(member)),
            signature: place(*signature),
        }),
        Action::ChangeRecovery { recovery, signature } => {
            action::Kind::ChangeRecovery(wire::ChangeRecovery {
                recovery: Some(abridged(recovery)),
                signature: place(*signature),
            })
        }
        Action::Claim { handle, signature } => {
            action::Kind::Claim(wire::Claim { handle: handle.clone(), signature: place(*signature) })
        }
    };
    let signature = |evidence: &Evidence| wire::Signature {
        signer: Some((&evidence.signer).into()),
        chain_id: evidence.chain_id,
        replay_key_hash: Bytes::copy_from_slice(&evidence.replay_key_hash),
    };
    let facts = IdentityFacts {
        version: VERSION,
        client_timestamp_ns: update.client_timestamp_ns,
        signatures: update.signatures.iter().map(signature).collect(),
        actions: update.actions.iter().map(|of| wire::Action { kind: Some(action(of)) }).collect(),
    };
    facts.encode_to_vec().into()
}

/// An update may name an identifier of a mebibyte. No signer has more than the 65 bytes of an uncompressed passkey, so a
/// longer name matches none, and neither does its beginning: it need not be kept twice.
fn abridged(identifier: &Identifier) -> MemberIdentifier {
    const LONGER_THAN_ANY_SIGNER: usize = 70;
    match identifier {
        Identifier::Ethereum(text) => {
            let end = text.floor_char_boundary(LONGER_THAN_ANY_SIGNER);
            (&Identifier::Ethereum(text[..end].into())).into()
        }
        Identifier::Installation(key) => {
            (&Identifier::Installation(key.slice(..key.len().min(LONGER_THAN_ANY_SIGNER)))).into()
        }
        Identifier::Passkey(key) => {
            (&Identifier::Passkey(key.slice(..key.len().min(LONGER_THAN_ANY_SIGNER)))).into()
        }
    }
}

pub(super) fn decode(inbox_id: &str, facts: &[u8]) -> Result<Verified, FoldError> {
    let facts = IdentityFacts::decode(facts).map_err(|_| FoldError::Undecodable)?;
    if facts.version != VERSION {
        return Err(FoldError::UnknownVersion(facts.version));
    }
    let signatures =
        facts.signatures.iter().map(evidence).collect::<Option<Vec<_>>>().ok_or(FoldError::Undecodable)?;
    let actions = facts
        .actions
        .into_iter()
        .map(|action| decode_action(action, &signatures))
        .collect::<Option<Vec<_>>>()
        .ok_or(FoldError::Undecodable)?;
    Ok(Verified {
        inbox_id: inbox_id.to_owned(),
        client_timestamp_ns: facts.client_timestamp_ns,
        actions,
        signatures,
    })
}

fn evidence(signature: &wire::Signature) -> Option<Evidence> {
    Some(Evidence {
        signer: identifier(signature.signer.as_ref())?,
        chain_id: signature.chain_id,
        replay_key_hash: signature.replay_key_hash.as_ref().try_into().ok()?,
    })
}

/// Founders and new members are their signers: nothing else was admitted.
fn decode_action(action: wire::Action, signatures: &[Evidence]) -> Option<Action> {
    let place = |place: u32| usize::try_from(place).ok().filter(|place| *place < signatures.len());
    Some(match action.kind? {
        action::Kind::Create(create) => {
            let signature = place(create.signature)?;
            Action::Create { founder: signatures[signature].signer.clone(), nonce: create.nonce, signature }
        }
        action::Kind::Add(add) => {
            let new = place(add.new_member)?;
            let member = signatures[new].signer.clone();
            Action::Add { member, existing: place(add.existing_member)?, new }
        }
        action::Kind::Revoke(revoke) => Action::Revoke {
            member: identifier(revoke.member.as_ref())?,
            signature: place(revoke.signature)?,
        },
        action::Kind::ChangeRecovery(change) => Action::ChangeRecovery {
            recovery: identifier(change.recovery.as_ref())?,
            signature: place(change.signature)?,
        },
        action::Kind::Claim(claim) => {
            Action::Claim { handle: claim.handle, signature: place(claim.signature)? }
        }
    })
}

/// Of any form: a recovery identifier may have any (SEC-024).
fn identifier(named: Option<&MemberIdentifier>) -> Option<Identifier> {
    Some(match named?.kind.as_ref()? {
        Kind::EthereumAddress(address) => Identifier::Ethereum(address.as_str().into()),
        // Copied: a slice would keep the facts of a whole entry in memory.
        Kind::InstallationPublicKey(key) => Identifier::Installation(Bytes::copy_from_slice(key)),
        Kind::Passkey(passkey) => Identifier::Passkey(Bytes::copy_from_slice(&passkey.key)),
    })
}
