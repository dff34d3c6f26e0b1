//! Associations reach the Directories although everything dies between a commit and its delivery (API-270).

#![allow(clippy::disallowed_methods)] // tests live in real time

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sealog_proto::associations::IdentifierKind::Ethereum;
use sealog_tests::backend::{Backend, Var};
use sealog_tests::client::Client;
use sealog_tests::fixtures::identity::Inbox;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const VARS: &[Var<'static>] = &[("LOG_PARTITIONS", "4"), ("DIRECTORY_PARTITIONS", "2")];
const PUBLISHERS: usize = 16;
/// Kills at most until one comes between a commit and its delivery, which takes a millisecond or two.
const KILLS: u32 = 20;
/// An alarm rings 5 s after the commit at the latest, and what it does is done at once; the rest is for a busy machine.
const ALARM: Duration = Duration::from_secs(12);

/// Creates inboxes until the backend is gone; returns all of them, also the last, of which nobody knows.
async fn create_until_killed(client: Client, answered: Arc<Semaphore>) -> Vec<Inbox> {
    let mut inboxes = Vec::new();
    loop {
        let inbox = Inbox::fresh();
        let outcome = client.publish_one(inbox.create()).await;
        inboxes.push(inbox);
        if outcome.is_err() {
            return inboxes;
        }
        answered.add_permits(1);
    }
}

/// The places of those inboxes that their addresses resolve to.
async fn resolved(client: &Client, inboxes: &[Inbox]) -> BTreeSet<usize> {
    let addresses: Vec<String> = inboxes.iter().map(|inbox| inbox.wallet.text()).collect();
    let entries: Vec<_> = addresses.iter().map(|address| (address.as_str(), Ethereum)).collect();
    let mut found = BTreeSet::new();
    for (chunk, first) in entries.chunks(250).zip((0..).step_by(250)) {
        let answers = client.inbox_ids(chunk).await.expect("an answer");
        let places = (first..).zip(answers).filter(|(place, id)| id.as_ref() == Some(&inboxes[*place].id));
        found.extend(places.map(|(place, _)| place));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_270_what_is_owed_when_all_is_killed_is_delivered_by_alarms() {
    let mut backend = Backend::start(VARS).await;
    for kill in 0..KILLS {
        let answered = Arc::new(Semaphore::new(0));
        let mut publishers = JoinSet::new();
        for _ in 0..PUBLISHERS {
            publishers.spawn(create_until_killed(backend.client(), answered.clone()));
        }
        answered.acquire_many(10 + 7 * kill).await.unwrap().forget();
        let before = backend.mark("LogPartition");
        while backend.mark("LogPartition") == before {
            tokio::task::yield_now().await;
        }
        backend.kill();
        let inboxes: Vec<Inbox> = publishers.join_all().await.into_iter().flatten().collect();

        // Lookups ask the Directories only. Nothing but its alarm starts a log partition now.
        backend.restart(VARS).await;
        let client = backend.client();
        let start = Instant::now();
        let at_once = resolved(&client, &inboxes).await;
        while start.elapsed() < ALARM {
            sleep(Duration::from_millis(200)).await;
        }
        let in_time = resolved(&client, &inboxes).await;
        assert!(at_once.is_subset(&in_time), "what was found is found again");
        for (place, inbox) in inboxes.iter().enumerate() {
            let stored = !client.read(&inbox.topic(), 0).await.unwrap().is_empty();
            assert_eq!(stored, in_time.contains(&place), "stored is resolved, and nothing else is");
        }
        let late = in_time.len() - at_once.len();
        println!("kill {kill}: {} stored, {late} of them delivered after it", in_time.len());
        if late > 0 {
            return;
        }
    }
    panic!("no kill came between a commit and its delivery");
}
