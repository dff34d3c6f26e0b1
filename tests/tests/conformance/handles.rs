//! Section 3.1: the checks of a handle claim that only the backend makes (API-296, API-297, API-298).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use sealog_proto::associations::IdentifierKind::Handle;
use sealog_proto::backend::{ClientEnvelope, publish_error::Reason};
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, failure};
use sealog_tests::fixtures::identity::{Inbox, Key, Update};
use sealog_tests::fixtures::{hex, random};
use tonic::Code;

use crate::support::{assert_refused, fresh_group, message_on};

/// A handle that nobody else claims.
pub(crate) fn fresh_handle() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("h{}_{}", COUNT.fetch_add(1, Relaxed), &hex(&random::<8>()))
}

/// Creates the inbox and claims the handle, in one update.
pub(crate) fn create_and_claim(inbox: &Inbox, handle: &str) -> ClientEnvelope {
    Update::of(&inbox.id).create(&inbox.wallet, 0).claim(handle, &inbox.wallet).sign()
}

async fn refused(client: &Client, envelope: ClientEnvelope, reason: Reason) {
    assert_refused(client.publish_one(envelope).await, Some(0), reason);
}

#[tokio::test]
async fn api_296_a_handle_belongs_to_the_inbox_that_claimed_it_first() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (first, second, handle) = (Inbox::fresh(), Inbox::fresh(), fresh_handle());
    let claim = create_and_claim(&first, &handle);
    let stored = client.publish_one(claim.clone()).await.unwrap();
    refused(&client, create_and_claim(&second, &handle), Reason::HandleTaken).await;
    client.publish_one(second.create()).await.unwrap();
    refused(&client, second.claim(&handle), Reason::HandleTaken).await;
    assert_eq!(client.read(&second.topic(), 0).await.unwrap().len(), 1);

    assert_eq!(client.publish_one(claim).await.unwrap(), stored, "a duplicate");
    // With a discriminator it is another handle.
    client.publish_one(second.claim(&format!("{handle}.42"))).await.expect("another handle");
}

#[tokio::test]
async fn api_296_of_two_claims_in_one_request_the_second_is_refused() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (first, second, handle) = (Inbox::fresh(), Inbox::fresh(), fresh_handle());
    let claims = [create_and_claim(&first, &handle), create_and_claim(&second, &handle)];
    let batch = vec![message_on(&fresh_group()), claims[0].clone(), claims[0].clone(), claims[1].clone()];
    assert_refused(client.publish(batch).await, Some(3), Reason::HandleTaken);
    for inbox in [&first, &second] {
        assert_eq!(client.read(&inbox.topic(), 0).await.unwrap(), [], "nothing of it is stored");
    }
    // And nothing is held: the other may have it.
    client.publish_one(claims[1].clone()).await.expect("the handle is free");
}

/// A refused publish takes no handle with it.
#[tokio::test]
async fn api_220_296_a_refused_publish_leaves_its_handle_free() {
    let backend = Backend::start(&[("LOG_PARTITIONS", "8")]).await;
    let client = backend.client();
    for _ in 0..8 {
        let (first, second, handle) = (Inbox::fresh(), Inbox::fresh(), fresh_handle());
        let batch = vec![create_and_claim(&first, &handle), first.claim("no handle!")];
        assert_refused(client.publish(batch).await, Some(1), Reason::InvalidIdentityUpdate);
        client.publish_one(create_and_claim(&second, &handle)).await.expect("the handle is free");
    }
}

#[tokio::test]
async fn api_297_reserved_and_short_names_are_refused() {
    let backend = Backend::start(&[("MIN_HANDLE_NAME_LENGTH", "5")]).await;
    let client = backend.client();
    let inbox = Inbox::fresh();
    client.publish_one(inbox.create()).await.unwrap();
    for handle in ["admin", "support", "sealog", "everyone.99", "abcd", "abcd.1234", "a", "_"] {
        refused(&client, inbox.claim(handle), Reason::HandleNotAllowed).await;
    }
    client.publish_one(inbox.claim("abcde")).await.expect("as long as it must be");
    // What the policy forbids is refused before what others have, and before the pause is looked at.
    refused(&client, inbox.claim("admin"), Reason::HandleNotAllowed).await;
}

