//! A whole request: what is kept of it, and which verdict comes first.

mod support;

use bytes::Bytes;
use prost::Message;
use sealog_admission::{Publish, PublishLimits, PublishRefusal, read_publish};
use sealog_proto::associations::{
    IdentityAction, IdentityUpdate, RevokeAssociation, Signature, SmartContractWalletSignature,
    identity_action::Kind, signature,
};
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::backend::welcome_message::{Version, WelcomePointer};
use sealog_proto::backend::{
    ClientEnvelope, Cursor, EnvelopeMeta, MessageHash, PublishRequest, PublishResponse, WelcomeMessage,
    client_envelope::Payload, message_hash,
};
use sealog_proto::canonical::Canonical;
use sealog_proto::status::PublishFailure;
use support::{commit_log_entry, envelope, group_message, identity_update, private_message, welcome};

const INBOX: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn encode(envelopes: &[ClientEnvelope]) -> Bytes {
    PublishRequest { envelopes: envelopes.to_vec() }.encode_to_vec().into()
}

fn read(envelopes: &[ClientEnvelope], limits: &PublishLimits) -> Result<Publish, PublishRefusal> {
    read_publish(encode(envelopes), limits)
}

#[track_caller]
fn refused(verdict: Result<Publish, PublishRefusal>, index: Option<u32>, reason: Reason) {
    let Err(PublishRefusal::Invalid { failure, below }) = verdict else { panic!("{verdict:?}") };
    let PublishFailure { index: actual, reason: actual_reason, message } = failure;
    assert_eq!((actual, actual_reason), (index, reason), "{message}");
    assert!(!message.is_empty());
    if index.is_none() {
        assert_eq!(below, Publish::default(), "the whole request is at fault");
    }
}

/// A Welcome on topic number `topic`, different for each `content`.
fn letter(topic: u32, content: &[u8]) -> ClientEnvelope {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&topic.to_be_bytes());
    welcome(&key, content)
}

fn bad() -> ClientEnvelope {
    group_message([])
}

#[test]
fn an_empty_request_is_an_empty_publish() {
    assert_eq!(read_publish(Bytes::new(), &PublishLimits::default()), Ok(Publish::default()));
}

#[test]
fn api_221_api_222_each_envelope_has_a_slot_and_duplicates_share_one() {
    let [a, b, c] = [letter(1, b"a"), letter(1, b"b"), letter(2, b"a")];
    let request = [a.clone(), b.clone(), a.clone(), c.clone(), b.clone(), a.clone()];
    let publish = read(&request, &PublishLimits::default()).unwrap();
    assert_eq!(publish.slots, [0, 1, 0, 2, 1, 0]);
    let kept: Vec<_> = publish.envelopes.iter().map(|admitted| admitted.canonical.clone()).collect();
    assert_eq!(kept, [&a, &b, &c].map(Canonical::of));
    assert_eq!(publish.first_indexes, [0, 1, 3]);
}

#[test]
fn api_211_api_222_another_encoding_of_the_same_envelope_is_a_duplicate() {
    let canonical = encode(&[letter(1, b"a")]);
    // The same with an unknown field inside, and a longer varint outside.
    let inner = [&canonical[2..], &[0xf8, 0x07, 1]].concat();
    let sloppy = [&[0x8a, 0x00, u8::try_from(inner.len()).unwrap()], &inner[..]].concat();
    let publish = read_publish([&sloppy[..], &canonical].concat().into(), &PublishLimits::default()).unwrap();
    assert_eq!(publish.slots, [0, 0]);
    assert_eq!(publish.envelopes[0].canonical, Canonical::of(&letter(1, b"a")));
}

#[test]
fn a_canonical_envelope_shares_the_buffer_of_the_request() {
    let wire = encode(&[letter(1, b"a"), letter(2, b"b")]);
    let publish = read_publish(wire.clone(), &PublishLimits::default()).unwrap();
    for admitted in publish.envelopes {
        assert!(wire.as_ptr_range().contains(&admitted.canonical.body.as_ptr()));
    }
}

#[test]
fn api_223_bytes_that_do_not_decode_name_no_envelope() {
    let good = encode(&[letter(1, b"a")]);
    let junk: [&[u8]; 7] = [
        &[0xff],                            // a key without an end
        &[0x0a],                            // no length
        &[0x0a, 9, 0],                      // longer than what is left
        &[0x08, 1],                         // `envelopes` as a number
        &[0x0a, 2, 0x0a, 9],                // an envelope that does not decode
        &[0x0a, 4, 0x1a, 2, 8, 1],          // bytes as a number, one message deeper
        &[0x0a, 5, 0x22, 3, 0x1a, 1, 0xff], // an inbox id that is not UTF-8
    ];
    for junk in junk {
        let wire = [&good, junk].concat();
        refused(read_publish(wire.into(), &PublishLimits::default()), None, Reason::MalformedPayload);
        // It comes before the failure of an earlier envelope, and before every bound.
        let wire = [&encode(&[bad()]), junk].concat();
        let limits = PublishLimits { max_request_bytes: 0, max_publish_topics: 0, ..Default::default() };
        refused(read_publish(wire.into(), &limits), None, Reason::MalformedPayload);
    }
}

