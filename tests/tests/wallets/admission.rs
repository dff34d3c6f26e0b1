//! Contract wallets in identity updates, by the numbers of the table of cases (47 to 53, 56).

use std::time::{Duration, Instant};

use sealog_proto::associations::{SmartContractWalletSignature, identity_action, signature};
use sealog_proto::backend::{ClientEnvelope, client_envelope::Payload, publish_error::Reason};
use sealog_tests::backend::Backend;
use sealog_tests::chain::{Address, Evm, Node, Reply, erc6492, word};
use sealog_tests::client::failure;
use sealog_tests::fixtures::hex;
use sealog_tests::fixtures::identity::{ContractWallet, Inbox, Key, Update, inbox_id};
use serde_json::json;
use tonic::Code;

use crate::support::{CHAIN, World, at, chains};
use crate::updates::{changed, contract, inbox_of, now};

#[tokio::test]
async fn ident_060_a_deployed_wallet_founds_an_inbox_and_acts_in_it() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let (head, inbox) = (world.evm.head().await, inbox_of(&wallet));
    let (phone, laptop) = (Key::installation(), Key::installation());
    let first = world
        .update(|key| {
            let wallet = key(&wallet, head);
            Update::of(&inbox).create(&wallet, 0).add(&phone, &wallet)
        })
        .await;
    world.accepted("a registration", first.clone()).await;
    // One text, one wallet, one signature at one block: one question.
    world.assert_calls(1, 1);
    world
        .accepted(
            "an addition",
            world.update(|key| Update::of(&inbox).add(&laptop, &key(&wallet, head))).await,
        )
        .await;
    let revocation = world.update(|key| Update::of(&inbox).revoke(&phone.named(), &key(&wallet, head))).await;
    world.accepted("a revocation", revocation).await;
    assert_eq!(world.stored(&inbox).await, 3);

    let client = world.backend.client();
    let address = format!("0x{}", hex(&wallet));
    let found = || async {
        let identifier = [(address.as_str(), sealog_proto::associations::IdentifierKind::Ethereum)];
        client.inbox_ids(&identifier).await.expect("an answer")[0].clone()
    };
    while found().await.is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await; // the Directory is told afterwards
    }
    assert_eq!(found().await, Some(inbox));
}

#[tokio::test]
async fn sec_040_a_wallet_that_is_not_there_yet_founds_an_inbox() {
    let world = World::start(&[]).await;
    let (factory, wallet, deploy) = world.unborn_wallet().await;
    let (head, inbox) = (world.evm.head().await, inbox_of(&wallet));
    let founds = |key: &dyn Fn(&Address, u64) -> Key| Update::of(&inbox).create(&key(&wallet, head), 0);
    world
        .refused("a signature that names no factory", world.update(founds).await, Reason::InvalidSignature)
        .await;
    let wrapped = world.update_with(founds, |signature| erc6492(&factory, &deploy, &signature)).await;
    world.accepted("one that does", wrapped).await;
    world.evm.send(&factory, &deploy).await;
    let phone = Key::installation();
    let addition = world.update(|key| Update::of(&inbox).add(&phone, &key(&wallet, head + 1))).await;
    world.accepted("a plain one, once the wallet is there", addition).await;
}