/// A handle that the inbox holds since the policy was looser: its duplicate succeeds, another claim of it does not.
#[tokio::test]
async fn api_222_297_a_stored_claim_outlives_the_policy() {
    let mut backend = Backend::start(&[]).await;
    let (inbox, handle) = (Inbox::fresh(), "tiny");
    let claim = create_and_claim(&inbox, handle);
    let stored = backend.client().publish_one(claim.clone()).await.unwrap();
    backend.restart(&[("MIN_HANDLE_NAME_LENGTH", "8")]).await;
    let client = backend.client();
    assert_eq!(client.publish_one(claim).await.unwrap(), stored);
    refused(&client, inbox.claim(handle), Reason::HandleNotAllowed).await;
    assert_eq!(client.inbox_ids(&[(handle, Handle)]).await.unwrap(), [Some(inbox.id.clone())]);
    // The log goes on.
    client.publish_one(inbox.add(&Key::installation())).await.expect("a valid update");
}

#[tokio::test]
async fn api_298_seven_days_lie_between_two_claims() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (inbox, other) = (Inbox::fresh(), Inbox::fresh());
    let (handle, taken) = (fresh_handle(), fresh_handle());
    client.publish_one(create_and_claim(&other, &taken)).await.unwrap();
    client.publish_one(create_and_claim(&inbox, &handle)).await.unwrap();
    refused(&client, inbox.claim(&fresh_handle()), Reason::HandleTooSoon).await;
    refused(&client, inbox.claim(&handle), Reason::HandleTooSoon).await;
    // In this order: not allowed, taken, too soon.
    refused(&client, inbox.claim("ab"), Reason::HandleNotAllowed).await;
    refused(&client, inbox.claim(&taken), Reason::HandleTaken).await;
    client.publish_one(inbox.add(&Key::wallet())).await.expect("the inbox goes on");
}

/// What the grammar or the association rules refuse is no question of policy.
#[tokio::test]
async fn api_230_296_claims_that_break_a_rule_are_invalid_updates() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let inbox = Inbox::fresh();
    client.publish_one(inbox.create()).await.unwrap();
    let of = || Update::of(&inbox.id);
    for handle in
        ["", "Alice", "al ice", "1alice", "alice.", "alice.1", "alice.1234567890", "älice", &"a".repeat(33)]
    {
        refused(&client, inbox.claim(handle), Reason::InvalidIdentityUpdate).await;
    }
    let stranger = of().claim(&fresh_handle(), &Key::wallet()).sign();
    refused(&client, stranger, Reason::InvalidIdentityUpdate).await;
    let two = of().claim(&fresh_handle(), &inbox.wallet).claim(&fresh_handle(), &inbox.wallet).sign();
    refused(&client, two, Reason::InvalidIdentityUpdate).await;
    let phone = Key::installation();
    let by_installation = of().add(&phone, &inbox.wallet).claim(&fresh_handle(), &phone).sign();
    client.publish_one(by_installation).await.expect("any member may claim");
}

#[tokio::test]
async fn api_230_handles_can_be_switched_off() {
    let backend = Backend::start(&[("HANDLES", "off")]).await;
    let client = backend.client();
    let inbox = Inbox::fresh();
    refused(&client, create_and_claim(&inbox, &fresh_handle()), Reason::InvalidIdentityUpdate).await;
    client.publish_one(inbox.create()).await.expect("an update without a claim");
}

#[tokio::test]
async fn api_296_sec_051_a_handle_that_is_taken_names_no_other_inbox() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (first, second, handle) = (Inbox::fresh(), Inbox::fresh(), fresh_handle());
    client.publish_one(create_and_claim(&first, &handle)).await.unwrap();
    let status = client.publish_one(create_and_claim(&second, &handle)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let text = format!("{}{}", status.message(), failure(&status).unwrap().message);
    for secret in [&first.id, &second.id, &handle] {
        assert!(!text.contains(secret.as_str()), "{text}");
    }
}
