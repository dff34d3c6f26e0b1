//! The structure of an update (IDENT-001, IDENT-013): every action, identifier and signature that must be there is.

use std::collections::HashMap;

use sealog_proto::associations::{IdentityUpdate, Signature, identity_action::Kind, signature};

use super::{Identifier, IdentityRejection, Rules, handle};

/// A well-formed action. Signatures are named by their place in a list of distinct ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Founds the inbox.
    Create {
        /// The first member, and the recovery identifier.
        founder: Identifier,
        /// Tells the inboxes of one founder apart.
        nonce: u64,
        /// By the founder.
        signature: usize,
    },
    /// Makes an identifier a member.
    Add {
        /// The new member.
        member: Identifier,
        /// By a member, or by the recovery identifier.
        existing: usize,
        /// By the new member.
        new: usize,
    },
    /// Ends a membership, and that of the installations that the member added.
    Revoke {
        /// The member, or any other identifier.
        member: Identifier,
        /// By the recovery identifier.
        signature: usize,
    },
    /// Hands the recovery role on.
    ChangeRecovery {
        /// Who gets it.
        recovery: Identifier,
        /// By who had it.
        signature: usize,
    },
    /// Claims a handle for the inbox.
    Claim {
        /// In the form of the grammar.
        handle: String,
        /// By a member, or by the recovery identifier.
        signature: usize,
    },
}

/// The actions of an update, and the distinct signatures that they name.
pub(super) struct Structure<'a> {
    pub(super) actions: Vec<Action>,
    pub(super) signatures: Vec<&'a signature::Signature>,
}

/// Signatures of an update, identical ones once: one wallet signature often serves several actions, and costs once.
#[derive(Default)]
struct Signatures<'a> {
    distinct: Vec<&'a signature::Signature>,
    places: HashMap<&'a signature::Signature, usize>,
}

impl<'a> Signatures<'a> {
    fn place(&mut self, carried: Option<&'a Signature>) -> Result<usize, IdentityRejection> {
        let signature =
            carried.and_then(|carried| carried.signature.as_ref()).ok_or(IdentityRejection::NoSignature)?;
        Ok(*self.places.entry(signature).or_insert_with(|| {
            self.distinct.push(signature);
            self.distinct.len() - 1
        }))
    }
}

pub(super) fn read<'a>(
    update: &'a IdentityUpdate,
    rules: &Rules,
) -> Result<Structure<'a>, IdentityRejection> {
    if update.actions.is_empty() {
        return Err(IdentityRejection::NoActions);
    }
    let mut signatures = Signatures::default();
    let mut actions = Vec::with_capacity(update.actions.len());
    let mut claims = 0;
    for action in &update.actions {
        let action = match action.kind.as_ref().ok_or(IdentityRejection::NoActionKind)? {
            Kind::CreateInbox(create) => Action::Create {
                founder: Identifier::founder(&create.initial_identifier, create.initial_identifier_kind)?,
                nonce: create.nonce,
                signature: signatures.place(create.initial_identifier_signature.as_ref())?,
            },
            Kind::Add(add) => Action::Add {
                member: Identifier::member(add.new_member_identifier.as_ref())?,
                existing: signatures.place(add.existing_member_signature.as_ref())?,
                new: signatures.place(add.new_member_signature.as_ref())?,
            },
            Kind::Revoke(revoke) => Action::Revoke {
                member: Identifier::member(revoke.member_to_revoke.as_ref())?,
                signature: signatures.place(revoke.recovery_identifier_signature.as_ref())?,
            },
            Kind::ChangeRecoveryAddress(change) => Action::ChangeRecovery {
                recovery: Identifier::recovery(
                    &change.new_recovery_identifier,
                    change.new_recovery_identifier_kind,
                )?,
                signature: signatures.place(change.existing_recovery_identifier_signature.as_ref())?,
            },
            Kind::ClaimHandle(claim) => {
                claims += 1;
                if !rules.handles {
                    return Err(IdentityRejection::HandlesOff);
                }
                if claims > 1 {
                    return Err(IdentityRejection::SecondClaim);
                }
                handle::name_part(&claim.handle).ok_or(IdentityRejection::HandleGrammar)?;
                Action::Claim {
                    handle: claim.handle.clone(),
                    signature: signatures.place(claim.existing_member_signature.as_ref())?,
                }
            }
        };
        actions.push(action);
    }
    Ok(Structure { actions, signatures: signatures.distinct })
}

/// All signatures of an update, identical ones as often as they are carried. One whose kind is unset counts too.
pub(super) fn carried(update: &IdentityUpdate) -> impl Iterator<Item = &Signature> {
    update.actions.iter().filter_map(|action| action.kind.as_ref()).flat_map(|kind| {
        let (first, second) = match kind {
            Kind::CreateInbox(create) => (&create.initial_identifier_signature, &None),
            Kind::Add(add) => (&add.existing_member_signature, &add.new_member_signature),
            Kind::Revoke(revoke) => (&revoke.recovery_identifier_signature, &None),
            Kind::ChangeRecoveryAddress(change) => (&change.existing_recovery_identifier_signature, &None),
            Kind::ClaimHandle(claim) => (&claim.existing_member_signature, &None),
        };
        first.iter().chain(second)
    })
}
