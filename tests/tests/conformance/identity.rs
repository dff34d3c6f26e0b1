//! Section 3.1: identity updates against the whole log of their inbox.

use prost::Message as _;
use sealog_proto::associations::{IdentityUpdate, Signature, identity_action, signature};
use sealog_proto::backend::{ClientEnvelope, client_envelope::Payload, publish_error::Reason};
use sealog_tests::backend::Backend;
use sealog_tests::client::Client;
use sealog_tests::fixtures::Person;
use sealog_tests::fixtures::identity::{ContractWallet, Inbox, Key, Named, Update, inbox_id};
use tonic::Code;

use crate::support::{assert_code, assert_refused, fresh_group, ids, ids_of, message_on};

/// Refused for this reason, and nothing is stored.
async fn refused(client: &Client, what: &str, envelope: ClientEnvelope, reason: Reason) {
    println!("{what}");
    assert_refused(client.publish_one(envelope).await, Some(0), reason);
}

async fn invalid(client: &Client, what: &str, envelope: ClientEnvelope) {
    refused(client, what, envelope, Reason::InvalidIdentityUpdate).await;
}

async fn accepted(client: &Client, what: &str, envelope: ClientEnvelope) {
    if let Err(status) = client.publish_one(envelope).await {
        panic!("{what} was refused: {status:?}");
    }
}

/// An inbox that the backend knows.
async fn registered(client: &Client) -> Inbox {
    let inbox = Inbox::fresh();
    accepted(client, "a new inbox", inbox.create()).await;
    inbox
}

/// The update with a change that its signatures do not cover.
fn changed(envelope: ClientEnvelope, change: impl FnOnce(&mut IdentityUpdate)) -> ClientEnvelope {
    let Some(Payload::IdentityUpdate(mut update)) = envelope.payload else { panic!("an identity update") };
    change(&mut update);
    ClientEnvelope { payload: Some(Payload::IdentityUpdate(update)) }
}

#[tokio::test]
async fn api_230_232_an_inbox_from_its_creation_to_a_change_of_recovery() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (inbox, phone, laptop) = (Inbox::fresh(), Key::installation(), Key::installation());
    let (second, passkey) = (Key::wallet(), Key::passkey());
    let wallet = &inbox.wallet;
    let log = [
        inbox.create_with(&phone),
        Update::of(&inbox.id).add(&second, &phone).add(&passkey, &second).sign(),
        Update::of(&inbox.id).add(&laptop, &passkey).sign(),
        inbox.revoke(&phone),
        inbox.add(&phone),
        Update::of(&inbox.id).change_recovery(&passkey.named(), wallet).sign(),
        Update::of(&inbox.id).revoke(&wallet.named(), &passkey).sign(),
    ];
    let mut stored = Vec::new();
    for update in &log {
        stored.push(client.publish_one(update.clone()).await.expect("a valid update"));
    }
    let read = client.read(&inbox.topic(), 0).await.unwrap();
    assert_eq!(ids_of(&read), ids(&stored));
    for (envelope, update) in read.iter().zip(&log) {
        assert_eq!(envelope.envelope.as_ref(), Some(update), "as it was signed");
        assert_eq!(envelope.meta.as_ref().unwrap().expiry_ns, 0, "identity updates stay");
    }
    // What each of them may do now, the log alone decides.
    invalid(&client, "the old recovery identifier", inbox.revoke(&laptop)).await;
    invalid(&client, "a wallet that was revoked", inbox.add(&Key::installation())).await;
    invalid(
        &client,
        "an installation that went with its wallet",
        Update::of(&inbox.id).add(&Key::wallet(), &phone).sign(),
    )
    .await;
    accepted(&client, "a member", Update::of(&inbox.id).add(&Key::installation(), &second).sign()).await;
    accepted(&client, "one that another added", Update::of(&inbox.id).add(&Key::wallet(), &laptop).sign())
        .await;
}

