//! Real MLS objects, made by openmls: every message that a group of clients puts on the wire.

use std::sync::LazyLock;

use openmls::messages::external_proposals::{ExternalProposal, JoinProposal};
use openmls::prelude::tls_codec::{Deserialize, Serialize};
use openmls::prelude::*;
use openmls::schedule::{ExternalPsk, PreSharedKeyId, Psk};
use openmls_basic_credential::SignatureKeyPair;
use openmls_rust_crypto::OpenMlsRustCrypto;
use openmls_traits::types::SignatureScheme;
use prost::Message;
use sealog_proto::MlsCredential;

pub(crate) const GROUP_ID: [u8; 16] = *b"sixteen byte id.";
const SUITE: Ciphersuite = Ciphersuite::MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519;

/// One message and what its bytes say about it.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_commit_or_proposal: bool,
}

/// Group messages of every content type, sender type and wire format that openmls writes.
pub(crate) static GROUP_MESSAGES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let mut samples = chat("public", PURE_PLAINTEXT_WIRE_FORMAT_POLICY);
    samples.extend(chat("private", PURE_CIPHERTEXT_WIRE_FORMAT_POLICY));
    samples
});

/// `MLSMessages` that are no group messages: wire formats 3, 4 and 5.
pub(crate) static OTHER_MESSAGES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let (alice, bob) = (Client::new("alice"), Client::new("bob"));
    let mut group = alice.group(PURE_CIPHERTEXT_WIRE_FORMAT_POLICY);
    let (_, welcome, _) =
        group.add_members(&alice.provider, &alice.signer, &[bob.key_package()]).expect("an added member");
    let info = group.export_group_info(alice.provider.crypto(), &alice.signer, true).expect("a group info");
    vec![
        sample("welcome", &welcome, false),
        sample("group info", &info, false),
        sample("key package", &MlsMessageOut::from(bob.key_package()), false),
    ]
});

/// Key packages as clients upload them: a plain one, and one with everything that is optional.
pub(crate) static KEY_PACKAGES: LazyLock<Vec<(Vec<u8>, Vec<u8>)>> = LazyLock::new(|| {
    let client = Client::new("carol");
    let full = KeyPackage::builder()
        .mark_as_last_resort()
        .key_package_lifetime(lifetime())
        .leaf_node_capabilities(Capabilities::new(
            None,
            None,
            Some(&[ExtensionType::Unknown(0xff00), ExtensionType::LastResort]),
            Some(&[ProposalType::SelfRemove, ProposalType::Custom(0xf123)]),
            None,
        ))
        .leaf_node_extensions(
            Extensions::single(Extension::Unknown(0xff00, UnknownExtension(vec![7; 100])))
                .expect("one extension"),
        )
        .build(SUITE, &client.provider, &client.signer, client.credential.clone())
        .expect("a key package");
    [client.key_package(), full.key_package().clone()]
        .map(|package| (package.tls_serialize_detached().expect("bytes"), client.signer.to_public_vec()))
        .to_vec()
});

/// Every key package here is valid at this time, in seconds, and at the time of openmls, which reads a clock.
pub(crate) const NOW: u64 = 1_500;

fn lifetime() -> Lifetime {
    Lifetime::init(NOW, u64::MAX)
}

struct Client {
    provider: OpenMlsRustCrypto,
    signer: SignatureKeyPair,
    credential: CredentialWithKey,
}

impl Client {
    fn new(name: &str) -> Self {
        let provider = OpenMlsRustCrypto::default();
        let signer = SignatureKeyPair::new(SignatureScheme::ED25519).expect("a key pair");
        signer.store(provider.storage()).expect("a stored key pair");
        let identity = MlsCredential { inbox_id: name.to_owned() }.encode_to_vec();
        let credential = CredentialWithKey {
            credential: BasicCredential::new(identity).into(),
            signature_key: signer.public().into(),
        };
        Self { provider, signer, credential }
    }

    fn key_package(&self) -> KeyPackage {
        KeyPackage::builder()
            .key_package_lifetime(lifetime())
            .build(SUITE, &self.provider, &self.signer, self.credential.clone())
            .expect("a key package")
            .key_package()
            .clone()
    }

    fn group(&self, policy: WireFormatPolicy) -> MlsGroup {
        let config = MlsGroupCreateConfig::builder()
            .ciphersuite(SUITE)
            .wire_format_policy(policy)
            .capabilities(Capabilities::new(
                None,
                None,
                None,
                Some(&[ProposalType::SelfRemove, ProposalType::Custom(0xf123)]),
                None,
            ))
            .build();
        let id = GroupId::from_slice(&GROUP_ID);
        MlsGroup::new_with_group_id(&self.provider, &self.signer, &config, id, self.credential.clone())
            .expect("a group")
    }
}

fn sample(name: &str, message: &MlsMessageOut, is_commit_or_proposal: bool) -> Sample {
    let bytes = message.tls_serialize_detached().expect("bytes");
    Sample { name: name.to_owned(), bytes, is_commit_or_proposal }
}

