//! Who may do what, in which order (IDENT-011 to IDENT-050).

use sealog_admission::identity::{Identifier, IdentityRejection, Rules, plan};
use sealog_proto::associations::identity_action::Kind;
use sealog_proto::associations::signature::Signature;
use sealog_proto::associations::{IdentifierKind, IdentityUpdate, MemberIdentifier};
use sealog_proto::backend::publish_error::Reason;

use crate::signers::{Act, Signer, update};
use crate::{Inbox, RULES, planned, refused};

#[test]
fn sec_024_a_recovery_address_of_any_form_is_stored_and_matches_no_signer() {
    let (wallet, other) = (Signer::wallet(1), Signer::wallet(2));
    let canonical = other.identifier().text().into_owned();
    for text in [canonical.to_uppercase(), canonical[2..].to_owned(), String::new(), "x\ny ü".repeat(40)] {
        let mut inbox = Inbox::created_by(&wallet);
        let to = Identifier::Ethereum(text.as_str().into());
        inbox.accepts(&[Act::Recover { to, by: wallet.clone() }]);
        inbox.refuses(&[Act::revoke(&wallet, &other)], IdentityRejection::NotRecovery);
        inbox.refuses(&[Act::revoke(&wallet, &wallet)], IdentityRejection::NotRecovery);
        // The member is still one.
        inbox.accepts(&[Act::add(&other, &wallet)]);
        inbox.refuses(&[Act::revoke(&wallet, &other)], IdentityRejection::NotRecovery);
    }
}

/// Replaces a part of an update after it was signed.
fn edited(mut update: IdentityUpdate, edit: impl FnOnce(&mut Kind)) -> IdentityUpdate {
    edit(update.actions[0].kind.as_mut().unwrap());
    update
}

#[test]
fn ident_013_addresses_in_the_other_positions_have_one_form() {
    let wallet = Signer::wallet(1);
    let inbox_id = wallet.identifier().inbox_id(0);
    let canonical = wallet.identifier().text().into_owned();
    let checksum = format!("{}{}", &canonical[..20], canonical[20..].to_uppercase());
    for text in [
        &checksum,
        &canonical.to_uppercase(),
        &canonical[2..],
        &canonical[..41],
        "",
        &(canonical.clone() + "0"),
    ] {
        let named = Identifier::Ethereum(text.into());
        for act in [
            Act::Create { founder: named.clone(), nonce: 0, by: wallet.clone() },
            Act::Add { member: named.clone(), by: wallet.clone(), new: wallet.clone() },
            Act::Revoke { member: named, by: wallet.clone() },
        ] {
            refused(&update(&inbox_id, 0, &[act]), IdentityRejection::AddressForm);
        }
    }
}

#[test]
fn unknown_kind_numbers_read_as_ethereum_and_a_handle_is_no_identifier() {
    let wallet = Signer::wallet(1);
    let create = update(&wallet.identifier().inbox_id(0), 0, &[Act::create(&wallet)]);
    let with_kind = |number: i32| {
        edited(create.clone(), |kind| {
            let Kind::CreateInbox(create) = kind else { panic!("a create") };
            create.initial_identifier_kind = number;
        })
    };
    for number in [0, 1, 4, 77, -1] {
        planned(&with_kind(number));
    }
    refused(&with_kind(IdentifierKind::Handle.into()), IdentityRejection::HandleAsIdentifier);
    // An address is hexadecimal, so it can be a passkey: one that nobody has.
    let inbox = Inbox::of(&wallet);
    let passkey = with_kind(IdentifierKind::Passkey.into());
    assert_eq!(inbox.judge(&passkey), Err(IdentityRejection::FounderSignature.into()));
    // The hexadecimal of a passkey is no address.
    let passkey = Signer::passkey(1);
    let create = update(&passkey.identifier().inbox_id(0), 0, &[Act::create(&passkey)]);
    let create = edited(create, |kind| {
        let Kind::CreateInbox(create) = kind else { panic!("a create") };
        create.initial_identifier_kind = 0;
    });
    refused(&create, IdentityRejection::AddressForm);
}

#[test]
fn a_passkey_may_be_spelled_with_capitals_and_a_prefix() {
    let passkey = Signer::passkey(1);
    let mut inbox = Inbox::of(&passkey);
    let hex = passkey.identifier().text().into_owned();
    for (text, is_hex) in [
        (hex.to_uppercase(), true),
        (format!("0x{hex}"), true),
        (format!("0X{hex}"), false),
        (format!("0x0x{hex}"), false),
        (hex[1..].to_owned(), false),
        (format!(" {hex}"), false),
    ] {
        // The text that is signed spells it in lowercase, whatever the update does.
        let create = edited(inbox.sign(&[Act::create(&passkey)]), |kind| {
            let Kind::CreateInbox(create) = kind else { panic!("a create") };
            create.initial_identifier = text;
        });
        if is_hex {
            inbox.judge(&create).expect("the same passkey");
        } else {
            refused(&create, IdentityRejection::PasskeyHex);
        }
    }
}

