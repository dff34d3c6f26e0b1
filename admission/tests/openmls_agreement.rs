//! Key packages get the verdict that OpenMLS gives, with the exceptions that `docs/decisions/0007` names.

mod support;

use std::ops::RangeInclusive;

use ed25519_dalek::SigningKey;
use openmls::prelude::tls_codec::Deserialize;
use openmls::prelude::{BasicCredential, KeyPackageIn, OpenMlsProvider, ProtocolVersion};
use openmls_rust_crypto::OpenMlsRustCrypto;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use prost::Message;
use sealog_admission::key_package::check;
use sealog_proto::MlsCredential;
use sealog_proto::backend::publish_error::Reason;
use support::damage::{apply, damage};
use support::key_package::{Package, Source, vector};
use support::mls::{KEY_PACKAGES, NOW};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Malformed,
    Invalid,
    Accepted,
}

fn ours(bytes: &[u8]) -> Verdict {
    match check(bytes, NOW).map_err(|rejection| rejection.reason()) {
        Ok(()) => Verdict::Accepted,
        Err(Reason::MalformedPayload) => Verdict::Malformed,
        Err(Reason::InvalidKeyPackage) => Verdict::Invalid,
        Err(other) => panic!("{other:?}"),
    }
}

/// What a server makes of a key package with openmls: decode, validate, convert the credential.
///
/// Its clock is the machine's, so the lifetimes here begin before [`NOW`] and end never, or hold at neither time.
fn openmls(bytes: &[u8], provider: &OpenMlsRustCrypto) -> Verdict {
    let Ok(package) = KeyPackageIn::tls_deserialize_exact(bytes) else { return Verdict::Malformed };
    if package.unverified_credential().signature_key.as_slice().len() != 32 {
        return Verdict::Malformed; // no topic (TOPIC-002)
    }
    let Ok(package) = package.validate(provider.crypto(), ProtocolVersion::Mls10) else {
        return Verdict::Invalid;
    };
    match BasicCredential::try_from(package.leaf_node().credential().clone()) {
        Ok(credential) if MlsCredential::decode(credential.identity()).is_ok() => Verdict::Accepted,
        _ => Verdict::Invalid,
    }
}

/// One of the numbers that stand for nothing, so that nobody comes to rely on a fixed set (RFC 9420 section 13.5).
const GREASE: u16 = 0x0a0a;

/// Whether a type of the network's own that openmls knows nothing of might be among the extensions.
fn names_f000(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == [0xf0, 0])
}

fn signer() -> impl Strategy<Value = SigningKey> {
    prop_oneof![9 => Just(1), 1 => Just(2)].prop_map(|seed| SigningKey::from_bytes(&[seed; 32]))
}

/// Types with a meaning, private ones and GREASE. Not 0xf000: see [`names_f000`].
fn extension_type() -> impl Strategy<Value = u16> {
    prop_oneof![4 => select(vec![10, 0xff00, 0xff03, GREASE, 6]), 1 => 1..=5_u16]
}

fn extensions() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let data = prop_oneof![
        3 => Just(Vec::new()),
        2 => vec(any::<u8>(), 0..70).prop_map(|content| vector(&content)),
        1 => vec(any::<u8>(), 0..70),
    ];
    prop_oneof![1 => Just(Vec::new()), 2 => vec((extension_type(), data), 0..4)]
}

