//! Section 6: `GetInboxIds`.

use std::time::Duration;

use sealog_proto::associations::IdentifierKind::{self, Ethereum, Handle, Passkey, Unspecified};
use sealog_proto::backend::{GetInboxIdsRequest, GetInboxIdsResponse, get_inbox_ids_request::Request};
use sealog_tests::backend::Backend;
use sealog_tests::client::{Client, GET_INBOX_IDS};
use sealog_tests::fixtures::identity::{Inbox, Key, Update, inbox_id};
use tokio::time::{Instant, sleep};
use tonic::Code;

use crate::handles::{create_and_claim, fresh_handle};
use crate::support::assert_code;

/// Associations follow their update at a distance. So long a distance would be a fault.
const LAG: Duration = Duration::from_secs(10);

/// Looks up until the answer is this one.
async fn resolves(client: &Client, identifier: &str, kind: IdentifierKind, expected: Option<&str>) {
    let start = Instant::now();
    loop {
        let found = client.inbox_ids(&[(identifier, kind)]).await.expect("an answer").remove(0);
        if found.as_deref() == expected {
            return;
        }
        assert!(start.elapsed() < LAG, "{kind:?} resolves to {found:?} and not to {expected:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn api_270_an_address_resolves_in_any_letter_case() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let inbox = Inbox::fresh();
    let address = inbox.wallet.text();
    resolves(&client, &address, Ethereum, None).await;
    client.publish_one(inbox.create()).await.unwrap();
    resolves(&client, &address, Ethereum, Some(&inbox.id)).await;
    let loud = address.to_uppercase().replacen("0X", "0x", 1);
    resolves(&client, &loud, Ethereum, Some(&inbox.id)).await;
    // The unspecified kind is read as Ethereum.
    resolves(&client, &loud, Unspecified, Some(&inbox.id)).await;
}

#[tokio::test]
async fn api_270_sec_023_entries_are_answered_at_their_index_and_echoed_as_sent() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let passkey = Key::passkey();
    let inbox = Inbox::fresh();
    let handle = fresh_handle();
    client.publish_one(create_and_claim(&inbox, &handle)).await.unwrap();
    client.publish_one(inbox.add(&passkey)).await.unwrap();
    resolves(&client, &passkey.text(), Passkey, Some(&inbox.id)).await;

    let known = Some(inbox.id.as_str());
    let address = inbox.wallet.text();
    let entries: [(String, i32, Option<&str>); 11] = [
        (address.clone(), 1, known),
        (Key::wallet().text(), 1, None),
        (passkey.text().to_uppercase(), 2, known),
        (address.to_uppercase().replacen("0X", "0x", 1), 1, known),
        (handle.to_uppercase(), 3, known),
        (address.clone(), 1, known),
        // Scoped by kind (SEC-025).
        (passkey.text(), 1, None),
        (address, 2, None),
        ("no identifier at all".to_owned(), 1, None),
        ("no hexadecimal".to_owned(), 2, None),
        (fresh_handle(), 3, None),
    ];
    let requests = entries
        .iter()
        .map(|(identifier, kind, _)| Request { identifier: identifier.clone(), identifier_kind: *kind })
        .collect();
    let answer: GetInboxIdsResponse =
        client.call(GET_INBOX_IDS, GetInboxIdsRequest { requests }).await.expect("an answer");
    assert_eq!(answer.responses.len(), entries.len());
    for (response, (identifier, kind, inbox_id)) in answer.responses.iter().zip(entries) {
        assert_eq!((&response.identifier, response.identifier_kind), (&identifier, kind));
        assert_eq!(response.inbox_id.as_deref(), inbox_id, "{identifier} of kind {kind}");
    }
}

#[tokio::test]
async fn api_270_sec_025_the_newest_association_wins_and_its_end_brings_the_older_back() {
    for partitions in ["1", "4"] {
        let vars = [("LOG_PARTITIONS", partitions), ("DIRECTORY_PARTITIONS", partitions)];
        let backend = Backend::start(&vars).await;
        let client = backend.client();
        let (shared, passkey) = (Key::wallet(), Key::passkey());
        let inboxes: Vec<Inbox> = (0..3).map(|_| Inbox::fresh()).collect();
        for inbox in &inboxes {
            client.publish_one(inbox.create()).await.unwrap();
            let both = Update::of(&inbox.id).add(&shared, &inbox.wallet).add(&passkey, &inbox.wallet);
            client.publish_one(both.sign()).await.unwrap();
            resolves(&client, &shared.text(), Ethereum, Some(&inbox.id)).await;
            resolves(&client, &passkey.text(), Passkey, Some(&inbox.id)).await;
        }
        // The middle one goes: nothing changes. Then the newest: the oldest is back.
        client.publish_one(inboxes[1].revoke(&shared)).await.unwrap();
        client.publish_one(inboxes[2].revoke(&shared)).await.unwrap();
        resolves(&client, &shared.text(), Ethereum, Some(&inboxes[0].id)).await;
        resolves(&client, &passkey.text(), Passkey, Some(&inboxes[2].id)).await;
        // Added anew, also within one update, it is the newest again.
        client.publish_one(inboxes[1].add(&shared)).await.unwrap();
        resolves(&client, &shared.text(), Ethereum, Some(&inboxes[1].id)).await;
        let again = Update::of(&inboxes[0].id)
            .revoke(&shared.named(), &inboxes[0].wallet)
            .add(&shared, &inboxes[0].wallet);
        client.publish_one(again.sign()).await.unwrap();
        resolves(&client, &shared.text(), Ethereum, Some(&inboxes[0].id)).await;
        for inbox in &inboxes[..2] {
            client.publish_one(inbox.revoke(&shared)).await.unwrap();
        }
        resolves(&client, &shared.text(), Ethereum, None).await;
    }
}

#[tokio::test]
async fn api_270_sec_025_installations_are_looked_up_by_nobody() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (inbox, phone) = (Inbox::fresh(), Key::installation());
    client.publish_one(inbox.create_with(&phone)).await.unwrap();
    resolves(&client, &inbox.wallet.text(), Ethereum, Some(&inbox.id)).await;
    for kind in [Ethereum, Passkey] {
        assert_eq!(client.inbox_ids(&[(&phone.text(), kind)]).await.unwrap(), [None]);
    }
}

