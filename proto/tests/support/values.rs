//! Arbitrary envelopes: every kind, every optional part present, absent or empty.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use sealog_proto::associations::{
    AddAssociation, ChangeRecoveryAddress, ClaimHandle, CreateInbox, IdentityAction, IdentityUpdate,
    MemberIdentifier, Passkey, RecoverableEcdsaSignature, RecoverableEd25519Signature,
    RecoverablePasskeySignature, RevokeAssociation, Signature, SmartContractWalletSignature,
    identity_action::Kind as Action, member_identifier::Kind as Member, signature::Signature as Signed,
};
use sealog_proto::backend::{
    ClientEnvelope, CommitLogEntry, GroupMessage, KeyPackage, WelcomeMessage,
    client_envelope::Payload,
    welcome_message::{V1, Version, WelcomePointer},
};

pub(crate) fn envelope() -> impl Strategy<Value = ClientEnvelope> {
    of(prop_oneof![
        group_message().prop_map(Payload::GroupMessage),
        of(version()).prop_map(|version| Payload::WelcomeMessage(WelcomeMessage { version })),
        bytes().prop_map(|bytes| Payload::KeyPackage(KeyPackage { key_package_tls_serialized: bytes })),
        identity_update().prop_map(Payload::IdentityUpdate),
        commit_log_entry().prop_map(Payload::CommitLogEntry),
    ])
    .prop_map(|payload| ClientEnvelope { payload })
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..24).prop_map(Bytes::from)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[0-9a-fx]{1,12}", "\\PC{0,4}"]
}

/// Numbers of an open enum: known ones and any other.
fn number() -> impl Strategy<Value = i32> {
    prop_oneof![0..5, any::<i32>()]
}

fn group_message() -> impl Strategy<Value = GroupMessage> {
    (bytes(), bytes(), any::<bool>()).prop_map(|(data, sender_hmac, should_push)| GroupMessage {
        data,
        sender_hmac,
        should_push,
    })
}

fn version() -> impl Strategy<Value = Version> {
    let inline = (bytes(), bytes(), bytes(), number(), bytes());
    let pointer = (bytes(), bytes(), bytes(), number());
    prop_oneof![
        inline.prop_map(|(installation_key, data, hpke_public_key, wrapper_algorithm, welcome_metadata)| {
            Version::V1(V1 { installation_key, data, hpke_public_key, wrapper_algorithm, welcome_metadata })
        }),
        pointer.prop_map(|(installation_key, welcome_pointer, hpke_public_key, wrapper_algorithm)| {
            Version::WelcomePointer(WelcomePointer {
                installation_key,
                welcome_pointer,
                hpke_public_key,
                wrapper_algorithm,
            })
        }),
    ]
}

fn commit_log_entry() -> impl Strategy<Value = CommitLogEntry> {
    (bytes(), of(ed25519())).prop_map(|(serialized_commit_log_entry, signature)| CommitLogEntry {
        serialized_commit_log_entry,
        signature,
    })
}

fn ed25519() -> impl Strategy<Value = RecoverableEd25519Signature> {
    (bytes(), bytes()).prop_map(|(bytes, public_key)| RecoverableEd25519Signature { bytes, public_key })
}

fn signature() -> impl Strategy<Value = Option<Signature>> {
    let wallet = (text(), any::<u64>(), bytes());
    let passkey = (bytes(), bytes(), bytes(), bytes());
    let signed = prop_oneof![
        bytes().prop_map(|bytes| Signed::Erc191(RecoverableEcdsaSignature { bytes })),
        wallet.prop_map(|(account_id, block_number, signature)| {
            Signed::Erc6492(SmartContractWalletSignature { account_id, block_number, signature })
        }),
        ed25519().prop_map(Signed::InstallationKey),
        passkey.prop_map(|(public_key, signature, authenticator_data, client_data_json)| {
            Signed::Passkey(RecoverablePasskeySignature {
                public_key,
                signature,
                authenticator_data,
                client_data_json,
            })
        }),
    ];
    of(of(signed).prop_map(|signature| Signature { signature }))
}

fn member() -> impl Strategy<Value = Option<MemberIdentifier>> {
    let kind = prop_oneof![
        text().prop_map(Member::EthereumAddress),
        bytes().prop_map(Member::InstallationPublicKey),
        (bytes(), of(text()))
            .prop_map(|(key, relying_party)| Member::Passkey(Passkey { key, relying_party })),
    ];
    of(of(kind).prop_map(|kind| MemberIdentifier { kind }))
}

fn action() -> impl Strategy<Value = IdentityAction> {
    let create = (text(), any::<u64>(), signature(), number(), of(text()));
    let add = (member(), signature(), signature(), of(text()));
    let change = (text(), signature(), number(), of(text()));
    let kind = prop_oneof![
        create.prop_map(|(initial_identifier, nonce, signature, kind, relying_party)| {
            Action::CreateInbox(CreateInbox {
                initial_identifier,
                nonce,
                initial_identifier_signature: signature,
                initial_identifier_kind: kind,
                relying_party,
            })
        }),
        add.prop_map(|(new_member_identifier, existing, new, relying_party)| {
            Action::Add(AddAssociation {
                new_member_identifier,
                existing_member_signature: existing,
                new_member_signature: new,
                relying_party,
            })
        }),
        (member(), signature()).prop_map(|(member_to_revoke, recovery_identifier_signature)| {
            Action::Revoke(RevokeAssociation { member_to_revoke, recovery_identifier_signature })
        }),
        change.prop_map(|(new_recovery_identifier, existing, kind, relying_party)| {
            Action::ChangeRecoveryAddress(ChangeRecoveryAddress {
                new_recovery_identifier,
                existing_recovery_identifier_signature: existing,
                new_recovery_identifier_kind: kind,
                relying_party,
            })
        }),
        (text(), signature()).prop_map(|(handle, existing_member_signature)| {
            Action::ClaimHandle(ClaimHandle { handle, existing_member_signature })
        }),
    ];
    of(kind).prop_map(|kind| IdentityAction { kind })
}

fn identity_update() -> impl Strategy<Value = IdentityUpdate> {
    (vec(action(), 0..5), any::<u64>(), text()).prop_map(|(actions, client_timestamp_ns, inbox_id)| {
        IdentityUpdate { actions, client_timestamp_ns, inbox_id }
    })
}
