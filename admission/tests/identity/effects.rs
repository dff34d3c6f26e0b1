//! What the Directories hear of an update (API-270): whom it associates, and whom no longer.

use sealog_admission::identity::Effects;
use sealog_proto::associations::IdentifierKind;

use crate::Inbox;
use crate::signers::{Act, Signer};

/// The changes as (signer, live), in the order of the signers given.
#[track_caller]
fn changes(effects: &Effects, signers: &[&Signer]) -> Vec<(usize, bool)> {
    let place = |key: &sealog_admission::identity::LookupKey| {
        signers
            .iter()
            .position(|signer| match signer.identifier() {
                sealog_admission::identity::Identifier::Ethereum(address) => {
                    key.kind == IdentifierKind::Ethereum && key.key == address.as_bytes()
                }
                sealog_admission::identity::Identifier::Passkey(point) => {
                    key.kind == IdentifierKind::Passkey && key.key == point
                }
                sealog_admission::identity::Identifier::Installation(_) => false,
            })
            .expect("one of the signers")
    };
    let mut changes: Vec<_> =
        effects.changes.iter().map(|change| (place(&change.key), change.live)).collect();
    changes.sort_unstable();
    changes
}

#[test]
fn api_270_memberships_that_begin_and_end_are_told_and_installations_are_not() {
    let (wallet, second, passkey) = (Signer::wallet(1), Signer::wallet(2), Signer::passkey(1));
    let (installation, all) = (Signer::installation(1), [&wallet, &second, &passkey]);
    let mut inbox = Inbox::of(&wallet);
    let effects = inbox.accepts(&[Act::create(&wallet), Act::add(&installation, &wallet)]);
    assert_eq!(changes(&effects, &all), [(0, true)]);
    let effects = inbox.accepts(&[Act::add(&second, &wallet), Act::add(&passkey, &second)]);
    assert_eq!(changes(&effects, &all), [(1, true), (2, true)]);
    let effects = inbox.accepts(&[Act::revoke(&second, &wallet), Act::revoke(&installation, &wallet)]);
    assert_eq!(changes(&effects, &all), [(1, false)]);
    // Neither a revocation of a non-member nor a new recovery identifier associates or dissociates anyone.
    let effects = inbox.accepts(&[Act::revoke(&second, &wallet), Act::recover(&second, &wallet)]);
    assert_eq!(changes(&effects, &all), []);
}

#[test]
fn api_270_what_happens_within_one_update_counts_by_its_end() {
    let (wallet, second) = (Signer::wallet(1), Signer::wallet(2));
    let all = [&wallet, &second];
    let mut inbox = Inbox::created_by(&wallet);
    // Came and went.
    let (add, revoke) = (Act::add(&second, &wallet), Act::revoke(&second, &wallet));
    let effects = inbox.accepts(&[add.clone(), revoke.clone()]);
    assert_eq!(changes(&effects, &all), []);
    inbox.accepts(std::slice::from_ref(&add));
    // Revoked and added again: a new association, by this update.
    let effects = inbox.accepts(&[revoke.clone(), add.clone()]);
    assert_eq!(changes(&effects, &all), [(1, true)]);
    // Revoked, added and revoked.
    let effects = inbox.accepts(&[revoke.clone(), add, revoke]);
    assert_eq!(changes(&effects, &all), [(1, false)]);
}

#[test]
fn ident_044_a_cascade_ends_installations_and_nothing_else() {
    let (wallet, second, passkey) = (Signer::wallet(1), Signer::wallet(2), Signer::passkey(1));
    let (mine, theirs) = (Signer::installation(1), Signer::installation(2));
    let mut inbox = Inbox::created_by(&wallet);
    inbox.accepts(&[Act::add(&second, &wallet), Act::add(&mine, &wallet)]);
    inbox.accepts(&[Act::add(&passkey, &second), Act::add(&theirs, &second)]);
    let effects = inbox.accepts(&[Act::revoke(&second, &wallet)]);
    assert_eq!(changes(&effects, &[&wallet, &second, &passkey]), [(1, false)]);
    let mut left = [wallet.identifier(), mine.identifier(), passkey.identifier()];
    left.sort();
    assert_eq!(inbox.members(), left);
    // An installation that was revoked by name and added by another goes with that other.
    inbox.accepts(&[Act::revoke(&mine, &wallet), Act::add(&mine, &passkey)]);
    inbox.accepts(&[Act::revoke(&wallet, &wallet)]);
    assert!(inbox.members().contains(&mine.identifier()));
    inbox.accepts(&[Act::revoke(&passkey, &wallet)]);
    assert_eq!(inbox.members(), []);
}