#[tokio::test]
async fn api_230_what_breaks_a_rule_is_an_invalid_update() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let inbox = registered(&client).await;
    let (wallet, fresh, phone) = (&inbox.wallet, Inbox::fresh(), Key::installation());
    let of = || Update::of(&inbox.id);

    invalid(&client, "no actions", of().sign()).await;
    invalid(&client, "an addition to nothing", fresh.add(&phone)).await;
    invalid(&client, "a second creation", inbox.create()).await;
    let other_nonce = Update::of(&fresh.id).create(&fresh.wallet, 1).sign();
    invalid(&client, "another inbox's nonce", other_nonce).await;
    let by_another = changed(Update::of(&fresh.id).create(&fresh.wallet, 0).sign(), |update| {
        let other = changed(inbox.create(), |_| ());
        let Some(Payload::IdentityUpdate(other)) = other.payload else { unreachable!() };
        update.actions = other.actions;
    });
    invalid(&client, "a creation by another wallet", by_another).await;
    let loud = fresh.id.to_uppercase();
    invalid(&client, "an inbox id in capitals", Update::of(&loud).create(&fresh.wallet, 0).sign()).await;
    // The stored log spells it in lowercase, and is as sound as before.
    let loud = Update::of(&inbox.id.to_uppercase()).add(&phone, wallet).sign();
    invalid(&client, "a known inbox's id in capitals", loud).await;
    invalid(&client, "the founder again", of().add(wallet, wallet).sign()).await;
    invalid(&client, "allowed by a stranger", of().add(&phone, &Key::wallet()).sign()).await;
    accepted(&client, "an installation", inbox.add(&phone)).await;
    invalid(&client, "an installation adds one", of().add(&Key::installation(), &phone).sign()).await;
    invalid(&client, "a revocation by another", of().revoke(&phone.named(), &phone).sign()).await;
    // The whole update is refused, for its last action.
    let half = of().add(&Key::wallet(), wallet).add(&phone, wallet).sign();
    invalid(&client, "a good action and a bad one", half).await;
    assert_eq!(client.read(&inbox.topic(), 0).await.unwrap().len(), 2);
    assert_eq!(client.read(&fresh.topic(), 0).await.unwrap(), []);
}

#[tokio::test]
async fn api_230_sec_020_signatures_are_over_the_text_of_their_update() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let inbox = Inbox::fresh();
    let (phone, passkey) = (Key::installation(), Key::passkey());

    // A wallet's signature over another text is somebody's: it is just not the founder's.
    let another = Update::of(&inbox.id).at(1).text();
    let wallet_only = Update::of(&inbox.id).create(&inbox.wallet, 0);
    invalid(&client, "a wallet over another text", wallet_only.sign_text(&another)).await;
    for member in [&phone, &passkey] {
        let update = Update::of(&inbox.id).create(&inbox.wallet, 0).add(member, &inbox.wallet);
        let envelope = update.clone().sign_text(&another);
        refused(&client, "a key over another text", envelope, Reason::InvalidSignature).await;
        // Signatures come first, whatever else is wrong.
        let twice = Update::of(&inbox.id).add(member, member).sign_text(&another);
        refused(&client, "and a rule broken too", twice, Reason::InvalidSignature).await;
    }
    // Another second is another text, another nanosecond of it is not.
    let update =
        || Update::of(&inbox.id).at(5_000_000_000).create(&inbox.wallet, 0).add(&phone, &inbox.wallet);
    let moved = changed(update().sign(), |update| update.client_timestamp_ns = 6_000_000_000);
    refused(&client, "a later second", moved, Reason::InvalidSignature).await;
    let moved = changed(update().sign(), |update| update.client_timestamp_ns = 5_999_999_999);
    accepted(&client, "a later nanosecond", moved).await;
}

#[tokio::test]
async fn api_230_signatures_that_are_missing_or_malformed() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let inbox = Inbox::fresh();
    let with = |signature: Option<Signature>| {
        changed(inbox.create(), |update| {
            let Some(identity_action::Kind::CreateInbox(create)) = &mut update.actions[0].kind else {
                unreachable!()
            };
            create.initial_identifier_signature = signature;
        })
    };
    invalid(&client, "no signature", with(None)).await;
    invalid(&client, "an empty signature", with(Some(Signature { signature: None }))).await;
    // Field 4 is retired: alone, it is no signature.
    let retired = Signature::decode(&[0x22, 2, 0x0a, 0][..]).unwrap();
    invalid(&client, "the retired signature", with(Some(retired))).await;
    for len in [0, 64, 66] {
        let bytes = vec![7; len].into();
        let kind =
            signature::Signature::Erc191(sealog_proto::associations::RecoverableEcdsaSignature { bytes });
        let envelope = with(Some(Signature { signature: Some(kind) }));
        refused(&client, "a wallet signature of another length", envelope, Reason::InvalidSignature).await;
    }
}

