//! `scripts/repair`: what the Directories know comes back from the identity logs.

#![allow(clippy::disallowed_methods)] // tests live in real time

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use sealog_proto::associations::IdentifierKind::{Ethereum, Handle, Passkey};
use sealog_proto::backend::publish_error::Reason;
use sealog_tests::backend::{Backend, Var};
use sealog_tests::client::{Client, failure};
use sealog_tests::fixtures::hex;
use sealog_tests::fixtures::identity::{Inbox, Key, Update};
use sealog_tests::fixtures::random;
use sealog_tests::status;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

const VARS: &[Var<'static>] = &[("LOG_PARTITIONS", "3"), ("DIRECTORY_PARTITIONS", "2"), status::OPEN];
/// More than the repair takes into one batch.
const INBOXES: usize = 170;

async fn repair(backend: &Backend, token: &str) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/repair");
    let mut command = Command::new(script);
    command.arg(backend.url()).env("STATUS_TOKEN", token);
    command.output().await.expect("the script starts")
}

/// A backend's answers about these identifiers, when they no longer change.
async fn settled(
    client: &Client,
    known: &[(String, sealog_proto::associations::IdentifierKind)],
) -> Vec<Option<String>> {
    let entries: Vec<_> = known.iter().map(|(identifier, kind)| (identifier.as_str(), *kind)).collect();
    let start = Instant::now();
    let mut found = client.inbox_ids(&entries).await.expect("an answer");
    loop {
        sleep(Duration::from_millis(300)).await;
        let now = client.inbox_ids(&entries).await.expect("an answer");
        if now == found {
            return now;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "it never settles");
        found = now;
    }
}

#[tokio::test]
async fn api_270_299_a_repair_restores_what_the_directories_knew() {
    let mut backend = Backend::start(VARS).await;
    let client = backend.client();
    let (shared, passkey, gone) = (Key::wallet(), Key::passkey(), Key::wallet());
    let inboxes: Vec<Inbox> = (0..INBOXES).map(|_| Inbox::fresh()).collect();
    client.publish(inboxes.iter().map(Inbox::create).collect()).await.unwrap();
    let handles: Vec<String> = (0..3).map(|_| format!("h{}", hex(&random::<9>()))).collect();
    for (inbox, handle) in inboxes.iter().zip(&handles) {
        let by = &inbox.wallet;
        let update =
            Update::of(&inbox.id).add(&shared, by).add(&passkey, by).add(&gone, by).claim(handle, by);
        client.publish_one(update.sign()).await.unwrap();
        client.publish_one(inbox.revoke(&gone)).await.unwrap();
    }
    // The newest association of the wallet ends, so that an older one counts.
    client.publish_one(inboxes[2].revoke(&shared)).await.unwrap();

    let mut known = vec![(shared.text(), Ethereum), (passkey.text(), Passkey), (gone.text(), Ethereum)];
    known.extend(handles.iter().map(|handle| (handle.clone(), Handle)));
    known.extend(inboxes.iter().map(|inbox| (inbox.wallet.text(), Ethereum)));
    let before = settled(&client, &known).await;
    let (is, none) = (|at: usize| Some(inboxes[at].id.clone()), None);
    assert_eq!(before[..6], [is(1), is(2), none, is(0), is(1), is(2)]);
    assert!(before[6..].iter().zip(&inboxes).all(|(found, inbox)| found.as_ref() == Some(&inbox.id)));

    backend.destroy("Directory");
    backend.restart(VARS).await;
    let client = backend.client();
    assert!(settled(&client, &known).await.iter().all(Option::is_none), "the Directories know nothing");

    // Nobody without the token starts it.
    let refused = repair(&backend, "not the token of this deployment").await;
    assert!(!refused.status.success());
    assert!(settled(&client, &known).await.iter().all(Option::is_none));

    for _ in 0..2 {
        let output = repair(&backend, status::OPEN.1).await;
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}{errors}");
        assert_eq!(said.trim(), format!("walked {INBOXES} inboxes"), "{errors}");
        assert_eq!(settled(&client, &known).await, before);
    }

    // The deployment goes on as if nothing had happened: claims hold, and new updates are told.
    let taken = Update::of(&inboxes[5].id).claim(&handles[0], &inboxes[5].wallet).sign();
    let status = client.publish_one(taken).await.expect_err("a taken handle");
    assert_eq!(failure(&status).map(|failure| failure.reason), Some(Reason::HandleTaken));
    client.publish_one(inboxes[1].revoke(&shared)).await.unwrap();
    assert_eq!(settled(&client, &known[..1]).await, [is(0)]);
}