#[test]
fn api_223_the_lowest_failing_envelope_is_named() {
    let limits = PublishLimits { max_envelope_bytes: 100, ..Default::default() };
    let (good, long) = (letter(1, b"a"), letter(2, &[7; 100]));
    refused(read(&[good.clone(), bad(), long.clone()], &limits), Some(1), Reason::MalformedPayload);
    refused(read(&[good.clone(), good, long, bad()], &limits), Some(2), Reason::TooLarge);
    refused(read(&[bad()], &limits), Some(0), Reason::MalformedPayload);
}

/// A check of the caller's may fail at a lower index, so a failure brings along what is below it.
#[test]
fn api_223_a_failure_comes_with_the_envelopes_below_it() {
    let [a, b] = [letter(1, b"a"), letter(2, b"b")];
    let request = [a.clone(), b.clone(), a.clone(), bad(), letter(3, b"c"), b.clone()];
    let Err(PublishRefusal::Invalid { failure, below }) = read(&request, &PublishLimits::default()) else {
        panic!("a failure")
    };
    assert_eq!(failure.index, Some(3));
    assert_eq!(Ok(below), read(&request[..3], &PublishLimits::default()));
}

#[test]
fn api_223_an_envelope_may_be_as_long_as_its_bound_and_not_a_byte_longer() {
    let letter = letter(1, &[7; 50]);
    let max_envelope_bytes = letter.encoded_len();
    let limits = PublishLimits { max_envelope_bytes, ..Default::default() };
    read(std::slice::from_ref(&letter), &limits).expect("at the bound");
    let limits = PublishLimits { max_envelope_bytes: max_envelope_bytes - 1, ..Default::default() };
    refused(read(&[letter], &limits), Some(0), Reason::TooLarge);
}

#[test]
fn api_223_a_request_may_be_as_long_as_its_bound_and_not_a_byte_longer() {
    let envelopes = [letter(1, &[7; 200]), letter(2, b""), letter(1, &[7; 200])];
    let max_request_bytes = encode(&envelopes).len();
    let limits = PublishLimits { max_request_bytes, ..Default::default() };
    read(&envelopes, &limits).expect("at the bound");
    let limits = PublishLimits { max_request_bytes: max_request_bytes - 1, ..Default::default() };
    refused(read(&envelopes, &limits), None, Reason::TooLarge);
    // The whole request is at fault, whatever else is.
    refused(read(&[&envelopes[..], &[bad()]].concat(), &limits), None, Reason::TooLarge);
}

#[test]
fn api_223_bytes_are_counted_as_they_are_encoded_again() {
    let pointer = WelcomePointer {
        installation_key: Bytes::from_static(&[9; 32]),
        wrapper_algorithm: -1,
        ..WelcomePointer::default()
    };
    let version = Some(Version::WelcomePointer(pointer));
    let letter = envelope(Payload::WelcomeMessage(WelcomeMessage { version }));
    let canonical = encode(&[letter]);
    // A negative number in 5 bytes, where an encoder writes 10: shorter on the wire than it is counted.
    let mut short = canonical.to_vec();
    short.truncate(canonical.len() - 10);
    short.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
    for len_at in [1, 3, 5] {
        short[len_at] -= 5;
    }
    let limit = |max_request_bytes| PublishLimits { max_request_bytes, ..Default::default() };
    let short = Bytes::from(short);
    let publish = read_publish(short.clone(), &limit(canonical.len())).expect("the same envelope");
    assert_eq!(publish.envelopes[0].canonical.body, canonical[2..]);
    refused(read_publish(short, &limit(canonical.len() - 1)), None, Reason::TooLarge);
    // Unknown fields are dropped before anything is counted.
    let long = Bytes::from([&canonical[..], &[0x12, 100], &[0; 100]].concat());
    read_publish(long, &limit(canonical.len())).expect("within the bound");
}

#[test]
fn api_223_distinct_topics_are_counted_once() {
    let limits = PublishLimits { max_publish_topics: 3, ..Default::default() };
    let [a, b, c] = [1, 2, 3].map(|topic| letter(topic, b"a"));
    let within = [a.clone(), b, c, a, letter(1, b"b"), letter(3, b"c")];
    assert_eq!(read(&within, &limits).unwrap().envelopes.len(), 5);
    let over = [&within[..], &[letter(4, b"a")]].concat();
    refused(read(&over, &limits), None, Reason::TooLarge);
    // The bound of the whole request comes before the envelope that fails.
    refused(read(&[&[bad()], &over[..]].concat(), &limits), None, Reason::TooLarge);
    refused(read(&[&[bad()], &within[..]].concat(), &limits), Some(0), Reason::MalformedPayload);
    // A group's messages and its commit log are two topics.
    let group = [group_message(private_message(&[1; 16], 1)), commit_log_entry(&[1; 16], 1)];
    let limits = PublishLimits { max_publish_topics: 1, ..Default::default() };
    refused(read(&group, &limits), None, Reason::TooLarge);
}