/// SEC-032: of a passkey's ceremony only the challenge is looked at. The identity is the key (SEC-031).
#[tokio::test]
async fn api_230_sec_031_032_a_passkey_founds_an_inbox() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let passkey = Key::passkey();
    let inbox = Inbox { id: inbox_id(&passkey, 7), wallet: passkey.clone() };
    accepted(&client, "a passkey's inbox", Update::of(&inbox.id).create(&passkey, 7).sign()).await;
    accepted(&client, "an installation", inbox.add(&Key::installation())).await;
    invalid(&client, "the passkey again", Update::of(&inbox.id).add(&passkey, &passkey).sign()).await;
}

/// SEC-024: it is stored, and then nobody can recover the inbox.
#[tokio::test]
async fn api_230_sec_024_a_recovery_address_in_capitals_is_stored_and_never_matches() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (inbox, next) = (registered(&client).await, Key::wallet());
    let loud = Named::Ethereum(next.text().to_uppercase().replacen("0X", "0x", 1));
    let change = Update::of(&inbox.id).change_recovery(&loud, &inbox.wallet).sign();
    accepted(&client, "a recovery address in capitals", change).await;
    let member = Key::installation().named();
    for signer in [&next, &inbox.wallet] {
        invalid(&client, "nobody recovers", Update::of(&inbox.id).revoke(&member, signer).sign()).await;
    }
}

/// IDENT-050: the log is public, and what it holds cannot be used again.
#[tokio::test]
async fn api_222_230_a_repeated_addition_is_a_duplicate_and_a_re_encoded_one_is_a_replay() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (inbox, member) = (registered(&client).await, Key::wallet());
    let add = inbox.add(&member);
    let stored = client.publish_one(add.clone()).await.unwrap();
    accepted(&client, "its revocation", inbox.revoke(&member)).await;

    assert_eq!(client.publish_one(add.clone()).await.unwrap(), stored, "the same bytes");
    let re_encoded = changed(add, |update| {
        let Some(identity_action::Kind::Add(add)) = &mut update.actions[0].kind else { unreachable!() };
        for signature in [&mut add.existing_member_signature, &mut add.new_member_signature] {
            let Some(signature::Signature::Erc191(signature)) =
                signature.as_mut().and_then(|signature| signature.signature.as_mut())
            else {
                unreachable!()
            };
            let mut bytes = signature.bytes.to_vec();
            bytes[64] -= 27;
            signature.bytes = bytes.into();
        }
    });
    invalid(&client, "the same signatures, written in another way", re_encoded).await;
    accepted(&client, "fresh signatures", inbox.add(&member)).await;
    assert_eq!(client.read(&inbox.topic(), 0).await.unwrap().len(), 4);
}

/// The checks that depend on history are not run again for what is stored.
#[tokio::test]
async fn api_222_an_update_that_would_no_longer_be_valid_is_still_a_duplicate() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (inbox, phone, passkey) = (Inbox::fresh(), Key::installation(), Key::passkey());
    let log = [
        inbox.create_with(&phone),
        inbox.add(&passkey),
        Update::of(&inbox.id).change_recovery(&passkey.named(), &inbox.wallet).sign(),
        Update::of(&inbox.id).revoke(&inbox.wallet.named(), &passkey).sign(),
    ];
    let mut metas = Vec::new();
    for update in &log {
        metas.push(client.publish_one(update.clone()).await.unwrap());
    }
    for (update, meta) in log.iter().zip(&metas) {
        assert_eq!(client.publish_one(update.clone()).await.unwrap(), *meta);
        // Also beside something new.
        let batch = vec![message_on(&fresh_group()), update.clone()];
        assert_eq!(client.publish(batch).await.unwrap()[1], *meta);
    }
    assert_eq!(client.read(&inbox.topic(), 0).await.unwrap().len(), log.len());
}

#[tokio::test]
async fn api_222_234_sec_026_a_full_log_takes_duplicates_and_nothing_else() {
    let backend = Backend::start(&[("MAX_IDENTITY_ENTRIES", "3")]).await;
    let client = backend.client();
    let inbox = Inbox::fresh();
    let log = [inbox.create(), inbox.revoke(&Key::wallet()), inbox.revoke(&Key::wallet())];
    let mut metas = Vec::new();
    for update in &log {
        metas.push(client.publish_one(update.clone()).await.expect("up to the bound"));
    }
    invalid(&client, "one more", inbox.revoke(&Key::wallet())).await;
    invalid(&client, "and one more", inbox.add(&Key::installation())).await;
    for (update, meta) in log.iter().zip(&metas) {
        assert_eq!(client.publish_one(update.clone()).await.unwrap(), *meta);
    }
    assert_eq!(ids_of(&client.read(&inbox.topic(), 0).await.unwrap()), ids(&metas), "it stays readable");
    registered(&client).await; // other inboxes go on
}