fn verifiable(info: &MlsMessageOut) -> openmls::messages::group_info::VerifiableGroupInfo {
    let bytes = info.tls_serialize_detached().expect("bytes");
    match MlsMessageIn::tls_deserialize_exact(bytes).expect("a message").extract() {
        MlsMessageBodyIn::GroupInfo(info) => info,
        other => panic!("a group info, not {other:?}"),
    }
}

fn chat(format: &str, policy: WireFormatPolicy) -> Vec<Sample> {
    let [alice, bob, carol, dave] = ["alice", "bob", "carol", "dave"].map(Client::new);
    let (provider, signer) = (&alice.provider, &alice.signer);
    let mut group = alice.group(policy);
    let mut samples = Vec::new();
    let mut keep = |name: &str, message: &MlsMessageOut, flag: bool| {
        samples.push(sample(&format!("{format} {name}"), message, flag));
    };

    let (commit, ..) = group.add_members(provider, signer, &[bob.key_package()]).expect("a commit");
    keep("commit that adds", &commit, true);
    group.merge_pending_commit(provider).expect("a merged commit");

    let (application, more) = (group.create_message(provider, signer, b"hello"), vec![1; 20_000]);
    keep("application", &application.expect("a message"), false);
    let application = group.create_message(provider, signer, &more);
    keep("long application", &application.expect("a message"), false);

    // Proposals, by reference.
    let (add, _) = group.propose_add_member(provider, signer, &carol.key_package()).expect("a proposal");
    keep("add proposal", &add, true);
    let (remove, _) =
        group.propose_remove_member(provider, signer, LeafNodeIndex::new(1)).expect("a proposal");
    keep("remove proposal", &remove, true);
    let (extensions, _) =
        group.propose_group_context_extensions(provider, Extensions::empty(), signer).expect("a proposal");
    keep("group context extensions proposal", &extensions, true);
    let psk = PreSharedKeyId::new(SUITE, provider.rand(), Psk::External(ExternalPsk::new(vec![1; 9])));
    let psk = psk.expect("an identifier");
    psk.store(provider, &[2; 32]).expect("a stored key");
    let (psk, _) = group.propose_pre_shared_key(provider, signer, psk).expect("a proposal");
    keep("psk proposal", &psk, true);
    let custom = CustomProposal::new(0xf123, vec![3; 70]);
    let (custom, _) =
        group.propose_custom_proposal_by_reference(provider, signer, custom).expect("a proposal");
    keep("custom proposal", &custom, true);
    group.clear_pending_proposals(provider.storage()).expect("no proposals");
    let (update, _) =
        group.propose_self_update(provider, signer, LeafNodeParameters::default()).expect("a proposal");
    keep("update proposal", &update, true);
    group.clear_pending_proposals(provider.storage()).expect("no proposals");
    if policy == PURE_PLAINTEXT_WIRE_FORMAT_POLICY {
        let leave = group.leave_group_via_self_remove(provider, signer).expect("a proposal");
        keep("self remove proposal", &leave, true);
        group.clear_pending_proposals(provider.storage()).expect("no proposals");
    }

    // Commits: of references, of proposals by value, with a path and without proposals.
    group.propose_remove_member(provider, signer, LeafNodeIndex::new(1)).expect("a proposal");
    let (commit, ..) = group.commit_to_pending_proposals(provider, signer).expect("a commit");
    keep("commit of a reference", &commit, true);
    group.clear_pending_commit(provider.storage()).expect("no commit");
    group.clear_pending_proposals(provider.storage()).expect("no proposals");
    let (commit, ..) = group.remove_members(provider, signer, &[LeafNodeIndex::new(1)]).expect("a commit");
    keep("commit that removes", &commit, true);
    group.clear_pending_commit(provider.storage()).expect("no commit");
    let bundle = group.self_update(provider, signer, LeafNodeParameters::default()).expect("a commit");
    keep("commit with a path only", bundle.commit(), true);
    group.clear_pending_commit(provider.storage()).expect("no commit");

    // From outside the group: always public.
    let id = || GroupId::from_slice(&GROUP_ID);
    let join = JoinProposal::new::<<OpenMlsRustCrypto as OpenMlsProvider>::StorageProvider>(
        carol.key_package(),
        id(),
        group.epoch(),
        &carol.signer,
    );
    keep("proposal of a new member", &join.expect("a proposal"), true);
    let removal = ExternalProposal::new_remove::<OpenMlsRustCrypto>(
        LeafNodeIndex::new(1),
        id(),
        group.epoch(),
        &dave.signer,
        SenderExtensionIndex::new(0),
    );
    keep("proposal of an external sender", &removal.expect("a proposal"), true);
    let info = group.export_group_info(provider.crypto(), signer, true).expect("a group info");
    let (_, bundle) = MlsGroup::external_commit_builder()
        .build_group(&dave.provider, verifiable(&info), dave.credential.clone())
        .expect("a group")
        .load_psks(dave.provider.storage())
        .expect("no keys")
        .build(dave.provider.rand(), dave.provider.crypto(), &dave.signer, |_| true)
        .expect("a commit")
        .finalize(&dave.provider)
        .expect("a commit");
    keep("external commit", bundle.commit(), true);
    samples
}