#[tokio::test]
async fn ident_060_case_47_and_48_a_malformed_account_id_costs_no_call() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let (head, inbox) = (world.evm.head().await, Inbox::fresh());
    world.accepted("an inbox", inbox.create()).await;
    let good = world.create(&wallet, head).await;
    let digits = hex(&wallet);
    let ids = [
        String::new(),
        digits.clone(),
        format!("0x{digits}"),
        format!("eip155:{CHAIN}:{digits}"),
        format!("eip155:0{CHAIN}:0x{digits}"),
        format!("eip155:+{CHAIN}:0x{digits}"),
        format!("eip155:0x7a69:0x{digits}"),
        format!("eip155::0x{digits}"),
        format!("eip155:18446744073709551616:0x{digits}"),
        format!("eip155:{CHAIN}:0x{}", &digits[1..]),
        format!("eip155:{CHAIN}:0x{digits}:"),
        format!("cosmos:{CHAIN}:0x{digits}"),
    ];
    world.node.calls();
    for id in ids {
        let malformed = changed(good.clone(), |signature| signature.account_id.clone_from(&id));
        world.refused(&id, malformed, Reason::InvalidSignature).await;
        // In the second of two signatures, too.
        let both = world
            .update(|key| {
                Update::of(&inbox.id)
                    .add(&key(&[1; 20], head), &inbox.wallet)
                    .add(&key(&wallet, head), &inbox.wallet)
            })
            .await;
        let Some(Payload::IdentityUpdate(mut update)) = both.payload else { unreachable!() };
        let Some(identity_action::Kind::Add(add)) = &mut update.actions[1].kind else { unreachable!() };
        let signature = add.new_member_signature.as_mut().and_then(|signature| signature.signature.as_mut());
        let Some(signature::Signature::Erc6492(signature)) = signature else { unreachable!() };
        signature.account_id.clone_from(&id);
        let both = ClientEnvelope { payload: Some(Payload::IdentityUpdate(update)) };
        world.refused(&id, both, Reason::InvalidSignature).await;
    }
    world.assert_calls(0, 0);
}

#[tokio::test]
async fn api_231_case_49_a_no_is_a_rejection_and_an_outage_is_none() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let wrong = world.evm.deploy("WrongMagic", &[]).await;
    let reverting = world.evm.deploy("Reverting", &[]).await;
    let head = world.evm.head().await;
    for (what, address) in [("a wallet that says no", &wrong), ("a wallet that reverts", &reverting)] {
        let envelope = world.create(address, head).await;
        world.refused(what, envelope.clone(), Reason::InvalidSignature).await;
        world.node.always(Reply::HangUp);
        world.unavailable("its freshness is asked for anew", envelope).await;
        world.node.always(Reply::Honest);
    }
    let envelope = world.create(&wallet, head).await;
    let elsewhere = changed(envelope.clone(), |signature| {
        signature.account_id = signature.account_id.replace(&format!(":{CHAIN}:"), ":1:");
    });
    world.node.calls();
    world.unavailable("no route", elsewhere).await;
    world.assert_calls(0, 0);
    for (what, reply) in [
        ("a dead node", Reply::HangUp),
        ("a failing node", Reply::Http(503, Vec::new(), bytes::Bytes::new())),
        (
            "a node that says something else",
            Reply::json(&json!({ "jsonrpc": "2.0", "id": 0, "result": "0x01" })),
        ),
    ] {
        world.node.always(reply.clone());
        world.unavailable(what, envelope.clone()).await;
        world.node.rule(move |call| if call.method == "eth_call" { reply.clone() } else { Reply::Honest });
        world.unavailable(what, envelope.clone()).await;
    }
    world.node.rule(|call| {
        let error = json!({ "code": -32_000, "message": "execution reverted" });
        match call.method {
            "eth_call" => Reply::json(&json!({ "jsonrpc": "2.0", "id": call.id, "error": error })),
            _ => Reply::Honest,
        }
    });
    world.unavailable("a node that only speaks of a revert", envelope.clone()).await;
    assert_eq!(world.stored(&inbox_of(&wallet)).await, 0);
    world.node.always(Reply::Honest);
    world.accepted("the same bytes, after the outage", envelope.clone()).await;
    world.node.always(Reply::HangUp);
    world.accepted("and once more: a duplicate asks nobody (API-222)", envelope).await;
}

#[tokio::test]
async fn api_223_231_a_certain_rejection_is_told_before_an_outage() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let envelope = world.create(&wallet, world.evm.head().await).await;
    world.node.always(Reply::HangUp);
    let inbox = Inbox::fresh();
    let bad = Update::of(&inbox.id).create(&Key::wallet(), 0).sign();
    let status = world.backend.client().publish(vec![envelope, bad]).await.unwrap_err();
    let detail = failure(&status).expect("a refusal");
    assert_eq!((detail.index, detail.reason), (Some(1), Reason::InvalidIdentityUpdate));
}

