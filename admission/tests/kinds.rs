//! The admission table (API-230), kind by kind, at its edges.

mod support;

use bytes::Bytes;
use prost::Message;
use sealog_admission::{Admitted, Rejection, SyntaxError, admit};
use sealog_proto::associations::RecoverableEd25519Signature;
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::backend::welcome_message::{V1, Version, WelcomePointer};
use sealog_proto::backend::{ClientEnvelope, CommitLogEntry, WelcomeMessage, client_envelope::Payload};
use sealog_proto::{Kind, Topic};
use support::mls::GROUP_ID;
use support::{
    commit_log_entry, envelope, group_message, identity_update, key_package, private_message, unhex, welcome,
};

#[track_caller]
fn accepted(envelope: &ClientEnvelope, kind: Kind, identifier: &[u8]) -> Admitted {
    let admitted = admit(envelope).expect("accepted");
    assert_eq!(admitted.topic, Topic::derive(kind, identifier).unwrap());
    assert_eq!(ClientEnvelope::decode(admitted.canonical.body.clone()).as_ref(), Ok(envelope));
    admitted
}

#[track_caller]
fn malformed(envelope: &ClientEnvelope, rejection: Rejection) {
    assert_eq!(rejection.reason(), Reason::MalformedPayload);
    assert_eq!(admit(envelope), Err(rejection));
}

#[test]
fn api_230_an_unset_payload_is_malformed() {
    malformed(&ClientEnvelope { payload: None }, Rejection::NoPayload);
    // A kind that this backend does not know decodes to no payload.
    let unknown = ClientEnvelope::decode(&[0x32, 2, 0x0a, 0][..]).unwrap();
    malformed(&unknown, Rejection::NoPayload);
}

#[test]
fn api_230_the_group_id_has_16_bytes() {
    for len in (0..40).filter(|&len| len != 16) {
        malformed(&group_message(private_message(&vec![1; len], 1)), Rejection::GroupIdLength(len));
    }
}

#[test]
fn api_230_sec_011_content_types() {
    for (content_type, flag) in [(1, false), (2, true), (3, true)] {
        let message = group_message(private_message(&GROUP_ID, content_type));
        let admitted = accepted(&message, Kind::GroupMessage, &GROUP_ID);
        assert_eq!(admitted.is_commit_or_proposal, flag);
    }
    for content_type in (0..=u8::MAX).filter(|byte| !(1..=3).contains(byte)) {
        let error = SyntaxError::UnknownValue { field: "content_type", value: content_type.into() };
        malformed(&group_message(private_message(&GROUP_ID, content_type)), Rejection::GroupMessage(error));
    }
}

#[test]
fn api_230_the_protocol_version_is_mls10() {
    let mut message = private_message(&GROUP_ID, 1);
    for version in [0, 2, 0x0100, 0xffff] {
        message[..2].copy_from_slice(&u16::to_be_bytes(version));
        let error = SyntaxError::UnknownValue { field: "version", value: version };
        malformed(&group_message(message.clone()), Rejection::GroupMessage(error));
    }
}

/// RFC 9420 section 2.1.2: the shortest form, and no length of 8 bytes.
#[test]
fn api_230_vector_lengths_have_one_form() {
    let framed = |group_id: &[u8]| [&[0, 1, 0, 2], group_id, &[0; 8], &[1, 0, 0, 0]].concat();
    let with_len = |len: &[u8]| framed(&[len, &GROUP_ID].concat());
    accepted(&group_message(with_len(&[16])), Kind::GroupMessage, &GROUP_ID);
    for long in [&[0x40, 16][..], &[0x80, 0, 0, 16]] {
        malformed(&group_message(with_len(long)), Rejection::GroupMessage(SyntaxError::LongLength));
    }
    let reserved = with_len(&[0xc0, 0, 0, 0, 0, 0, 0, 16]);
    malformed(&group_message(reserved), Rejection::GroupMessage(SyntaxError::ReservedLength));

    // The bounds between the forms, on the ciphertext.
    let head = [&[0, 1, 0, 2, 16], &GROUP_ID[..], &[0; 8], &[1, 0, 0]].concat();
    let with_ciphertext = |len: &[u8], count: usize| group_message([&head, len, &vec![7; count]].concat());
    for (len, count) in
        [(&[63][..], 63), (&[0x40, 64], 64), (&[0x7f, 0xff], (1 << 14) - 1), (&[0x80, 0, 0x40, 0], 1 << 14)]
    {
        accepted(&with_ciphertext(len, count), Kind::GroupMessage, &GROUP_ID);
        let short = with_ciphertext(len, count - 1);
        malformed(&short, Rejection::GroupMessage(SyntaxError::Truncated));
    }
    for (long, count) in [(&[0x40, 63][..], 63), (&[0x80, 0, 0x3f, 0xff], (1 << 14) - 1)] {
        malformed(&with_ciphertext(long, count), Rejection::GroupMessage(SyntaxError::LongLength));
    }
}

