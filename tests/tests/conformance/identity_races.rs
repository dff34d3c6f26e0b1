//! Two inboxes want one handle, and two updates want to be the next of one inbox. Of each pair exactly one wins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sealog_proto::associations::IdentifierKind::Handle;
use sealog_proto::backend::{ClientEnvelope, EnvelopeMeta, publish_error::Reason};
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, failure, sequence_id};
use sealog_tests::fixtures::identity::{Inbox, Key, Update};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::{Code, Status};

use crate::handles::{create_and_claim, fresh_handle};
use crate::support::ids_of;

/// Rounds of a normal run.
const ROUNDS: usize = 80;
/// Rounds of a long one.
const MANY_ROUNDS: usize = 500;
/// Rounds at the same time: they meet in the same batches, and wait for one another's staged rows.
const IN_FLIGHT: usize = 24;

/// How a publish may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Stored,
    Aborted,
    /// The client repeats the same bytes.
    Retryable,
    Refused(Reason),
}

impl End {
    /// # Panics
    /// When the status is one that no publish of these may have.
    fn of(answer: &Result<EnvelopeMeta, Status>) -> Self {
        let Err(status) = answer else { return Self::Stored };
        match status.code() {
            Code::Aborted => Self::Aborted,
            Code::Unavailable | Code::DeadlineExceeded => Self::Retryable,
            Code::InvalidArgument => Self::Refused(failure(status).expect("a PublishError").reason),
            other => panic!("{other:?}: {}", status.message()),
        }
    }
}

/// How often a pair of publishes ended so, the worse end first.
type Tally = BTreeMap<[End; 2], usize>;

/// Runs the rounds and counts how they ended.
async fn run<F, Fut>(backend: &Backend, count: usize, round: F) -> Tally
where
    F: Fn(Client) -> Fut,
    Fut: Future<Output = [End; 2]> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(IN_FLIGHT));
    let mut rounds = JoinSet::new();
    for _ in 0..count {
        let permit = permits.clone().acquire_owned().await.expect("nobody closes it");
        let round = round(backend.client());
        rounds.spawn(async move {
            let mut ends = round.await;
            drop(permit);
            ends.sort();
            ends
        });
    }
    let mut tally = Tally::new();
    for ends in rounds.join_all().await {
        *tally.entry(ends).or_default() += 1;
    }
    println!("{tally:?}");
    tally
}

/// Publishes until the answer says how it ended: the same bytes again after what may be repeated (API-224).
async fn settle(client: &Client, envelope: &ClientEnvelope, first: Result<EnvelopeMeta, Status>) -> End {
    let mut answer = first;
    let mut pause = Duration::from_millis(20);
    while End::of(&answer) == End::Retryable {
        assert!(pause < Duration::from_secs(30), "it never ends: {answer:?}");
        sleep(pause).await;
        pause *= 2;
        answer = client.publish_one(envelope.clone()).await;
    }
    End::of(&answer)
}

/// Both at once. The ends are those of the first answers, after both are settled.
async fn race(client: &Client, pair: &[ClientEnvelope; 2]) -> ([End; 2], [End; 2]) {
    let other = client.clone();
    let (a, b) = tokio::join!(client.publish_one(pair[0].clone()), other.publish_one(pair[1].clone()));
    let first = [End::of(&a), End::of(&b)];
    let (a, b) = tokio::join!(settle(client, &pair[0], a), settle(client, &pair[1], b));
    (first, [a, b])
}