/// A package in which each field is mostly as it should be. Drafts of suites are left out: openmls knows them only
/// when it is built for them.
fn package() -> impl Strategy<Value = Package> {
    let unusual = |usual: u16, others: Vec<u16>| prop_oneof![9 => Just(usual), 1 => select(others)];
    let keys = (weighted(0.05, vec(any::<u8>(), 0..40)), prop_oneof![19 => Just(2_u8), 1 => Just(1)]);
    let credential = (
        unusual(1, vec![0, 2, 3, 0x0a0a]),
        prop_oneof![9 => "[a-z0-9]{0,70}".prop_map(|inbox_id| MlsCredential { inbox_id }.encode_to_vec()), 1 => vec(any::<u8>(), 0..9)],
    );
    let source = prop_oneof![
        17 => Just(Source::KeyPackage { not_before: NOW, not_after: u64::MAX }),
        1 => Just(Source::KeyPackage { not_before: 0, not_after: NOW }),
        1 => Just(Source::KeyPackage { not_before: u64::MAX - 1, not_after: u64::MAX }),
        1 => select(vec![Source::Update, Source::Commit]),
    ];
    let suites = (unusual(1, vec![0, 2, 0x0a0a]), unusual(3, vec![1, 1, 2, 7, 0, 0x7777]));
    let lists = (vec(vec(any::<u16>(), 0..4), 5), weighted(0.9, Just(())));
    (suites, keys, credential, source, extensions(), extensions(), lists, signer(), signer()).prop_map(
        |(
            suites,
            keys,
            credential,
            source,
            leaf_extensions,
            extensions,
            lists,
            leaf_signer,
            package_signer,
        )| {
            let mut package = Package::by(&SigningKey::from_bytes(&[1; 32]));
            (package.version, package.cipher_suite) = suites;
            if let Some(key) = keys.0 {
                package.signature_key = key;
            }
            package.encryption_key = std::vec![keys.1; 32];
            package.credential = credential;
            package.capabilities = lists.0.try_into().expect("five lists");
            if lists.1.is_some() {
                package.capabilities[2].extend(extensions.iter().map(|(kind, _)| *kind));
            }
            package.source = source;
            package.leaf_extensions = leaf_extensions;
            package.extensions = extensions;
            package.signers = [leaf_signer, package_signer];
            package
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn join_007_a_signed_package_of_any_shape_gets_the_verdict_of_openmls(package in package()) {
        let bytes = package.build();
        let (ours, theirs) = (ours(&bytes), openmls(&bytes, &OpenMlsRustCrypto::default()));
        let has = |types: RangeInclusive<u16>| package.extensions.iter().any(|(kind, _)| types.contains(kind));
        if has(1..=5) && theirs == Verdict::Malformed {
            // openmls decodes what does not belong into a key package before it refuses it.
            prop_assert_ne!(ours, Verdict::Accepted);
        } else if has(GREASE..=GREASE) && theirs == Verdict::Invalid {
            // openmls finds a GREASE extension in no list of capabilities, though it be there.
            let without = package.with(|package| package.extensions.retain(|(kind, _)| *kind != GREASE));
            let without = openmls(&without.build(), &OpenMlsRustCrypto::default());
            let is_listed = package.capabilities[2].contains(&GREASE);
            prop_assert_eq!(ours, if is_listed { without } else { theirs });
        } else if !names_f000(&bytes) {
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn join_007_a_damaged_package_gets_the_verdict_of_openmls(
        package in select(KEY_PACKAGES.iter().map(|(package, _)| package.clone()).collect::<Vec<_>>()),
        damage in damage(),
    ) {
        let bytes = apply(package, &damage);
        let (ours, theirs) = (ours(&bytes), openmls(&bytes, &OpenMlsRustCrypto::default()));
        prop_assert_eq!(ours == Verdict::Accepted, theirs == Verdict::Accepted);
        if theirs != Verdict::Malformed && !names_f000(&bytes) {
            prop_assert_eq!(ours, theirs);
        }
    }

    /// JOIN-008, at any time: openmls compares as this does, when it is told the time.
    #[test]
    fn join_008_a_lifetime_holds_when_openmls_says_so(
        [not_before, not_after, now] in any::<[u8; 3]>().prop_map(|bytes| bytes.map(u64::from)),
    ) {
        let source = Source::KeyPackage { not_before, not_after };
        let package = Package::by(&SigningKey::from_bytes(&[1; 32])).with(|package| package.source = source);
        let moment = std::time::UNIX_EPOCH + std::time::Duration::from_secs(now);
        let theirs = openmls::prelude::Lifetime::init(not_before, not_after).validate_with_time(moment);
        prop_assert_eq!(check(&package.build(), now).is_ok(), theirs.is_ok());
    }
}