#[tokio::test]
async fn ident_060_case_50_the_letter_case_of_an_account_id_does_not_matter() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let envelope = world.create(&wallet, world.evm.head().await).await;
    let upper = changed(envelope, |signature| {
        signature.account_id = format!("eip155:{CHAIN}:0x{}", hex(&wallet).to_uppercase());
    });
    world.accepted("capitals in the account id, and none in the identifier", upper).await;
}

#[tokio::test]
async fn ident_046_case_51_the_same_address_on_another_chain_is_somebody_else() {
    const OTHER: u64 = CHAIN + 1;
    let world = World::start(&[]).await;
    let other = Evm::start(OTHER).await;
    let other_node = Node::start(&other).await;
    let both = chains(&[(CHAIN, world.node.url()), (OTHER, other_node.url())]);
    let backend = Backend::start(&[("CHAINS", &both)]).await;
    let world = World { backend, ..world };
    let wallet = world.wallet().await;
    let twin = other.deploy("Wallet", &[word(&world.owner.0)]).await;
    assert_eq!(twin, wallet, "the same account has made both as its first act");
    let (head, inbox, phone) = (1, inbox_of(&wallet), Key::installation());
    world.accepted("an inbox", world.create(&wallet, head).await).await;

    let on_other = |envelope| {
        changed(envelope, |signature: &mut SmartContractWalletSignature| {
            signature.account_id = signature.account_id.replace(&format!(":{CHAIN}:"), &format!(":{OTHER}:"));
        })
    };
    let addition = world.update(|key| Update::of(&inbox).add(&phone, &key(&wallet, head))).await;
    world.refused("an addition", on_other(addition.clone()), Reason::InvalidIdentityUpdate).await;
    assert_eq!(other_node.calls()["eth_call"], 1, "the twin has accepted it");
    world.accepted("the addition by the right wallet", addition).await;
}

#[tokio::test]
async fn ident_046_case_52_a_key_that_came_as_a_wallet_stays_one_and_the_reverse() {
    let world = World::start(&[]).await;
    let sign = |key: &Key, build: &dyn Fn(&Key) -> Update| {
        let Key::Wallet(_) = key else { unreachable!() };
        let Some(signature::Signature::Erc191(plain)) = key.sign(&build(key).text()).signature else {
            unreachable!()
        };
        let wallet = ContractWallet {
            chain_id: CHAIN,
            address: key.text(),
            block_number: 0,
            signature: plain.bytes.to_vec(),
        };
        build(&Key::Contract(wallet)).sign()
    };
    let (key, phone, time) = (Key::wallet(), Key::installation(), now());
    let inbox = inbox_id(&key, 0);
    let create = sign(&key, &|key| Update::of(&inbox).at(time).create(key, 0));
    world.accepted("a plain key's signature travels as that of a wallet", create).await;
    let as_plain = Update::of(&inbox).add(&phone, &key).sign();
    world.refused("the same key, as a plain one", as_plain, Reason::InvalidIdentityUpdate).await;
    let as_wallet = sign(&key, &|key| Update::of(&inbox).at(time + 1_000_000_000).add(&phone, key));
    world.accepted("the same key, as a wallet", as_wallet).await;

    let plain = Inbox::fresh();
    world.accepted("an inbox of a plain key", plain.create()).await;
    let as_wallet = sign(&plain.wallet, &|key| Update::of(&plain.id).at(time).add(&phone, key));
    world.refused("its key, as a wallet", as_wallet, Reason::InvalidIdentityUpdate).await;
}

#[tokio::test]
async fn ident_046_case_53_a_wallet_that_is_no_member_recovers_nothing() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let (head, inbox, phone) = (world.evm.head().await, Inbox::fresh(), Key::installation());
    world.accepted("an inbox", inbox.create_with(&phone)).await;
    let to = contract(CHAIN, &wallet, head, &[]).named();
    let change = Update::of(&inbox.id).change_recovery(&to, &inbox.wallet).sign();
    world.accepted("a change of recovery", change).await;
    let revoke = world.update(|key| Update::of(&inbox.id).revoke(&phone.named(), &key(&wallet, head))).await;
    world.refused("its chain was never recorded", revoke, Reason::InvalidIdentityUpdate).await;
}