/// A wallet may found many inboxes: the newest is the one that it is found by.
#[tokio::test]
async fn api_270_a_wallet_with_two_inboxes_is_found_in_the_newer() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let wallet = Key::wallet();
    for nonce in [5, 0] {
        let inbox = Inbox { id: inbox_id(&wallet, nonce), wallet: wallet.clone() };
        client.publish_one(Update::of(&inbox.id).create(&wallet, nonce).sign()).await.unwrap();
        resolves(&client, &wallet.text(), Ethereum, Some(&inbox.id)).await;
    }
}

/// A claim is there when its publish is answered.
#[tokio::test]
async fn api_299_a_handle_resolves_in_any_letter_case() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (inbox, handle) = (Inbox::fresh(), format!("{}.77", fresh_handle()));
    assert_eq!(client.inbox_ids(&[(&handle, Handle)]).await.unwrap(), [None]);
    client.publish_one(create_and_claim(&inbox, &handle)).await.unwrap();
    let loud = handle.to_uppercase();
    for spelling in [&handle, &loud] {
        assert_eq!(client.inbox_ids(&[(spelling, Handle)]).await.unwrap(), [Some(inbox.id.clone())]);
    }
    // Its name part is another handle, and nobody's.
    let (name, _) = handle.split_once('.').unwrap();
    assert_eq!(client.inbox_ids(&[(name, Handle)]).await.unwrap(), [None]);
    // Nobody revokes a claim: the handle outlives the member that made it.
    let passkey = Key::passkey();
    let leave = Update::of(&inbox.id)
        .add(&passkey, &inbox.wallet)
        .change_recovery(&passkey.named(), &inbox.wallet)
        .revoke(&inbox.wallet.named(), &passkey);
    client.publish_one(leave.sign()).await.unwrap();
    resolves(&client, &inbox.wallet.text(), Ethereum, None).await;
    assert_eq!(client.inbox_ids(&[(&handle, Handle)]).await.unwrap(), [Some(inbox.id)]);
}

#[tokio::test]
async fn api_299_what_is_no_handle_fails_the_whole_request() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let address = Key::wallet().text();
    for bad in ["", "two words", "1st", "name.", "name.1", "näme", ".42", &"x".repeat(33)] {
        let entries = [(address.as_str(), Ethereum), (bad, Handle)];
        assert_code(client.inbox_ids(&entries).await, Code::InvalidArgument);
    }
    // Too short to be claimed, and still a handle.
    assert_eq!(client.inbox_ids(&[("x", Handle)]).await.unwrap(), [None]);
}

#[tokio::test]
async fn api_270_281_entries_are_bounded_and_250_of_them_are_one_request() {
    let vars = [("LOG_PARTITIONS", "2"), ("DIRECTORY_PARTITIONS", "4")];
    let backend = Backend::start(&vars).await;
    let client = backend.client();
    let wallet = Key::wallet();
    let inbox = Inbox { id: inbox_id(&wallet, 0), wallet };
    client.publish_one(inbox.create()).await.unwrap();
    let own = inbox.wallet.text();
    resolves(&client, &own, Ethereum, Some(&inbox.id)).await;
    let strangers: Vec<String> = (0..248).map(|_| Key::wallet().text()).collect();
    let mut entries: Vec<_> = strangers.iter().map(|address| (address.as_str(), Ethereum)).collect();
    entries.insert(0, (&own, Ethereum));
    entries.push((&own, Ethereum));
    let found = client.inbox_ids(&entries).await.unwrap();
    assert_eq!(found.len(), 250);
    assert_eq!([&found[0], &found[249]], [&Some(inbox.id.clone()); 2]);
    assert!(found[1..249].iter().all(Option::is_none), "nobody knows the strangers");

    assert_eq!(client.inbox_ids(&[]).await.unwrap(), Vec::<Option<String>>::new());
}

#[tokio::test]
async fn api_281_more_entries_than_max_lookup_identifiers_are_refused() {
    let backend = Backend::start(&[("MAX_LOOKUP_IDENTIFIERS", "3")]).await;
    let client = backend.client();
    let address = Key::wallet().text();
    let entries = vec![(address.as_str(), Ethereum); 4];
    assert_eq!(client.inbox_ids(&entries[..3]).await.unwrap(), [None, None, None]);
    // Counted before repeated entries are merged.
    assert_code(client.inbox_ids(&entries).await, Code::InvalidArgument);
}

/// What an update changed is owed to the lookup until it is told, also over the end of the process.
#[tokio::test]
async fn api_270_an_association_is_told_although_the_backend_died_behind_its_update() {
    let vars = [("LOG_PARTITIONS", "2"), ("DIRECTORY_PARTITIONS", "2")];
    let mut backend = Backend::start(&vars).await;
    for _ in 0..5 {
        let inboxes: Vec<Inbox> = (0..8).map(|_| Inbox::fresh()).collect();
        let client = backend.client();
        client.publish(inboxes.iter().map(Inbox::create).collect()).await.unwrap();
        backend.restart(&vars).await;
        let client = backend.client();
        for inbox in &inboxes {
            resolves(&client, &inbox.wallet.text(), Ethereum, Some(&inbox.id)).await;
        }
    }
}
