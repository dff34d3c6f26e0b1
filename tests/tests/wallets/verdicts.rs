//! Verdicts on accounts of every kind, as clients get them.

use sealog_proto::backend::verify_smart_contract_wallet_signatures_request::Signature;
use sealog_tests::chain::{Contracts, account_id, erc6492, word};
use sealog_tests::fixtures::random;
use tonic::Code;

use crate::support::{CHAIN, World, at};

/// The same entry, with another signature.
fn with(signature: impl Into<bytes::Bytes>, entry: &Signature) -> Signature {
    Signature { signature: signature.into(), ..entry.clone() }
}

#[tokio::test]
async fn api_271_sec_040_a_deployed_wallet_decides_for_itself() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let entry = world.signed(&wallet).await;
    let head = world.evm.head().await;
    assert_eq!(world.verdict(entry.clone()).await, (true, head));
    assert_eq!(world.verdict(at(head, &entry)).await, (true, head));

    let other_hash = Signature { hash: random::<32>().to_vec().into(), ..entry.clone() };
    assert_eq!(world.verdict(other_hash).await, (false, head));
    let mut bytes = entry.signature.to_vec();
    bytes[0] ^= 1;
    assert_eq!(world.verdict(with(bytes, &entry)).await, (false, head));
    assert_eq!(world.verdict(with(Vec::new(), &entry)).await, (false, head));

    let checksum_case = Signature {
        account_id: entry.account_id.to_uppercase().replacen("EIP155", "eip155", 1).replacen("0X", "0x", 1),
        ..entry
    };
    assert_eq!(world.verdict(checksum_case).await, (true, head));
}

#[tokio::test]
async fn api_271_the_verdict_is_that_of_the_block_in_question() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let entry = world.signed(&wallet).await;
    let deployed = world.evm.head().await;
    let successor = world.evm.signer(2).await;
    let call = Contracts::get().call("Wallet", "setOwner(address)", &[word(&successor.0)]);
    world.evm.send(&wallet, &call).await;
    assert_eq!(world.evm.head().await, deployed + 1);

    assert_eq!(
        world.verdict(at(deployed - 1, &entry)).await,
        (false, deployed - 1),
        "there is no wallet yet"
    );
    assert_eq!(world.verdict(at(deployed, &entry)).await, (true, deployed));
    assert_eq!(world.verdict(at(deployed + 1, &entry)).await, (false, deployed + 1), "another key signs now");
    assert_eq!(world.verdict(entry).await, (false, deployed + 1));
}

#[tokio::test]
async fn sec_040_a_wallet_that_is_not_there_yet_signs_with_its_factory() {
    let world = World::start(&[]).await;
    let (factory, address, deploy) = world.unborn_wallet().await;
    let entry = world.signed(&address).await;
    let head = world.evm.head().await;
    let wrapped = with(erc6492(&factory, &deploy, &entry.signature), &entry);
    assert_eq!(world.verdict(wrapped.clone()).await, (true, head));
    assert_eq!(
        world.verdict(entry.clone()).await,
        (false, head),
        "without the wrapping nobody can tell whose it is"
    );

    let other = world.signed(&address).await;
    let mixed = with(erc6492(&factory, &deploy, &other.signature), &entry);
    assert_eq!(world.verdict(mixed).await, (false, head), "the signature of another message");
    let elsewhere =
        Contracts::get().call("Factory", "deploy(address,bytes32)", &[word(&world.owner.0), random()]);
    let elsewhere = with(erc6492(&factory, &elsewhere, &entry.signature), &entry);
    assert_eq!(world.verdict(elsewhere).await, (false, head), "the call makes a wallet at another address");
    let no_factory = with(erc6492(&[0xfa; 20], &deploy, &entry.signature), &entry);
    assert_eq!(world.verdict(no_factory).await, (false, head));
    let broken = with([0x64, 0x92].repeat(16), &entry);
    assert_eq!(world.verdict(broken).await, (false, head), "the wrapping without content");

    world.evm.send(&factory, &deploy).await;
    assert_eq!(world.verdict(wrapped).await, (true, head + 1), "wrapped or not, once it is there");
    assert_eq!(world.verdict(entry).await, (true, head + 1));
    assert_eq!(world.evm.head().await, head + 1, "a question changes nothing");
}