async fn one_handle(client: Client) -> [End; 2] {
    let inboxes = [Inbox::fresh(), Inbox::fresh()];
    let handle = fresh_handle();
    let claims = inboxes.each_ref().map(|inbox| create_and_claim(inbox, &handle));
    let (first, settled) = race(&client, &claims).await;
    let stored = settled.map(|end| end == End::Stored);
    assert!(stored[0] != stored[1], "exactly one has the handle: {first:?}, then {settled:?}");
    let (winner, loser) = if stored[0] { (0, 1) } else { (1, 0) };
    assert_eq!(settled[loser], End::Refused(Reason::HandleTaken), "{first:?}");
    assert_eq!(client.read(&inboxes[winner].topic(), 0).await.unwrap().len(), 1);
    assert_eq!(client.read(&inboxes[loser].topic(), 0).await.unwrap(), []);
    let found = client.inbox_ids(&[(&handle, Handle)]).await.unwrap();
    assert_eq!(found, [Some(inboxes[winner].id.clone())]);
    first
}

/// Each of the two takes the recovery role away from the wallet that signed both.
async fn one_inbox(client: Client) -> [End; 2] {
    let inbox = Inbox::fresh();
    let create = inbox.create();
    let created = client.publish_one(create.clone()).await;
    assert_eq!(settle(&client, &create, created).await, End::Stored);
    let updates = [Key::wallet(), Key::passkey()]
        .map(|next| Update::of(&inbox.id).change_recovery(&next.named(), &inbox.wallet).sign());
    let (first, settled) = race(&client, &updates).await;
    let stored = settled.map(|end| end == End::Stored);
    assert!(stored[0] != stored[1], "exactly one is the next update: {first:?}, then {settled:?}");
    let (winner, loser) = if stored[0] { (0, 1) } else { (1, 0) };
    // Read with the winner in the history, the other is no longer by the one who recovers.
    let late = End::Refused(Reason::InvalidIdentityUpdate);
    assert!(settled[loser] == End::Aborted || settled[loser] == late, "{first:?}, then {settled:?}");
    let log = client.read(&inbox.topic(), 0).await.unwrap();
    let meta = client.publish_one(updates[winner].clone()).await.expect("a duplicate");
    assert_eq!(ids_of(&log)[1..], [sequence_id(&meta)]);
    first
}

/// Every pair has ended, the winner stored and the loser in one of these ways.
fn assert_ends(tally: &Tally, rounds: usize, losers: &[End]) {
    assert_eq!(tally.values().sum::<usize>(), rounds);
    for ends in tally.keys() {
        assert!(ends.iter().all(|end| *end == End::Stored || losers.contains(end)), "{ends:?}");
    }
}

async fn backend(partitions: &str) -> Backend {
    Backend::start(&[("LOG_PARTITIONS", partitions), ("DIRECTORY_PARTITIONS", partitions)]).await
}

async fn race_for_handles(partitions: &str, rounds: usize) {
    let tally = run(&backend(partitions).await, rounds, one_handle).await;
    assert_ends(&tally, rounds, &[End::Refused(Reason::HandleTaken), End::Aborted, End::Retryable]);
}

async fn race_for_inboxes(partitions: &str, rounds: usize) {
    let tally = run(&backend(partitions).await, rounds, one_inbox).await;
    let losers = [End::Aborted, End::Retryable, End::Refused(Reason::InvalidIdentityUpdate)];
    assert_ends(&tally, rounds, &losers);
    let aborted = tally.iter().filter(|(ends, _)| ends.contains(&End::Aborted)).map(|(_, count)| count);
    assert!(aborted.sum::<usize>() > 0, "they did meet: {tally:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_296_of_two_inboxes_that_race_for_a_handle_one_gets_it() {
    race_for_handles("1", ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_296_of_two_inboxes_that_race_for_a_handle_one_gets_it_over_8_partitions() {
    race_for_handles("8", ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_232_of_two_updates_that_race_for_an_inbox_one_is_stored() {
    race_for_inboxes("1", ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_232_of_two_updates_that_race_for_an_inbox_one_is_stored_over_8_partitions() {
    race_for_inboxes("8", ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: 2,000 races"]
async fn api_232_296_2000_races_have_one_winner_each() {
    for partitions in ["1", "8"] {
        race_for_handles(partitions, MANY_ROUNDS).await;
        race_for_inboxes(partitions, MANY_ROUNDS).await;
    }
}
