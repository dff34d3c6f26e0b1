//! Contract wallets: what is asked of which chain, and whom an answer stands for (IDENT-046, IDENT-060).

use sealog_admission::identity::{Block, IdentityRejection, WalletQuestion, decide, freshness};
use sealog_proto::associations::identity_action::Kind;
use sealog_proto::associations::{IdentityUpdate, signature::Signature};
use sealog_proto::backend::publish_error::Reason;

use crate::signers::{Act, Signer, update};
use crate::{Inbox, planned, refused};

/// The update with another account id in its last signature.
fn with_account(mut update: IdentityUpdate, account_id: &str) -> IdentityUpdate {
    let Some(Kind::Add(add)) = &mut update.actions.last_mut().unwrap().kind else { panic!("an add") };
    let Some(Signature::Erc6492(signature)) = &mut add.new_member_signature.as_mut().unwrap().signature
    else {
        panic!("a contract")
    };
    account_id.clone_into(&mut signature.account_id);
    update
}

#[test]
fn ident_060_a_malformed_account_id_anywhere_asks_no_chain() {
    let (first, second) = (Signer::contract(1, 1), Signer::contract(2, 1));
    let sound = update(&first.identifier().inbox_id(0), 0, &[Act::create(&first), Act::add(&second, &first)]);
    assert_eq!(planned(&sound).questions().len(), 2);
    let address = second.identifier().text().into_owned();
    for account_id in [
        "",
        &address,
        &format!("eip155:{address}"),
        &format!("eip155:1:{address}:"),
        &format!("eip155::{address}"),
        &format!("eip155:01:{address}"),
        &format!("eip155:+1:{address}"),
        &format!("eip155: 1:{address}"),
        &format!("eip155:0x1:{address}"),
        &format!("eip155:18446744073709551616:{address}"),
        &format!("EIP155:1:{address}"),
        &format!("cosmos:1:{address}"),
        &format!("eip155:1:{}", &address[2..]),
        &format!("eip155:1:{}", &address[..41]),
        &format!("eip155:1:{address}0"),
        &format!("eip155:1:0X{}", &address[2..]),
        &format!("eip155:1:{}g", &address[..41]),
    ] {
        refused(&with_account(sound.clone(), account_id), IdentityRejection::AccountId);
    }
    assert_eq!(IdentityRejection::AccountId.reason(), Reason::InvalidSignature);
    for chain_id in [0, 1, u64::MAX] {
        let account_id = format!("eip155:{chain_id}:{}", address.to_uppercase().replacen("0X", "0x", 1));
        let plan = planned(&with_account(sound.clone(), &account_id));
        let question = &plan.questions()[1];
        assert_eq!((question.chain_id, &question.address), (chain_id, &address));
    }
}

#[test]
fn each_question_is_asked_once() {
    let (contract, other, installation) =
        (Signer::contract(1, 5), Signer::contract(1, 6), Signer::installation(1));
    let acts = [Act::create(&contract), Act::add(&installation, &contract), Act::add(&other, &contract)];
    let plan = planned(&update(&contract.identifier().inbox_id(0), 0, &acts));
    let asked: Vec<_> = plan.questions().iter().map(|question| question.chain_id).collect();
    assert_eq!(asked, [5, 6]);
    assert_eq!(plan.signature_count(), 3);
    let WalletQuestion { address, hash, signature, block_number, .. } = &plan.questions()[0];
    assert_eq!(*address, contract.identifier().text());
    assert_eq!(hash[..], signature[..]);
    assert_eq!(*block_number, 100);
}

#[test]
fn ident_060_one_refusal_refuses_the_update() {
    let (first, second) = (Signer::contract(1, 1), Signer::contract(2, 1));
    let inbox = Inbox::of(&first);
    let plan = planned(&update(&inbox.id, 0, &[Act::create(&first), Act::add(&second, &first)]));
    for verdicts in [[false, false], [true, false], [false, true]] {
        assert_eq!(decide(&plan, &verdicts, &inbox.state), Err(IdentityRejection::WalletRefused.into()));
    }
    decide(&plan, &[true, true], &inbox.state).expect("both accept");
}

#[test]
fn ident_046_recovery_that_is_a_member_on_another_chain_matches_both_or_neither() {
    let (founder, wallet) = (Signer::wallet(1), Signer::contract(2, 1));
    let mut inbox = Inbox::created_by(&founder);
    // Recovery goes to it while it is no member: no chain is recorded. Then it becomes one, on chain 1.
    inbox.accepts(&[Act::recover(&wallet, &founder)]);
    inbox.accepts(&[Act::add(&wallet, &founder)]);
    inbox.refuses(&[Act::revoke(&founder, &wallet)], IdentityRejection::OtherChain);
    inbox.refuses(&[Act::add(&Signer::installation(1), &wallet)], IdentityRejection::OtherChain);
    inbox.refuses(&[Act::claim("alice", &wallet)], IdentityRejection::OtherChain);
}

#[test]
fn ident_046_recovery_takes_the_chain_of_the_member_that_it_goes_to() {
    let (founder, wallet, elsewhere) = (Signer::wallet(1), Signer::contract(2, 1), Signer::contract(2, 9));
    let mut inbox = Inbox::created_by(&founder);
    inbox.accepts(&[Act::add(&wallet, &founder)]);
    inbox.accepts(&[Act::recover(&wallet, &founder)]);
    inbox.refuses(&[Act::revoke(&founder, &elsewhere)], IdentityRejection::OtherChain);
    inbox.accepts(&[Act::revoke(&founder, &wallet)]);
    // Revoked as a member, it keeps role and chain.
    inbox.accepts(&[Act::revoke(&wallet, &wallet)]);
    inbox.refuses(&[Act::add(&founder, &elsewhere)], IdentityRejection::OtherChain);
    inbox.accepts(&[Act::add(&founder, &wallet)]);
}

#[test]
fn ident_062_a_block_is_recent_or_refused() {
    let head = Block { number: 1_000, timestamp: 10_000 };
    assert_eq!(freshness::check_number(1_000, head), Ok(()));
    assert_eq!(freshness::check_number(1_001, head), Err(IdentityRejection::BlockAboveHead.into()));
    let at = |timestamp| freshness::check_age(Block { number: 900, timestamp }, head);
    assert_eq!((at(10_000), at(8_200)), (Ok(()), Ok(())));
    for timestamp in [8_199, 0, 10_001, u64::MAX] {
        assert_eq!(at(timestamp), Err(IdentityRejection::BlockNotRecent.into()), "{timestamp}");
    }
    assert_eq!(IdentityRejection::BlockNotRecent.reason(), Reason::InvalidSignature);
}
