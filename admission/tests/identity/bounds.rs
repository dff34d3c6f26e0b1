//! How much of an update is verified.

use sealog_admission::identity::{IdentityRejection, Rules, plan};
use sealog_proto::associations::{
    IdentityAction, IdentityUpdate, RevokeAssociation, Signature, SmartContractWalletSignature,
    identity_action::Kind, signature,
};
use sealog_proto::backend::publish_error::Reason;

use crate::RULES;
use crate::signers::{Act, Signer, update};

#[test]
fn signatures_are_counted_as_they_are_carried() {
    let (wallet, second, third) = (Signer::wallet(1), Signer::wallet(2), Signer::wallet(3));
    let acts = [Act::create(&wallet), Act::add(&second, &wallet), Act::add(&third, &wallet)];
    let update = update(&wallet.identifier().inbox_id(0), 0, &acts);
    let bound = |max_signatures| plan(&update, &Rules { max_signatures, ..RULES });
    // Five are carried, three of them the same: those cost one verification.
    assert_eq!(bound(5).unwrap().signature_count(), 3);
    let refused = bound(4).map(drop).unwrap_err();
    assert_eq!(refused, IdentityRejection::TooManySignatures { max: 4 }.into());
    assert_eq!(refused.reason(), Reason::TooLarge);
}

#[test]
fn contract_wallets_have_a_bound_of_their_own() {
    let contract = Signer::contract(1, 1);
    let acts: Vec<_> = (0..=100).map(|_| Act::revoke(&Signer::wallet(1), &contract)).collect();
    let inbox_id = contract.identifier().inbox_id(0);
    assert_eq!(plan(&update(&inbox_id, 0, &acts[1..]), &RULES).unwrap().questions().len(), 1);
    let refused = plan(&update(&inbox_id, 0, &acts), &RULES).map(drop).unwrap_err();
    assert_eq!(refused, IdentityRejection::TooManyWalletSignatures { max: 100 }.into());
    assert_eq!(refused.reason(), Reason::TooLarge);
}

/// Bounds come before structure: a client that mends the structure must not meet the bound only then.
#[test]
fn bounds_decide_before_structure() {
    let empty = Some(Signature { signature: None });
    let wallet = Some(Signature {
        signature: Some(signature::Signature::Erc6492(SmartContractWalletSignature::default())),
    });
    let of = |signature: &Option<Signature>| IdentityUpdate {
        actions: vec![
            IdentityAction {
                kind: Some(Kind::Revoke(RevokeAssociation {
                    member_to_revoke: None,
                    recovery_identifier_signature: signature.clone(),
                }))
            };
            3
        ],
        client_timestamp_ns: 0,
        inbox_id: "00".repeat(32),
    };
    let rules = Rules { max_signatures: 2, max_wallet_signatures: 2, handles: true };
    assert_eq!(
        plan(&of(&empty), &rules).map(drop),
        Err(IdentityRejection::TooManySignatures { max: 2 }.into())
    );
    let rules = Rules { max_signatures: 3, ..rules };
    assert_eq!(plan(&of(&empty), &rules).map(drop), Err(IdentityRejection::NoMember.into()));
    assert_eq!(
        plan(&of(&wallet), &rules).map(drop),
        Err(IdentityRejection::TooManyWalletSignatures { max: 2 }.into())
    );
}