#[test]
fn ident_001_what_is_missing_anywhere_is_refused() {
    let (wallet, other) = (Signer::wallet(1), Signer::wallet(2));
    let inbox_id = wallet.identifier().inbox_id(0);
    let add = || update(&inbox_id, 0, &[Act::add(&other, &wallet)]);
    let revoke = || update(&inbox_id, 0, &[Act::revoke(&other, &wallet)]);
    let without = |update: IdentityUpdate, rejection: IdentityRejection, edit: &dyn Fn(&mut Kind)| {
        assert_eq!(rejection.reason(), Reason::InvalidIdentityUpdate);
        refused(&edited(update, |kind| edit(kind)), rejection);
    };
    for empty in [None, Some(MemberIdentifier { kind: None })] {
        without(add(), IdentityRejection::NoMember, &|kind| {
            let Kind::Add(add) = kind else { panic!("an add") };
            add.new_member_identifier.clone_from(&empty);
        });
        without(revoke(), IdentityRejection::NoMember, &|kind| {
            let Kind::Revoke(revoke) = kind else { panic!("a revoke") };
            revoke.member_to_revoke.clone_from(&empty);
        });
    }
    without(add(), IdentityRejection::NoSignature, &|kind| {
        let Kind::Add(add) = kind else { panic!("an add") };
        add.existing_member_signature = None;
    });
    without(add(), IdentityRejection::NoSignature, &|kind| {
        let Kind::Add(add) = kind else { panic!("an add") };
        add.new_member_signature.as_mut().unwrap().signature = None;
    });
    without(revoke(), IdentityRejection::NoSignature, &|kind| {
        let Kind::Revoke(revoke) = kind else { panic!("a revoke") };
        revoke.recovery_identifier_signature = None;
    });
    let mut nothing = add();
    nothing.actions.clear();
    refused(&nothing, IdentityRejection::NoActions);
    nothing.actions.push(sealog_proto::associations::IdentityAction { kind: None });
    refused(&nothing, IdentityRejection::NoActionKind);
}

#[test]
fn every_time_can_be_signed() {
    let wallet = Signer::wallet(1);
    let inbox = Inbox::of(&wallet);
    for client_timestamp_ns in [0, 1, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX] {
        inbox.judge(&update(&inbox.id, client_timestamp_ns, &[Act::create(&wallet)])).expect("any time");
    }
}

#[test]
fn ident_004_a_member_acts_from_the_action_after_the_one_that_added_it() {
    let (wallet, second, third) = (Signer::wallet(1), Signer::wallet(2), Signer::wallet(3));
    let mut inbox = Inbox::created_by(&wallet);
    let (first, then) = (Act::add(&second, &wallet), Act::add(&third, &second));
    inbox.refuses(&[then.clone(), first.clone()], IdentityRejection::UnknownSigner);
    inbox.accepts(&[first, then]);
    assert_eq!(inbox.members().len(), 3);
}

#[test]
fn ident_040_a_member_is_added_once_also_within_one_update() {
    let (wallet, second) = (Signer::wallet(1), Signer::wallet(2));
    let mut inbox = Inbox::created_by(&wallet);
    let add = Act::add(&second, &wallet);
    inbox.refuses(&[add.clone(), add.clone()], IdentityRejection::AlreadyMember);
    inbox.accepts(std::slice::from_ref(&add));
    inbox.refuses(&[add], IdentityRejection::AlreadyMember);
}

#[test]
fn ident_041_an_installation_adds_anyone_but_an_installation() {
    let (wallet, phone) = (Signer::wallet(1), Signer::installation(1));
    let mut inbox = Inbox::created_by(&wallet);
    inbox.accepts(&[Act::add(&phone, &wallet)]);
    inbox.refuses(
        &[Act::add(&Signer::installation(2), &phone)],
        IdentityRejection::InstallationAddsInstallation,
    );
    inbox.accepts(&[Act::add(&Signer::wallet(2), &phone), Act::add(&Signer::passkey(1), &phone)]);
}

#[test]
fn ident_002_a_refused_update_changes_nothing() {
    let (wallet, second) = (Signer::wallet(1), Signer::wallet(2));
    let mut inbox = Inbox::created_by(&wallet);
    let before = inbox.state.clone();
    inbox.refuses(&[Act::add(&second, &wallet), Act::create(&wallet)], IdentityRejection::AlreadyCreated);
    assert_eq!(inbox.state, before);
}

