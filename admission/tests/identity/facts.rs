//! What is stored beside an update says all that the next one needs, and little more.

use prost::Message;
use sealog_admission::identity::{FoldError, Identifier, IdentityRejection, State};
use sealog_proto::internal::IdentityFacts;

use crate::Inbox;
use crate::signers::{Act, Signer};

#[test]
fn facts_of_another_version_are_told_apart_from_broken_ones() {
    let wallet = Signer::wallet(1);
    let mut inbox = Inbox::of(&wallet);
    let create = inbox.sign(&[Act::create(&wallet)]);
    let bytes = inbox.judge(&create).unwrap().facts;
    let facts = IdentityFacts::decode(bytes.clone()).unwrap();
    let fold = |facts: &[u8]| State::default().fold(&inbox.id, 1, facts);
    assert!(fold(&bytes).is_ok());

    let newer = IdentityFacts { version: 2, ..facts.clone() };
    assert_eq!(fold(&newer.encode_to_vec()), Err(FoldError::UnknownVersion(2)));
    assert_eq!(fold(&[]), Err(FoldError::UnknownVersion(0)));
    assert_eq!(fold(&bytes[..bytes.len() - 1]), Err(FoldError::Undecodable));

    let mut broken = facts.clone();
    broken.signatures[0].replay_key_hash.truncate(31);
    assert_eq!(fold(&broken.encode_to_vec()), Err(FoldError::Undecodable));
    let mut broken = facts.clone();
    broken.signatures[0].signer = None;
    assert_eq!(fold(&broken.encode_to_vec()), Err(FoldError::Undecodable));
    let mut broken = facts.clone();
    broken.signatures.clear();
    assert_eq!(fold(&broken.encode_to_vec()), Err(FoldError::Undecodable));
    let mut broken = facts;
    broken.actions[0].kind = None;
    assert_eq!(fold(&broken.encode_to_vec()), Err(FoldError::Undecodable));
}

#[test]
fn an_entry_that_does_not_follow_is_an_error() {
    let (wallet, second) = (Signer::wallet(1), Signer::wallet(2));
    let mut inbox = Inbox::created_by(&wallet);
    let add = inbox.sign(&[Act::add(&second, &wallet)]);
    let facts = inbox.judge(&add).unwrap().facts;
    // A page was left out, or read twice, or belongs to another inbox.
    assert_eq!(
        State::default().fold(&inbox.id, 1, &facts),
        Err(FoldError::DoesNotApply(IdentityRejection::NotCreated))
    );
    inbox.state.clone().fold("00", 1, &facts).expect_err("another inbox");
    inbox.store(&add);
    assert_eq!(
        inbox.state.fold(&inbox.id, 1, &facts),
        Err(FoldError::DoesNotApply(IdentityRejection::Replay))
    );
}

/// A row holds body and facts, and a row has at most 2 MB: names and signatures of a mebibyte are not kept twice.
#[test]
fn facts_are_short_whatever_the_update_holds() {
    let wallet = Signer::wallet(1);
    let mut inbox = Inbox::created_by(&wallet);
    let long = |byte: u8| prost::bytes::Bytes::from(vec![byte; 1 << 19]);
    for member in [Identifier::Installation(long(1)), Identifier::Passkey(long(2))] {
        let update = inbox.sign(&[Act::Revoke { member, by: wallet.clone() }]);
        assert!(inbox.judge(&update).unwrap().facts.len() < 250);
        inbox.store(&update);
    }
    let to = Identifier::Ethereum("ü".repeat(1 << 18).into());
    let update = inbox.sign(&[Act::Recover { to, by: wallet.clone() }]);
    assert!(inbox.judge(&update).unwrap().facts.len() < 250);
    inbox.store(&update);
    inbox.refuses(&[Act::revoke(&wallet, &wallet)], IdentityRejection::NotRecovery);
}

#[test]
fn identifiers_that_begin_like_a_signer_are_not_that_signer() {
    let passkey = Signer::passkey(1);
    let mut inbox = Inbox::created_by(&passkey);
    let Identifier::Passkey(point) = passkey.identifier() else { panic!("a passkey") };
    let longer = Identifier::Passkey([&point[..], &[0; 100]].concat().into());
    inbox.accepts(&[Act::Revoke { member: longer.clone(), by: passkey.clone() }]);
    assert_eq!(inbox.members().len(), 1);
    inbox.accepts(&[Act::Recover { to: longer, by: passkey.clone() }]);
    inbox.refuses(&[Act::revoke(&passkey, &passkey)], IdentityRejection::NotRecovery);
}
