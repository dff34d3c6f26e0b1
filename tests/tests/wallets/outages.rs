//! What is not a verdict must not be taken for one (API-231).

use std::net::TcpListener;
use std::time::{Duration, Instant};

use sealog_proto::backend::verify_smart_contract_wallet_signatures_request::Signature;
use sealog_tests::backend::Backend;
use sealog_tests::chain::{Reply, account_id};
use sealog_tests::client::VERIFY;
use sealog_tests::raw::{GRPC_WEB, MESSAGE, frame};
use serde_json::{Value, json};
use tonic::codegen::http::Method;

use crate::support::{CHAIN, World, assert_no_verdict, at, chains};

/// A node that answers calls of code with this instead of a result, and everything else as it should.
fn lie(world: &World, result: impl Fn(&Value) -> Value + Send + Sync + 'static) {
    world.node.rule(move |call| match call.method {
        "eth_call" => Reply::json(&result(call.id)),
        _ => Reply::Honest,
    });
}

fn error(code: i64, message: &str, data: &Value) -> impl Fn(&Value) -> Value + Send + Sync + 'static {
    let error = json!({ "code": code, "message": message, "data": data });
    move |id| json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

#[tokio::test]
async fn api_231_an_error_of_the_node_is_no_verdict_whatever_its_text_says() {
    let world = World::start(&[]).await;
    let entry = world.signed(&world.owner.0).await;
    for (code, message, data) in [
        (-32_000, "execution reverted", json!(null)),
        (-32_000, "header not found", json!(null)),
        (-32_005, "request rate limited: execution reverted", json!({ "retry": 3 })),
        (-32_603, "internal error: execution reverted", json!("0x08c379a0")),
        (-32_601, "the method eth_call does not exist", json!(null)),
    ] {
        lie(&world, error(code, message, &data));
        assert_no_verdict(world.try_verdict(at(0, &entry)).await);
    }
    lie(&world, error(3, "execution reverted", &json!("0x")));
    assert_eq!(world.verdict(at(0, &entry)).await, (false, 0), "a revert is");
}

#[tokio::test]
async fn api_231_an_answer_that_makes_no_sense_is_no_verdict() {
    let world = World::start(&[]).await;
    let entry = world.signed(&world.owner.0).await;
    let result = |result: Value| move |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    for nonsense in [json!("0x"), json!("0x02"), json!("0x0000000000000001"), json!(true), json!(null)] {
        lie(&world, result(nonsense));
        assert_no_verdict(world.try_verdict(at(0, &entry)).await);
    }
    lie(&world, |_| json!({ "jsonrpc": "2.0", "id": 0, "result": "0x01" }));
    assert_no_verdict(world.try_verdict(at(0, &entry)).await);
    lie(&world, |id| json!({ "jsonrpc": "2.0", "id": id.to_string(), "result": "0x01" }));
    assert_no_verdict(world.try_verdict(at(0, &entry)).await);
    for (status, body) in [(200, ""), (200, "<html>"), (404, "0x01"), (429, "{}"), (500, "")] {
        world.node.always(Reply::Http(status, Vec::new(), body.into()));
        assert_no_verdict(world.try_verdict(at(0, &entry)).await);
        assert_no_verdict(world.try_verdict(entry.clone()).await);
    }
    // A right answer, with a status that denies it.
    world.node.rule(|call| {
        let body = json!({ "jsonrpc": "2.0", "id": call.id, "result": "0x01" }).to_string();
        Reply::Http(500, Vec::new(), body.into())
    });
    assert_no_verdict(world.try_verdict(at(0, &entry)).await);
    world.node.always(Reply::Honest);
    assert_eq!(world.verdict(at(0, &entry)).await, (true, 0));
}

#[tokio::test]
async fn api_231_a_huge_answer_is_no_verdict_and_harms_nobody() {
    let world = World::start(&[]).await;
    let entry = world.signed(&world.owner.0).await;
    for megabytes in [3, 300] {
        world.node.rule(move |call| {
            let mut body =
                json!({ "jsonrpc": "2.0", "id": call.id, "result": "0x01" }).to_string().into_bytes();
            body.resize(megabytes << 20, b' ');
            Reply::Http(200, Vec::new(), body.into())
        });
        assert_no_verdict(world.try_verdict(at(0, &entry)).await);
    }
    world.node.always(Reply::Honest);
    assert_eq!(world.verdict(at(0, &entry)).await, (true, 0));
}

#[tokio::test]
async fn sec_040_a_redirect_is_not_followed() {
    let world = World::start(&[]).await;
    let entry = world.signed(&world.owner.0).await;
    for status in [301, 302, 303, 307, 308] {
        let location = ("location", world.evm.url().to_owned());
        world.node.always(Reply::Http(status, vec![location], bytes::Bytes::new()));
        assert_no_verdict(world.try_verdict(at(0, &entry)).await);
    }
}