/// In the table of bounds, which holds duplicates too: so it is judged before anything is asked of the store.
#[test]
fn api_222_an_update_has_a_bound_of_contract_wallets() {
    let signature =
        Signature { signature: Some(signature::Signature::Erc6492(SmartContractWalletSignature::default())) };
    let revoke = RevokeAssociation { member_to_revoke: None, recovery_identifier_signature: Some(signature) };
    let action = IdentityAction { kind: Some(Kind::Revoke(revoke)) };
    let update = |signatures: usize| {
        envelope(Payload::IdentityUpdate(IdentityUpdate {
            actions: vec![action.clone(); signatures],
            client_timestamp_ns: 0,
            inbox_id: INBOX.to_owned(),
        }))
    };
    let limits = PublishLimits { max_wallet_signatures: 3, ..Default::default() };
    read(&[update(3)], &limits).expect("at the bound");
    refused(read(&[update(4)], &limits), Some(0), Reason::TooLarge);
}

#[test]
fn api_233_a_second_update_of_an_inbox_fails_and_a_duplicate_does_not() {
    let limits = PublishLimits::default();
    let (first, second) = (identity_update(INBOX, 1), identity_update(INBOX, 2));
    let other = identity_update(&INBOX.replace('0', "1"), 1);
    let twice = [first.clone(), other.clone(), first.clone()];
    assert_eq!(read(&twice, &limits).unwrap().slots, [0, 1, 0]);
    let request = [first.clone(), other, first.clone(), second];
    refused(read(&request, &limits), Some(3), Reason::InvalidIdentityUpdate);
    // Another spelling of the id is the same inbox, and other bytes.
    let request = [first, identity_update(&INBOX.to_uppercase(), 1)];
    refused(read(&request, &limits), Some(1), Reason::InvalidIdentityUpdate);
}

fn update_with(actions: usize) -> ClientEnvelope {
    envelope(Payload::IdentityUpdate(IdentityUpdate {
        actions: vec![IdentityAction::default(); actions],
        client_timestamp_ns: 1,
        inbox_id: INBOX.to_owned(),
    }))
}

#[test]
fn an_update_with_too_many_actions_is_refused_before_it_is_decoded() {
    let limits = PublishLimits { max_update_actions: 5, ..Default::default() };
    read(&[letter(1, b"a"), update_with(5)], &limits).expect("at the bound");
    refused(read(&[letter(1, b"a"), update_with(6)], &limits), Some(1), Reason::TooLarge);
}

#[test]
fn actions_are_counted_over_the_pieces_of_an_update() {
    let limits = PublishLimits { max_update_actions: 5, ..Default::default() };
    let (three, four) = (update_with(3).encode_to_vec(), update_with(4).encode_to_vec());
    let request = |pieces: &[&[u8]]| {
        let envelope = pieces.concat();
        let len = u8::try_from(envelope.len()).unwrap();
        assert!((128..=255).contains(&len));
        Bytes::from([&[0x0a, len, 1], &envelope[..]].concat())
    };
    refused(read_publish(request(&[&three, &four]), &limits), Some(0), Reason::TooLarge);
    // A payload of another kind behind the update takes its place.
    let letter = letter(1, b"a").encode_to_vec();
    let publish = read_publish(request(&[&three, &letter, &four]), &limits).expect("four actions");
    assert_eq!(publish.envelopes[0].canonical, Canonical::of(&update_with(4)));
    read_publish(request(&[&three, &four, &letter]), &limits).expect("a letter");
}

#[test]
fn api_281_a_publish_whose_response_cannot_be_carried_is_refused_before_it_is_stored() {
    let answer = |count: usize| vec![letter(1, b"a"); count];
    // The shortest metadata that this envelope can get: the first id, and a clock that stands at 0.
    let kept = read(&answer(1), &PublishLimits::default()).unwrap().envelopes.remove(0);
    let meta = EnvelopeMeta {
        cursor: Some(Cursor { sequence_id: 1 }),
        message_hash: Some(MessageHash {
            hash: Some(message_hash::Hash::Sha256(Bytes::copy_from_slice(&kept.canonical.hash))),
        }),
        topic: Some((&kept.topic).into()),
        ..EnvelopeMeta::default()
    };
    let max_response_bytes = PublishResponse { envelope_metas: vec![meta; 10] }.encoded_len();
    let limits = PublishLimits { max_response_bytes, ..Default::default() };
    assert_eq!(read(&answer(10), &limits).map(|publish| publish.slots.len()), Ok(10));
    assert_eq!(read(&answer(11), &limits), Err(PublishRefusal::ResponseTooLong));
    // Certain failures come first: the client can do something about them.
    refused(read(&[answer(11), vec![bad()]].concat(), &limits), Some(11), Reason::MalformedPayload);
}