#[test]
fn sec_020_a_broken_signature_decides_before_any_rule_for_associations() {
    let (wallet, installation) = (Signer::wallet(1), Signer::installation(1));
    let mut inbox = Inbox::created_by(&wallet);
    // The wallet cannot add what is signed for nobody, and the inbox exists already.
    let update = inbox.sign(&[Act::add(&installation, &wallet), Act::create(&wallet)]);
    assert_eq!(inbox.judge(&update), Err(IdentityRejection::AlreadyCreated.into()));
    let broken = edited(update, |kind| {
        let Kind::Add(add) = kind else { panic!("an add") };
        let Some(Signature::InstallationKey(signature)) =
            add.new_member_signature.as_mut().unwrap().signature.as_mut()
        else {
            panic!("an installation")
        };
        let mut bytes = signature.bytes.to_vec();
        bytes[0] ^= 1;
        signature.bytes = bytes.into();
    });
    assert_eq!(inbox.judge(&broken), Err(IdentityRejection::InstallationSignature.into()));
}

#[test]
fn ident_003_an_inbox_id_in_capitals_is_another_text() {
    let wallet = Signer::wallet(1);
    let capitals = wallet.identifier().inbox_id(0).to_uppercase();
    let inbox = Inbox::of(&wallet);
    let update = update(&capitals, 0, &[Act::create(&wallet)]);
    assert_eq!(inbox.judge(&update), Err(IdentityRejection::InboxIdMismatch.into()));
    let mut malformed = update;
    malformed.inbox_id.pop();
    assert_eq!(plan(&malformed, &RULES).map(drop).unwrap_err().reason(), Reason::MalformedPayload);
}

#[test]
fn ident_050_a_claim_cannot_be_replayed_in_another_encoding_either() {
    let wallet = Signer::wallet(1);
    let mut inbox = Inbox::created_by(&wallet);
    let claim = inbox.sign(&[Act::claim("alice", &wallet)]);
    inbox.store(&claim);
    let again = edited(claim, |kind| {
        let Kind::ClaimHandle(claim) = kind else { panic!("a claim") };
        let Some(Signature::Erc191(signature)) =
            claim.existing_member_signature.as_mut().unwrap().signature.as_mut()
        else {
            panic!("a wallet")
        };
        let mut bytes = signature.bytes.to_vec();
        bytes[64] -= 27;
        signature.bytes = bytes.into();
    });
    assert_eq!(inbox.judge(&again), Err(IdentityRejection::Replay.into()));
}

/// Two updates of one second that name the same have one text: each signature of the first could serve in the second.
#[test]
fn ident_050_neither_signature_of_an_addition_can_serve_again() {
    let (wallet, second, new) = (Signer::wallet(1), Signer::wallet(2), Signer::contract(3, 1));
    let mut inbox = Inbox::created_by(&wallet);
    inbox.accepts(&[Act::add(&second, &wallet)]);
    let at = |by: &Signer| update(&inbox.id, 1_000_000_000_000, &[Act::add(&new, by)]);
    let (by_wallet, by_second) = (at(&wallet), at(&second));
    inbox.store(&by_wallet);
    inbox.accepts(&[Act::revoke(&new, &wallet)]);
    // Another member signs, and the new member's signature is an old one.
    assert_eq!(inbox.judge(&by_second), Err(IdentityRejection::Replay.into()));
    // The new member signs in another way, and the other signature is an old one.
    let other_bytes = |update: IdentityUpdate| {
        edited(update, |kind| {
            let Kind::Add(add) = kind else { panic!("an add") };
            let Some(Signature::Erc6492(signature)) =
                add.new_member_signature.as_mut().unwrap().signature.as_mut()
            else {
                panic!("a contract")
            };
            signature.signature = vec![1, 2, 3].into();
        })
    };
    assert_eq!(inbox.judge(&other_bytes(by_wallet)), Err(IdentityRejection::Replay.into()));
    inbox.judge(&other_bytes(by_second)).expect("both are new");
}

#[test]
fn a_stored_log_is_held_to_no_bound() {
    let wallet = Signer::wallet(1);
    let create = update(&wallet.identifier().inbox_id(0), 0, &[Act::create(&wallet)]);
    let none = Rules { max_signatures: 0, ..RULES };
    assert_eq!(plan(&create, &none).map(drop), Err(IdentityRejection::TooManySignatures { max: 0 }.into()));
    plan(&create, &Rules::STORED).expect("stored ones are as they are");
}
