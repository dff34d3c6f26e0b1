//! API-211: the stored bytes of every kind, pinned byte for byte.
//!
//! The expected bytes were written out from the field numbers by an independent encoder, never copied from ours. If
//! one of these tests fails, the encoder has changed, and with it the hash of everything that is stored: do not
//! change the test. Properties over arbitrary envelopes stand in `canonical_properties.rs`.

use bytes::Bytes;
use prost::Message;
use sealog_proto::associations::{
    AddAssociation, ChangeRecoveryAddress, ClaimHandle, CreateInbox, IdentifierKind, IdentityAction,
    IdentityUpdate, MemberIdentifier, Passkey, RecoverableEcdsaSignature, RecoverableEd25519Signature,
    RecoverablePasskeySignature, RevokeAssociation, Signature, SmartContractWalletSignature,
    identity_action::Kind as Action, member_identifier::Kind as Member, signature::Signature as Signed,
};
use sealog_proto::backend::{
    ClientEnvelope, CommitLogEntry, GroupMessage, KeyPackage, WelcomeMessage,
    client_envelope::Payload,
    welcome_message::{V1, Version, WelcomePointer},
};
use sealog_proto::canonical::Canonical;

#[track_caller]
fn golden(payload: impl Into<Option<Payload>>, body: &str, hash: &str) {
    let envelope = ClientEnvelope { payload: payload.into() };
    let canonical = Canonical::of(&envelope);
    assert_eq!(hex(&canonical.body), body.split_whitespace().collect::<String>(), "stored bytes");
    assert_eq!(hex(&canonical.hash), hash, "message hash");
    assert_eq!(ClientEnvelope::decode(canonical.body).as_ref(), Ok(&envelope), "decoded again");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn bytes(bytes: &'static [u8]) -> Bytes {
    Bytes::from_static(bytes)
}

#[test]
fn api_211_group_message() {
    golden(
        Payload::GroupMessage(GroupMessage {
            data: bytes(&[0, 1, 0, 2, 0x0a, 0x0b]),
            sender_hmac: bytes(&[0xf0, 0x0d]),
            should_push: true,
        }),
        "0a 0e  0a 06 000100020a0b  12 02 f00d  18 01",
        "207e08acbb7015d8800426ec7576d64992879118e394fe0518b30275f5da80b8",
    );
}

#[test]
fn api_211_defaults_are_left_out_and_the_payload_is_not() {
    golden(
        Payload::GroupMessage(GroupMessage::default()),
        "0a 00",
        "102b51b9765a56a3e899f7cf0ee38e5251f9c503b357b330a49183eb7b155604",
    );
    golden(
        Payload::WelcomeMessage(WelcomeMessage::default()),
        "12 00",
        "08da7c45cb204377e7e42249cda5713fa865116ddbb4cb5a1949b2e5b438a6ab",
    );
    golden(None, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

fn welcome(version: Version) -> Payload {
    Payload::WelcomeMessage(WelcomeMessage { version: Some(version) })
}

#[test]
fn api_211_inline_welcome() {
    golden(
        welcome(Version::V1(V1 {
            installation_key: bytes(&[0xa1, 0xa2]),
            data: bytes(&[0xb1]),
            hpke_public_key: bytes(&[0xc1, 0xc2]),
            wrapper_algorithm: 2,
            welcome_metadata: bytes(&[0xd1]),
        })),
        "12 12  0a 10  0a 02 a1a2  12 01 b1  1a 02 c1c2  20 02  2a 01 d1",
        "1505e50230f812eaf516202ca5514018f1e0e0479618a2fb91d5cf82282c978f",
    );
}

#[test]
fn api_211_welcome_pointer() {
    golden(
        welcome(Version::WelcomePointer(WelcomePointer {
            installation_key: bytes(&[0xa1, 0xa2]),
            welcome_pointer: bytes(&[0xb1, 0xb2]),
            hpke_public_key: bytes(&[0xc1]),
            wrapper_algorithm: 2,
        })),
        "12 0f  12 0d  0a 02 a1a2  12 02 b1b2  1a 01 c1  20 02",
        "175623226311f71654fa9cc65a02b0cf48c1cc7df2d196569f2d48f934ef877a",
    );
}

#[test]
fn api_211_unknown_numbers_of_open_enums_are_kept() {
    golden(
        welcome(Version::V1(V1 {
            installation_key: bytes(&[0xa1]),
            wrapper_algorithm: 300,
            ..V1::default()
        })),
        "12 08  0a 06  0a 01 a1  20 ac02",
        "cd40dad3a1e739f13e409ccd1eba0e3a8c49b3d0ac1f93f769c320e71e4bc81b",
    );
    golden(
        welcome(Version::WelcomePointer(WelcomePointer {
            wrapper_algorithm: -1,
            ..WelcomePointer::default()
        })),
        "12 0d  12 0b  20 ffffffffffffffffff01",
        "c4e2fee365b9bf17bcf05d57c3c61e50e54b9cdb14b06395d72398ebb22f24dd",
    );
}

#[test]
fn api_211_key_package() {
    golden(
        Payload::KeyPackage(KeyPackage { key_package_tls_serialized: bytes(&[0, 1, 0, 3]) }),
        "1a 06  0a 04 00010003",
        "3859703404e1a5c684f4f75560999f5c009fd79176dd00d8b3d8d58a87453e52",
    );
}

#[test]
fn api_211_commit_log_entry() {
    golden(
        Payload::CommitLogEntry(CommitLogEntry {
            serialized_commit_log_entry: bytes(&[0x0a, 2, 1, 2]),
            signature: Some(RecoverableEd25519Signature {
                bytes: bytes(&[0x51]),
                public_key: bytes(&[0x52]),
            }),
        }),
        "2a 0e  0a 04 0a020102  12 06 0a 01 51 12 01 52",
        "39d02b1f08fbb1b5b52bdf6b5683caa851b37fc856ed732bdbb0ec5d54fefd67",
    );
}

#[test]
fn api_211_a_message_that_is_present_but_empty_is_written() {
    golden(
        Payload::CommitLogEntry(CommitLogEntry {
            serialized_commit_log_entry: Bytes::new(),
            signature: Some(RecoverableEd25519Signature::default()),
        }),
        "2a 02  12 00",
        "dd7cb6f29414871642e4b8f22b1b8ae5c31637837448afa7d5a5246dd9dd259a",
    );
}

fn update(actions: Vec<Option<Action>>, client_timestamp_ns: u64, inbox_id: &str) -> Payload {
    Payload::IdentityUpdate(IdentityUpdate {
        actions: actions.into_iter().map(|kind| IdentityAction { kind }).collect(),
        client_timestamp_ns,
        inbox_id: inbox_id.to_owned(),
    })
}

#[allow(clippy::unnecessary_wraps)] // every use is an optional field
fn signed(signature: Signed) -> Option<Signature> {
    Some(Signature { signature: Some(signature) })
}

#[allow(clippy::unnecessary_wraps)]
fn member(kind: Member) -> Option<MemberIdentifier> {
    Some(MemberIdentifier { kind: Some(kind) })
}

#[test]
fn api_211_identity_update_with_every_action_and_every_signature() {
    let create = Action::CreateInbox(CreateInbox {
        initial_identifier: "0xab".to_owned(),
        nonce: 7,
        initial_identifier_signature: signed(Signed::Erc191(RecoverableEcdsaSignature {
            bytes: bytes(&[1, 2, 3]),
        })),
        initial_identifier_kind: IdentifierKind::Ethereum.into(),
        relying_party: Some(String::new()),
    });
    let add = Action::Add(AddAssociation {
        new_member_identifier: member(Member::Passkey(Passkey {
            key: bytes(&[4, 5]),
            relying_party: Some("rp".to_owned()),
        })),
        existing_member_signature: signed(Signed::Erc6492(SmartContractWalletSignature {
            account_id: "eip155:1:0xab".to_owned(),
            block_number: 300,
            signature: bytes(&[6]),
        })),
        new_member_signature: signed(Signed::Passkey(RecoverablePasskeySignature {
            public_key: bytes(&[7]),
            signature: bytes(&[8]),
            authenticator_data: bytes(&[9]),
            client_data_json: bytes(b"{}"),
        })),
        relying_party: Some("rp".to_owned()),
    });
    let revoke = Action::Revoke(RevokeAssociation {
        member_to_revoke: member(Member::InstallationPublicKey(bytes(&[0x0b, 0x0c]))),
        recovery_identifier_signature: signed(Signed::InstallationKey(RecoverableEd25519Signature {
            bytes: bytes(&[0x0d]),
            public_key: bytes(&[0x0e]),
        })),
    });
    let change = Action::ChangeRecoveryAddress(ChangeRecoveryAddress {
        new_recovery_identifier: "0xcd".to_owned(),
        existing_recovery_identifier_signature: Some(Signature { signature: None }),
        new_recovery_identifier_kind: 99,
        relying_party: None,
    });
    let claim = Action::ClaimHandle(ClaimHandle {
        handle: "ann.01".to_owned(),
        existing_member_signature: signed(Signed::Erc191(RecoverableEcdsaSignature::default())),
    });
    golden(
        update(
            vec![Some(create), Some(add), Some(revoke), Some(change), Some(claim)],
            1_700_000_000_000_000_000,
            "ab",
        ),
        "22 9701
           0a 17  0a 15  0a 04 30786162  10 07  1a 07 0a05 0a 03 010203  20 01  2a 00
           0a 3c  12 3a  0a 0a 1a08 0a 02 0405 12 02 7270
                         12 17 1215 0a 0d 6569703135353a313a30786162 10 ac02 1a 01 06
                         1a 0f 2a0d 0a 01 07 12 01 08 1a 01 09 22 02 7b7d
                         22 02 7270
           0a 12  1a 10  0a 04 12 02 0b0c  12 08 1a06 0a 01 0d 12 01 0e
           0a 0c  22 0a  0a 04 30786364  12 00  18 63
           0a 0e  2a 0c  0a 06 616e6e2e3031  12 02 0a00
           10 8080a8b1e39fe7cb17
           1a 02 6162",
        "7c8d703f65fc9f2725e1e4daa1d7b2ab781e89ec49c4a9973e533c758e5ad42a",
    );
}

#[test]
fn api_211_identity_update_with_everything_present_but_empty() {
    let actions = vec![
        None,
        Some(Action::CreateInbox(CreateInbox::default())),
        Some(Action::Add(AddAssociation {
            new_member_identifier: member(Member::EthereumAddress(String::new())),
            existing_member_signature: signed(Signed::Erc6492(SmartContractWalletSignature::default())),
            new_member_signature: signed(Signed::Passkey(RecoverablePasskeySignature::default())),
            relying_party: Some(String::new()),
        })),
        Some(Action::Revoke(RevokeAssociation {
            member_to_revoke: member(Member::Passkey(Passkey {
                key: Bytes::new(),
                relying_party: Some(String::new()),
            })),
            recovery_identifier_signature: signed(Signed::InstallationKey(
                RecoverableEd25519Signature::default(),
            )),
        })),
        Some(Action::ChangeRecoveryAddress(ChangeRecoveryAddress {
            relying_party: Some(String::new()),
            ..ChangeRecoveryAddress::default()
        })),
        Some(Action::ClaimHandle(ClaimHandle::default())),
        Some(Action::Revoke(RevokeAssociation {
            member_to_revoke: member(Member::InstallationPublicKey(Bytes::new())),
            recovery_identifier_signature: None,
        })),
        Some(Action::Revoke(RevokeAssociation {
            member_to_revoke: Some(MemberIdentifier { kind: None }),
            recovery_identifier_signature: None,
        })),
    ];
    golden(
        update(actions, 0, ""),
        "22 3e
           0a 00
           0a 02  0a 00
           0a 10  12 0e  0a 02 0a00  12 02 1200  1a 02 2a00  22 00
           0a 0c  1a 0a  0a 04 1a 02 1200  12 02 1a00
           0a 04  22 02  22 00
           0a 02  2a 00
           0a 06  1a 04  0a 02 1200
           0a 04  1a 02  0a 00",
        "bbce0ec58f47aaabd9b5c8a05f4264bbcf5e11b252f4fa4a27857a36d014ab4b",
    );
}

#[test]
fn api_211_the_largest_number() {
    golden(
        update(vec![], u64::MAX, ""),
        "22 0b  10 ffffffffffffffffff01",
        "ceb061e3503018ece861bc16cd58fdc2d01f16dcf8493dc1a7728489a724df0f",
    );
}
