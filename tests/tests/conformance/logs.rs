//! SEC-051: what goes wrong is logged, and the log names nobody.

use std::time::Duration;

use sealog_proto::associations::IdentifierKind;
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::backend::verify_smart_contract_wallet_signatures_request::Signature;
use sealog_tests::backend::Backend;
use sealog_tests::fixtures::identity::{Inbox, Key};
use sealog_tests::fixtures::{Person, hex, random};
use sealog_tests::status::{self, OPEN};
use sealog_tests::stream::Stream;
use tokio::time::sleep;
use tonic::Code;

use crate::handles::{create_and_claim, fresh_handle};
use crate::support::{assert_code, assert_refused, fresh_group, message_on};

/// Nobody listens there: every question fails.
const NODE: &str = "http://127.0.0.1:9/key-of-the-account";

/// All texts that stand for these bytes.
fn spellings(bytes: &[u8]) -> [String; 3] {
    let list = bytes.iter().map(u8::to_string).collect::<Vec<_>>();
    [hex(bytes), list.join(", "), list.join(",")]
}

#[tokio::test]
async fn sec_051_the_log_names_no_topic_identifier_payload_or_node() {
    let chains = format!(r#"{{"eip155:1": "{NODE}"}}"#);
    let vars = [("CHAINS", &*chains), OPEN];
    let mut backend = Backend::start(&vars).await;
    let client = backend.client();
    let (person, inbox, handle) = (Person::new("Iphigenia").unwrap(), Inbox::fresh(), fresh_handle());
    let (group, wallet, hash) = (fresh_group(), Key::wallet().text(), random::<32>());
    let message = message_on(&group);

    // All goes well.
    client.publish(vec![person.register(), person.key_package().unwrap(), message.clone()]).await.unwrap();
    client.publish_one(create_and_claim(&inbox, &handle)).await.unwrap();
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&[(group.clone(), 0), (inbox.topic(), 0)], &[]).await.unwrap();
    stream.receive(2).await.unwrap();
    let address = inbox.wallet.text();
    client
        .inbox_ids(&[(&handle, IdentifierKind::Handle), (&address, IdentifierKind::Ethereum)])
        .await
        .unwrap();

    // The client is at fault.
    let taken = create_and_claim(&Inbox::fresh(), &handle);
    assert_refused(client.publish_one(taken).await, Some(0), Reason::HandleTaken);
    assert_refused(client.publish_one(inbox.create()).await, Some(0), Reason::InvalidIdentityUpdate);
    let adds = [(group.clone(), 0), (group.clone(), 0)];
    stream.update(&adds, &[]).await.unwrap();
    assert_ne!(stream.end().await.unwrap().code, 0);

    // We are: a chain that does not answer, and objects that fail behind the worker's back.
    let asked = Signature {
        account_id: format!("eip155:1:{wallet}"),
        block_number: Some(1),
        hash: hash.to_vec().into(),
        signature: vec![1; 65].into(),
    };
    assert_code(client.verify(vec![asked]).await, Code::Unavailable);
    let (mut lost, _) = Stream::open(backend.url()).await.unwrap();
    lost.apply(&[(group.clone(), 0)], &[]).await.unwrap();
    backend.restart(&vars).await;
    backend.client().publish_one(message_on(&group)).await.unwrap();
    status::read(&backend.raw()).await.unwrap();
    backend.restart_refusing(&[("LOG_PARTITIONS", "7"), OPEN]).await;
    assert_code(backend.client().publish_one(message).await, Code::Unavailable);

    let mut log = backend.history();
    for _ in 0..50 {
        if log.contains("eip155:1: the node is not reachable") && log.contains("LOG_PARTITIONS is 7") {
            break;
        }
        sleep(Duration::from_millis(100)).await;
        log = backend.history();
    }
    assert!(log.contains("eip155:1: the node is not reachable"), "{log}");
    assert!(log.contains("LOG_PARTITIONS is 7"), "{log}");

    let mut secrets = vec![handle, wallet, address, inbox.id.clone(), person.inbox().id.clone()];
    secrets.extend(["127.0.0.1:9/", "key-of-the-account", "Iphigenia", OPEN.1].map(str::to_owned));
    for bytes in [group.identifier(), person.installation_key(), &hash] {
        secrets.extend(spellings(bytes));
    }
    let log = log.to_lowercase();
    for secret in secrets {
        assert!(!log.contains(&secret.to_lowercase()), "{secret} is in the log:\n{log}");
    }
}
