//! What is remembered, and what is asked anew.

use sealog_proto::backend::verify_smart_contract_wallet_signatures_request::Signature;
use sealog_tests::chain::{Contracts, Reply, word};
use sealog_tests::fixtures::random;

use crate::support::{World, assert_no_verdict, at};

#[tokio::test]
async fn sec_043_052_both_verdicts_about_a_numbered_block_are_asked_for_once() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let head = world.evm.head().await;
    let valid = at(head, &world.signed(&wallet).await);
    let invalid = Signature { hash: random::<32>().to_vec().into(), ..valid.clone() };
    let reverting = world.evm.deploy("Reverting", &[]).await;
    let reverts = at(head + 1, &world.signed(&reverting).await);
    for (entry, expected) in [(valid, true), (invalid, false), (reverts, false)] {
        let expected = (expected, entry.block_number.unwrap());
        assert_eq!(world.verdict(entry.clone()).await, expected);
        world.assert_calls(1, 0);
        world.node.always(Reply::HangUp);
        assert_eq!(world.verdict(entry).await, expected, "also while the node is down");
        world.assert_calls(0, 0);
        world.node.always(Reply::Honest);
    }
}

#[tokio::test]
async fn sec_042_052_another_block_or_signature_is_another_question() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let head = world.evm.head().await;
    let entry = at(head, &world.signed(&wallet).await);
    assert_eq!(world.verdict(entry.clone()).await, (true, head));
    world.assert_calls(1, 0);
    let longer = Signature { signature: [&entry.signature[..], &[0]].concat().into(), ..entry.clone() };
    assert_eq!(world.verdict(longer).await, (false, head));
    assert_eq!(world.verdict(at(head - 1, &entry)).await, (false, head - 1));
    world.assert_calls(2, 0);
}

#[tokio::test]
async fn sec_043_052_a_request_without_a_block_neither_uses_nor_fills_the_cache() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let head = world.evm.head().await;
    let entry = world.signed(&wallet).await;
    for _ in 0..2 {
        assert_eq!(world.verdict(entry.clone()).await, (true, head));
        world.assert_calls(1, 1);
    }
    assert_eq!(world.verdict(at(head, &entry)).await, (true, head));
    world.assert_calls(1, 0);
    assert_eq!(world.verdict(entry.clone()).await, (true, head));
    world.assert_calls(1, 1);

    let successor = world.evm.signer(2).await;
    let call = Contracts::get().call("Wallet", "setOwner(address)", &[word(&successor.0)]);
    world.evm.send(&wallet, &call).await;
    assert_eq!(world.verdict(entry.clone()).await, (false, head + 1), "the latest is the latest");
    assert_eq!(world.verdict(at(head, &entry)).await, (true, head), "and the past is as it was");
    world.assert_calls(1, 1);
}

#[tokio::test]
async fn sec_043_052_a_failure_is_never_remembered() {
    let world = World::start(&[]).await;
    let entry = at(0, &world.signed(&world.owner.0).await);
    for _ in 0..2 {
        world.node.always(Reply::Http(500, Vec::new(), bytes::Bytes::new()));
        assert_no_verdict(world.try_verdict(entry.clone()).await);
        world.assert_calls(1, 0);
    }
    world.node.always(Reply::Honest);
    assert_eq!(world.verdict(entry.clone()).await, (true, 0));
    world.assert_calls(1, 0);
    assert_eq!(world.verdict(entry).await, (true, 0));
    world.assert_calls(0, 0);
}

#[tokio::test]
async fn sec_044_a_reorganisation_leaves_a_stale_verdict_until_the_isolate_ends() {
    let world = World::start(&[]).await;
    let snapshot = world.evm.rpc("evm_snapshot", serde_json::json!([])).await;
    let wallet = world.wallet().await;
    let entry = at(1, &world.signed(&wallet).await);
    assert_eq!(world.verdict(entry.clone()).await, (true, 1));
    // Block 1 is another one now, without the wallet.
    world.evm.rpc("evm_revert", serde_json::json!([snapshot])).await;
    world.evm.mine_after(1).await;
    assert_eq!(world.verdict(entry.clone()).await, (true, 1), "the limit that docs/operating.md names");
    let mut world = world;
    let chains = crate::support::chains(&[(crate::support::CHAIN, world.node.url())]);
    world.backend.restart(&[("CHAINS", &chains)]).await;
    assert_eq!(world.verdict(entry).await, (false, 1));
}