#[tokio::test]
async fn api_281_case_56_an_update_has_100_signatures_of_wallets_at_most() {
    let world = World::start(&[]).await;
    let inbox = Inbox::fresh();
    world.accepted("an inbox", inbox.create()).await;
    let time = now();
    let keys: Vec<Key> = (0..101).map(|_| Key::wallet()).collect();
    let adds = |count: usize, members: &dyn Fn(&Key) -> Key| {
        let keys = keys.iter().take(count).map(members);
        keys.fold(Update::of(&inbox.id).at(time), |update, member| update.add(&member, &inbox.wallet))
    };
    for (count, expected) in [(101, Err(Reason::TooLarge)), (100, Ok(()))] {
        let text = adds(count, &Key::clone).text();
        let update = adds(count, &|key| {
            let Some(signature::Signature::Erc191(plain)) = key.sign(&text).signature else { unreachable!() };
            let (address, signature) = (key.text(), plain.bytes.to_vec());
            Key::Contract(ContractWallet { chain_id: CHAIN, address, block_number: 0, signature })
        });
        match expected {
            Ok(()) => world.accepted("100 members", update.sign()).await,
            Err(reason) => world.refused("101 members", update.sign(), reason).await,
        }
        world.assert_calls(if expected.is_ok() { 100 } else { 0 }, usize::from(expected.is_ok()));
    }
    assert_eq!(world.node.most_at_once(), 6, "the platform opens no more connections at once");
}

#[tokio::test]
async fn sec_042_admission_and_clients_share_what_is_remembered() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let head = world.evm.head().await;
    let envelope = world.create(&wallet, head).await;
    let Some(Payload::IdentityUpdate(update)) = &envelope.payload else { unreachable!() };
    let time = update.client_timestamp_ns;
    let text = Update::of(&update.inbox_id).at(time).create(&contract(CHAIN, &wallet, head, &[]), 0).text();
    let mut question = world.signed(&wallet).await;
    question.hash = world.evm.message_hash(text.as_bytes()).await.to_vec().into();
    question.signature = world.evm.sign(world.owner, text.as_bytes()).await.into();
    world.node.calls();
    assert_eq!(world.verdict(at(head, &question)).await, (true, head));
    world.assert_calls(1, 0);
    world.accepted("an inbox", envelope).await;
    world.assert_calls(0, 1);
}

#[tokio::test]
async fn api_231_a_call_that_is_given_up_is_ended_while_the_request_goes_on() {
    const OTHER: u64 = CHAIN + 1;
    let world = World::start(&[]).await;
    let other = Evm::start(OTHER).await;
    let other_node = Node::start(&other).await;
    let both = chains(&[(CHAIN, world.node.url()), (OTHER, other_node.url())]);
    // However busy the machine is, the request itself has time enough.
    let vars = [("CHAINS", &*both), ("CHAIN_TIMEOUT_MS", "4000"), ("MAX_PUBLISH_DURATION_MS", "60000")];
    let backend = Backend::start(&vars).await;
    let world = World { backend, ..world };
    let wallet = world.wallet().await;
    let head = world.evm.head().await;
    let on_other = changed(world.create_another(&wallet, 0, 1).await, |signature| {
        signature.account_id = signature.account_id.replace(&format!(":{CHAIN}:"), &format!(":{OTHER}:"));
    });
    let envelopes = vec![on_other, world.create(&wallet, head).await];
    other_node.always(Reply::After(Duration::from_secs(20)));
    // Two calls, one after the other: the request lasts two seconds longer than the call that is given up.
    world.node.always(Reply::After(Duration::from_secs(3)));
    world.node.calls();

    let client = world.backend.client();
    let publish = tokio::spawn(async move { client.publish(envelopes).await });
    while other_node.abandoned() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let given_up = Instant::now();
    let status = publish.await.expect("no panic").expect_err("one of the two has no verdict");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(given_up.elapsed() > Duration::from_millis(300), "the call lasted as long as the request");
    world.assert_calls(1, 1);
    assert_eq!(world.stored(&inbox_of(&wallet)).await, 0, "all or nothing");
}