#[tokio::test]
async fn api_231_a_dead_node_is_no_verdict() {
    let world = World::start(&[]).await;
    let entry = world.signed(&world.owner.0).await;
    world.node.always(Reply::HangUp);
    assert_no_verdict(world.try_verdict(entry.clone()).await);
    assert_no_verdict(world.try_verdict(at(0, &entry)).await);

    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let setting = chains(&[(CHAIN, &format!("http://{nobody}"))]);
    let backend = Backend::start(&[("CHAINS", &setting)]).await;
    let world = World { backend, ..world };
    assert_no_verdict(world.try_verdict(entry.clone()).await);
    assert_no_verdict(world.try_verdict(at(0, &entry)).await);
}

#[tokio::test]
async fn api_231_a_slow_node_is_no_verdict_and_is_given_up() {
    let world = World::start(&[("CHAIN_TIMEOUT_MS", "2000")]).await;
    let entry = world.signed(&world.owner.0).await;
    world.node.always(Reply::After(Duration::from_secs(20)));
    let begun = Instant::now();
    assert_no_verdict(world.try_verdict(at(0, &entry)).await);
    let waited = begun.elapsed();
    assert!(
        waited >= Duration::from_secs(2) && waited < Duration::from_secs(15),
        "given up after {waited:?}"
    );
    given_up(&world, 1).await;
    world.node.always(Reply::After(Duration::from_millis(100)));
    assert_eq!(world.verdict(entry).await, (true, 0), "slow, but in time");
}

/// Waits until the backend gave up so many calls.
async fn given_up(world: &World, calls: usize) {
    let begun = Instant::now();
    while world.node.abandoned() < calls {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the backend holds on to calls that nobody waits for"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn api_281_the_callers_own_time_limit_ends_the_calls_to_a_chain() {
    let world = World::start(&[("CHAIN_TIMEOUT_MS", "15000")]).await;
    let entry = world.signed(&world.owner.0).await;
    world.node.always(Reply::After(Duration::from_secs(20)));
    let request = sealog_proto::backend::VerifySmartContractWalletSignaturesRequest {
        signatures: vec![at(0, &entry), at(1, &entry)],
    };
    let body = frame(MESSAGE, &prost::Message::encode_to_vec(&request));
    let headers = [("content-type", GRPC_WEB), ("grpc-timeout", "300m")];
    let begun = Instant::now();
    let answer = world.backend.raw().send(Method::POST, VERIFY, &headers, body).await.unwrap();
    assert_eq!(answer.unary().unwrap().trailers["grpc-status"], "4", "DEADLINE_EXCEEDED");
    assert!(begun.elapsed() < Duration::from_secs(10), "before the limit of a call to a node");
    given_up(&world, 2).await;
}

#[tokio::test]
async fn sec_041_a_chain_that_is_not_configured_is_no_verdict() {
    let world = World::start(&[]).await;
    let good = world.signed(&world.owner.0).await;
    for id in [
        account_id(CHAIN + 1, &world.owner.0),
        account_id(u64::MAX, &world.owner.0),
        "cosmos:cosmoshub-3:cosmos1t2uflqwqe0fsj0shcfkrvpukewcw40yjj6hdc0".to_owned(),
        "hedera:mainnet:0.0.1234567890-zbhlt".to_owned(),
    ] {
        let other = Signature { account_id: id, ..good.clone() };
        assert_no_verdict(world.try_verdict(other.clone()).await);
        let status = world.backend.client().verify(vec![good.clone(), other]).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable, "the whole request has none");
    }
    world.assert_calls(0, 0);
    let backend = Backend::start(&[]).await;
    assert_no_verdict(World { backend, ..world }.try_verdict(good).await);
}

#[tokio::test]
async fn sec_045_a_block_that_the_node_does_not_have_is_no_verdict() {
    let world = World::start(&[]).await;
    let entry = world.signed(&world.owner.0).await;
    for block in [1, 1 << 53, u64::MAX] {
        assert_no_verdict(world.try_verdict(at(block, &entry)).await);
    }
    // Nodes without an archive say so of a block that they know, but whose state they have dropped.
    lie(&world, error(-32_000, "missing trie node", &json!(null)));
    assert_no_verdict(world.try_verdict(at(0, &entry)).await);
}

#[tokio::test]
async fn api_231_one_signature_without_a_verdict_fails_the_request() {
    let world = World::start(&[]).await;
    let entry = world.signed(&world.owner.0).await;
    let status = world.backend.client().verify(vec![at(0, &entry), at(9, &entry)]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    let too_long = Signature { signature: vec![0; 50_000].into(), ..entry.clone() };
    world.node.calls();
    assert_no_verdict(world.try_verdict(too_long).await);
    world.assert_calls(0, 0);
}

#[tokio::test]
async fn conf_065_sec_051_a_setting_that_is_refused_names_the_chain_and_not_the_address() {
    for (setting, says) in [
        ("https://node.example/key", "JSON object"),
        (r#"{"eip155:1": "node.example/key"}"#, "eip155:1"),
        (r#"{"eip155:1": "https://node.example/key", "https://node.example/key": "eip155:2"}"#, "number 2"),
    ] {
        let error = sealog_tests::workerd::Workerd::start(&[("CHAINS", setting)]).await.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("CHAINS") && text.contains(says), "{text}");
        assert!(!text.contains("node.example"), "{text}");
    }
}