#[tokio::test]
async fn sec_040_the_signature_of_a_plain_key_may_travel_as_that_of_a_wallet() {
    let world = World::start(&[]).await;
    let entry = world.signed(&world.owner.0).await;
    assert_eq!(world.verdict(entry.clone()).await, (true, 0), "the chain is empty");
    let stranger = Signature { account_id: account_id(CHAIN, &[7; 20]), ..entry.clone() };
    assert_eq!(world.verdict(stranger).await, (false, 0));
    for bytes in [&entry.signature[..64], &[&entry.signature[..64], &[5]].concat(), &[0; 65], b""] {
        assert_eq!(world.verdict(with(bytes.to_vec(), &entry)).await, (false, 0), "{bytes:02x?}");
    }
}

#[tokio::test]
async fn api_271_a_wallet_that_reverts_or_answers_nonsense_is_a_no_and_fails_nobody_else() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let mut entries = vec![world.signed(&wallet).await];
    for contract in ["WrongMagic", "Reverting", "Silent", "Endless"] {
        let address = world.evm.deploy(contract, &[]).await;
        entries.push(world.signed(&address).await);
    }
    entries.push(world.signed(&wallet).await);
    let head = world.evm.head().await;
    let responses = world.backend.client().verify(entries).await.unwrap();
    let valid: Vec<_> = responses.iter().map(|response| response.is_valid).collect();
    assert_eq!(valid, [true, false, false, false, false, true]);
    assert!(responses.iter().all(|response| response.block_number == Some(head)), "{responses:?}");
    let reasons: Vec<_> =
        responses.iter().map(|response| response.error.as_deref().unwrap_or_default()).collect();
    assert!(reasons[1].contains("does not accept") && reasons[2].contains("reverted"), "{reasons:?}");
}

#[tokio::test]
async fn api_271_one_response_per_entry_at_its_index_and_equal_entries_are_asked_about_once() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let head = world.evm.head().await;
    let valid = world.signed(&wallet).await;
    let invalid = Signature { hash: random::<32>().to_vec().into(), ..valid.clone() };
    world.node.calls();

    let entries: Vec<_> = (0..100_u64)
        .map(|index| match index % 4 {
            0 => valid.clone(),
            1 => invalid.clone(),
            2 => at(head, &valid),
            _ => at(head - 1 + index % 8 / 4, &invalid),
        })
        .collect();
    let responses = world.backend.client().verify(entries.clone()).await.unwrap();
    assert_eq!(responses.len(), 100);
    for (entry, response) in entries.iter().zip(&responses) {
        assert_eq!(response.is_valid, entry.hash == valid.hash);
        assert_eq!(response.block_number, Some(entry.block_number.unwrap_or(head)));
    }
    world.assert_calls(5, 1);
    assert!(world.backend.client().verify(Vec::new()).await.unwrap().is_empty());
    world.assert_calls(0, 0);
}

#[tokio::test]
async fn api_281_entries_are_bounded_by_max_scw_signatures() {
    let world = World::start(&[("MAX_SCW_SIGNATURES", "12")]).await;
    let mut entries = Vec::new();
    for _ in 0..13 {
        entries.push(world.signed(&world.owner.0).await);
    }
    let status = world.backend.client().verify(entries.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    world.assert_calls(0, 0);
    world.node.always(sealog_tests::chain::Reply::After(std::time::Duration::from_millis(50)));
    entries.pop();
    assert_eq!(world.backend.client().verify(entries).await.unwrap().len(), 12);
    world.assert_calls(12, 1);
    assert_eq!(world.node.most_at_once(), 6, "the platform opens no more connections at once");
}

#[tokio::test]
async fn api_271_a_malformed_entry_fails_the_request_before_anything_is_asked() {
    let world = World::start(&[]).await;
    let good = world.signed(&world.owner.0).await;
    let account = |id: &str| Signature { account_id: id.to_owned(), ..good.clone() };
    let hash = |length| Signature { hash: vec![1; length].into(), ..good.clone() };
    let id = &good.account_id;
    for bad in [
        account(""),
        account(&id[..id.len() - 1]),
        account(&format!("{id}0")),
        account(&id.replace(":31337:", ":031337:")),
        account(&id.replace("eip155:", "eip155")),
        account(&id.replace("0x", "")),
        account("eip155:18446744073709551616:0x0000000000000000000000000000000000000000"),
        hash(0),
        hash(31),
        hash(33),
    ] {
        let foreign = account("cosmos:cosmoshub-3:cosmos1t2uflqwqe0fsj0shcfkrvpukewcw40yjj6hdc0");
        let status = world.backend.client().verify(vec![good.clone(), foreign, bad]).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains("signatures[2]"), "{status:?}");
    }
    world.assert_calls(0, 0);
}