/// A `PublicMessage` with one proposal, sent by a member.
fn public_proposal(proposal: &[u8]) -> Vec<u8> {
    let member = [1, 0, 0, 0, 0];
    let (aad, signature, membership_tag) = ([0], [1, 0xaa], [1, 0xbb]);
    let head = [&[0, 1, 0, 1, 16], &GROUP_ID[..], &[0; 8]].concat();
    [&head, &member[..], &aad, &[2], proposal, &signature, &membership_tag].concat()
}

/// A `PublicMessage` with a commit from outside, of proposals by value.
fn public_commit(proposals: &[u8]) -> Vec<u8> {
    let new_member_commit = [4];
    let (aad, no_path, signature, confirmation_tag) = ([0], [0], [1, 0xaa], [1, 0xbb]);
    let head = [&[0, 1, 0, 1, 16], &GROUP_ID[..], &[0; 8]].concat();
    let len = [u8::try_from(proposals.len()).unwrap()];
    [&head, &new_member_commit[..], &aad, &[3], &len, proposals, &no_path, &signature, &confirmation_tag]
        .concat()
}

#[test]
fn api_230_every_type_of_proposal_parses_to_its_end() {
    let proposals: [&[u8]; 14] = [
        &[0, 3, 0, 0, 0, 1],                               // remove
        &[0, 4, 1, 2, 7, 7, 1, 9],                         // psk: external
        &[0, 4, 2, 1, 1, 7, 0, 0, 0, 0, 0, 0, 0, 1, 1, 9], // psk: resumption
        &[0, 4, 3, 0xc0, 0, 1, 7, 1, 9],                   // psk: application
        &[0, 5, 1, 7, 0, 1, 0, 3, 4, 0, 9, 1, 7],          // reinit with an extension
        &[0, 6, 2, 7, 7],                                  // external_init
        &[0, 7, 8, 0x0a, 0x0a, 0, 0x1a, 0x1a, 2, 7, 7],    // group_context_extensions, GREASE
        &[0, 8, 0xc0, 0, 1, 1, 7],                         // app_data_update: update
        &[0, 8, 0xc0, 0, 2],                               // app_data_update: remove
        &[0, 9, 0xc0, 0, 1, 7],                            // app_ephemeral
        &[0, 10],                                          // self_remove
        &[0x0a, 0x0a, 2, 7, 7],                            // GREASE
        &[0xf0, 1, 0],                                     // private use, empty
        &[0, 11, 1, 7],                                    // not assigned
    ];
    for proposal in proposals {
        let alone = public_proposal(proposal);
        let committed = public_commit(&[&[1], proposal, &[2, 1, 7]].concat());
        for message in [alone, committed] {
            let admitted = accepted(&group_message(message.clone()), Kind::GroupMessage, &GROUP_ID);
            assert!(admitted.is_commit_or_proposal);
            // Each byte is accounted for: any shorter message ends in the middle of a field.
            for len in 0..message.len() {
                assert!(admit(&group_message(&message[..len])).is_err(), "{proposal:?} cut at {len}");
            }
        }
    }
}

#[test]
fn api_230_values_that_select_nothing_are_malformed() {
    let unknown = |field, value| Rejection::GroupMessage(SyntaxError::UnknownValue { field, value });
    let malformed = |message, rejection| malformed(&group_message(message), rejection);
    malformed(public_proposal(&[0, 4, 9, 0, 0]), unknown("psktype", 9));
    malformed(public_proposal(&[0, 8, 0xc0, 0, 3]), unknown("AppDataUpdate.op", 3));
    malformed(public_commit(&[3, 0]), unknown("ProposalOrRef.type", 3));
    let repeated = Rejection::GroupMessage(SyntaxError::RepeatedExtension(9));
    malformed(public_proposal(&[0, 7, 6, 0, 9, 0, 0, 9, 0]), repeated);

    let sender_at = 4 + 17 + 8;
    let mut message = public_proposal(&[0, 10]);
    for sender in [0, 5, 255] {
        message[sender_at] = sender;
        malformed(message.clone(), unknown("sender_type", sender.into()));
    }
    let mut message = public_commit(&[]);
    let path_at = message.len() - 5;
    message[path_at] = 2;
    malformed(message, unknown("optional.present", 2));
}