/// No chain is configured here: nobody can say whether such a signature is valid.
#[tokio::test]
async fn api_231_sec_041_without_a_verifier_there_is_no_verdict() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let contract = |chain_id| {
        Key::Contract(ContractWallet {
            chain_id,
            address: Key::wallet().text(),
            block_number: 1,
            signature: vec![1; 65],
        })
    };
    let wallet = contract(31_337);
    let inbox = Inbox { id: inbox_id(&wallet, 0), wallet };
    assert_code(client.publish_one(inbox.create()).await, Code::Unavailable);
    assert_eq!(client.read(&inbox.topic(), 0).await.unwrap(), [], "nothing is stored");

    // What is certain all the same is said: the client would repeat the other for ever.
    let malformed = changed(inbox.create(), |update| {
        let Some(identity_action::Kind::CreateInbox(create)) = &mut update.actions[0].kind else {
            unreachable!()
        };
        let signature = create.initial_identifier_signature.as_mut().unwrap().signature.as_mut();
        let Some(signature::Signature::Erc6492(signature)) = signature else { unreachable!() };
        signature.account_id = signature.account_id.replacen("eip155", "solana", 1);
    });
    refused(&client, "no account of an EVM chain", malformed, Reason::InvalidSignature).await;
    let batch = vec![inbox.create(), ClientEnvelope { payload: None }];
    assert_refused(client.publish(batch).await, Some(1), Reason::MalformedPayload);
}

/// The bound of ERC-6492 signatures in one update.
#[tokio::test]
async fn api_223_231_more_contract_signatures_than_are_verified_are_too_many() {
    let backend = Backend::start(&[("MAX_SCW_SIGNATURES", "2")]).await;
    let client = backend.client();
    let inbox = registered(&client).await;
    let contract = || {
        let (address, signature) = (Key::wallet().text(), vec![1; 65]);
        Key::Contract(ContractWallet { chain_id: 1, address, block_number: 1, signature })
    };
    let with = |count: usize| {
        let update = Update::of(&inbox.id);
        (0..count).fold(update, |update, _| update.add(&contract(), &inbox.wallet)).sign()
    };
    assert_code(client.publish_one(with(2)).await, Code::Unavailable);
    refused(&client, "one more than the bound", with(3), Reason::TooLarge).await;
}

#[tokio::test]
async fn api_223_the_signatures_of_an_update_are_bounded() {
    let backend = Backend::start(&[("MAX_SIGNATURES_PER_UPDATE", "5")]).await;
    let client = backend.client();
    let inbox = Inbox::fresh();
    let with = |installations: usize| {
        let update = Update::of(&inbox.id).create(&inbox.wallet, 0);
        (0..installations).fold(update, |update, _| update.add(&Key::installation(), &inbox.wallet)).sign()
    };
    refused(&client, "seven signatures", with(3), Reason::TooLarge).await;
    accepted(&client, "five signatures", with(2)).await;
}

/// Registration as clients do it: the update and the key package in one publish.
#[tokio::test]
async fn api_220_223_an_update_and_a_key_package_are_stored_together_or_not_at_all() {
    let backend = Backend::start(&[("LOG_PARTITIONS", "8")]).await;
    let client = backend.client();
    for _ in 0..8 {
        let (person, other) = (Person::new("Ida").unwrap(), Person::new("Jan").unwrap());
        let foreign = person.key_package_signed_by(&other).unwrap();
        let refused = client.publish(vec![person.register(), foreign]).await;
        assert_refused(refused, Some(1), Reason::InvalidKeyPackage);
        assert_eq!(client.read(&person.inbox().topic(), 0).await.unwrap(), []);

        let refused = client.publish(vec![person.key_package().unwrap(), other.inbox().claim("x")]).await;
        assert_refused(refused, Some(1), Reason::InvalidIdentityUpdate);
        assert_eq!(client.query_newest(&[person.key_package_topic()], false).await.unwrap(), []);

        let metas = client.publish(vec![person.register(), person.key_package().unwrap()]).await.unwrap();
        assert_eq!(ids_of(&client.read(&person.inbox().topic(), 0).await.unwrap()), ids(&metas[..1]));
        let newest = client.query_newest(&[person.key_package_topic()], false).await.unwrap();
        assert_eq!(newest[0].meta.as_ref(), Some(&metas[1]));
        assert_eq!(metas[0].server_ns, metas[1].server_ns, "one transaction, one time");
    }
}