#[test]
fn api_230_sec_014_a_welcome_in_either_form_needs_32_bytes_of_key_and_nothing_else() {
    let inline = |key: &[u8]| welcome(key, b"");
    let pointer = |key: &[u8]| {
        let version = Version::WelcomePointer(WelcomePointer {
            installation_key: Bytes::copy_from_slice(key),
            ..WelcomePointer::default()
        });
        envelope(Payload::WelcomeMessage(WelcomeMessage { version: Some(version) }))
    };
    for form in [&inline as &dyn Fn(&[u8]) -> ClientEnvelope, &pointer] {
        let admitted = accepted(&form(&[9; 32]), Kind::Welcome, &[9; 32]);
        assert!(!admitted.is_commit_or_proposal);
        for len in (0..70).filter(|&len| len != 32) {
            malformed(&form(&vec![9; len]), Rejection::WelcomeKeyLength(len));
        }
    }
    malformed(
        &envelope(Payload::WelcomeMessage(WelcomeMessage { version: None })),
        Rejection::NoWelcomeVersion,
    );
    // Algorithms that nobody has assigned.
    for wrapper_algorithm in [0, 4, -1, i32::MAX] {
        let version = Version::V1(V1 {
            installation_key: Bytes::from_static(&[9; 32]),
            wrapper_algorithm,
            ..V1::default()
        });
        let message = envelope(Payload::WelcomeMessage(WelcomeMessage { version: Some(version) }));
        accepted(&message, Kind::Welcome, &[9; 32]);
    }
}

#[test]
fn api_230_an_inbox_id_is_64_hexadecimal_characters_of_either_case() {
    let id = "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0";
    accepted(&identity_update(id, 1), Kind::IdentityUpdate, &unhex(id));
    accepted(&identity_update(&id.to_uppercase(), 1), Kind::IdentityUpdate, &unhex(id));
    let replaced = |character: &str| id.replacen('0', character, 1);
    for bad in [
        "",
        &id[..63],
        &id[..62],
        &format!("{id}0"),
        &format!("{id}00"),
        &format!("0x{}", &id[2..]),
        &replaced("g"),
        &replaced(" "),
        &replaced("/"),
        &replaced(":"),
        &replaced("@"),
        &replaced("`"),
        &id.replacen("00", "ä", 1), // 64 bytes, and no 64 characters
    ] {
        malformed(&identity_update(bad, 1), Rejection::InboxId);
    }
}

#[test]
fn api_230_a_commit_log_entry_decodes_and_names_a_group() {
    accepted(&commit_log_entry(&GROUP_ID, 7), Kind::CommitLog, &GROUP_ID);
    for len in (0..40).filter(|&len| len != 16) {
        malformed(&commit_log_entry(&vec![1; len], 7), Rejection::CommitLogGroupIdLength(len));
    }
    for bytes in [&[0xff][..], &[0x0a, 16, 1], &[0x08, 1]] {
        let entry =
            CommitLogEntry { serialized_commit_log_entry: Bytes::copy_from_slice(bytes), signature: None };
        malformed(&envelope(Payload::CommitLogEntry(entry)), Rejection::CommitLogEntry);
    }
}

#[test]
fn sec_015_the_signature_of_a_commit_log_entry_is_kept_unread() {
    for (bytes, public_key) in [(&b""[..], &b""[..]), (b"nonsense", b""), (&[0; 64], &[0xff; 32])] {
        let mut message = commit_log_entry(&GROUP_ID, 7);
        let Some(Payload::CommitLogEntry(entry)) = &mut message.payload else { unreachable!() };
        entry.signature = Some(RecoverableEd25519Signature {
            bytes: Bytes::copy_from_slice(bytes),
            public_key: Bytes::copy_from_slice(public_key),
        });
        accepted(&message, Kind::CommitLog, &GROUP_ID);
    }
}

#[test]
fn api_230_the_signature_key_of_a_key_package_has_32_bytes() {
    let package = |key: &[u8]| {
        let len = u8::try_from(key.len()).unwrap();
        let len: &[u8] = if len < 64 { &[len] } else { &[0x40, len] };
        let (head, encryption_key, credential) = ([0, 2, 0, 7, 0], [0], [0, 1, 0]);
        let (capabilities, update, extensions, signature) = ([0; 5], [2], [0], [0]);
        [
            &head,
            &encryption_key[..],
            len,
            key,
            &credential,
            &capabilities,
            &update,
            &extensions,
            &signature,
            &extensions,
            &signature,
        ]
        .concat()
    };
    // Another version, no init key, no signatures, another source: none of it is syntax.
    accepted(&key_package(package(&[5; 32])), Kind::KeyPackage, &[5; 32]);
    for len in (0..100).filter(|&len| len != 32) {
        malformed(&key_package(package(&vec![5; len])), Rejection::SignatureKeyLength(len));
    }
    let mut source_4 = package(&[5; 32]);
    let source_at = source_4.len() - 5;
    source_4[source_at] = 4;
    let error = SyntaxError::UnknownValue { field: "leaf_node_source", value: 4 };
    malformed(&key_package(source_4), Rejection::KeyPackage(error));
}
