//! Key packages beyond their syntax: what must be refused, and what must not be (API-230, API-235; SEC-012, SEC-013).

mod support;

use ed25519_dalek::SigningKey;
use prost::Message;
use sealog_admission::key_package::{KeyPackageFault, check};
use sealog_admission::{Rejection, SyntaxError, admit};
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::{Kind, MlsCredential, Topic};
use support::key_package::{Package, Source};
use support::mls::KEY_PACKAGES;

/// Within the lifetime of [`package`].
const NOW: u64 = 1_500;

fn signer(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn package() -> Package {
    Package::by(&signer(1))
}

#[track_caller]
fn accepted_at(package: &Package, now: u64) {
    let bytes = package.build();
    check(&bytes, now).expect("accepted");
    let admitted = admit(&support::key_package(bytes)).expect("admitted");
    assert_eq!(admitted.topic, Topic::derive(Kind::KeyPackage, &package.signature_key).unwrap());
}

#[track_caller]
fn accepted(package: &Package) {
    accepted_at(package, NOW);
}

/// Refused for good, and only by the check: a stored duplicate of it would still succeed (API-222).
#[track_caller]
fn invalid_at(package: &Package, now: u64, fault: KeyPackageFault) {
    let bytes = package.build();
    let rejection = check(&bytes, now).expect_err("refused");
    assert_eq!(rejection, Rejection::InvalidKeyPackage(fault));
    assert_eq!(rejection.reason(), Reason::InvalidKeyPackage);
    admit(&support::key_package(bytes)).expect("its structure is sound");
}

#[track_caller]
fn invalid(package: &Package, fault: KeyPackageFault) {
    invalid_at(package, NOW, fault);
}

/// Refused before anything is looked up.
#[track_caller]
fn malformed(bytes: Vec<u8>, error: SyntaxError) {
    let rejection = Rejection::KeyPackage(error);
    assert_eq!(rejection.reason(), Reason::MalformedPayload);
    assert_eq!(check(&bytes, NOW), Err(rejection.clone()));
    assert_eq!(admit(&support::key_package(bytes)), Err(rejection));
}

/// Extensions with their types listed, as a client does it.
fn listed(extensions: &[(u16, &[u8])]) -> Package {
    package().with(|package| {
        package.capabilities[2] = extensions.iter().map(|(kind, _)| *kind).collect();
        package.extensions = extensions.iter().map(|(kind, data)| (*kind, data.to_vec())).collect();
    })
}

#[test]
fn join_007_packages_of_openmls_pass() {
    for (package, _) in KEY_PACKAGES.iter() {
        check(package, support::mls::NOW).expect("accepted");
    }
}

#[test]
fn api_235_sec_013_accepted_shapes() {
    // Case 65: the shape of a current client, no extensions, minimal capabilities.
    let client = listed(&[(10, b""), (0xff04, &[0x0a, 1, 3]), (0xff03, &[7; 1_224])]).with(|package| {
        package.capabilities = [
            vec![1],
            vec![3],
            vec![10, 1, 0xf000, 6, 0xff02, 0xff00, 0xff01, 0xff03, 0xff04],
            vec![7, 8],
            vec![1],
        ];
        package.leaf_extensions = vec![(1, support::key_package::vector(&[b'a'; 64]))];
        package.credential.1 = MlsCredential { inbox_id: "a".repeat(64) }.encode_to_vec();
    });
    accepted(&client);
    accepted(&package());
    accepted(&package().with(|package| package.capabilities = Default::default()));

    // Case 66: any inbox id, and none.
    for inbox_id in ["", "no hexadecimal", &"A".repeat(64), "ä"] {
        let identity = MlsCredential { inbox_id: inbox_id.to_owned() }.encode_to_vec();
        accepted(&client.with(|package| package.credential.1 = identity));
    }
    accepted(&client.with(|package| package.credential.1 = vec![0x12, 1, 7, 0x18, 9]));

    // Case 67: other suites with keys of 32 bytes, any lifetime, GREASE, and what capabilities leave out.
    for cipher_suite in [1, 3, 0x004d, 0x004e, 0x004f] {
        accepted(&client.with(|package| package.cipher_suite = cipher_suite));
    }
    accepted(
        &client.with(|package| package.source = Source::KeyPackage { not_before: 0, not_after: u64::MAX }),
    );
    let grease: Vec<u16> = (0..15).map(|nibble| 0x0a0a + 0x1010 * nibble).collect();
    accepted(&client.with(|package| {
        for numbers in &mut package.capabilities {
            numbers.extend(&grease);
        }
    }));
    accepted(&listed(&[(0x0a0a, b"grease"), (0xf123, b"private"), (6, b"a type of a draft")]));
    accepted(&client.with(|package| package.leaf_extensions.push((0xff07, b"not listed".to_vec()))));
    for len in [0, 1, 31, 1_184] {
        accepted(&client.with(|package| package.init_key = vec![9; len]));
    }
}

#[test]
fn join_008_a_lifetime_includes_its_first_second_and_not_its_last() {
    use KeyPackageFault::{Expired, NotYetValid};
    invalid_at(&package(), 999, NotYetValid);
    accepted_at(&package(), 1_000);
    accepted_at(&package(), 1_999);
    invalid_at(&package(), 2_000, Expired);
    invalid_at(&package(), u64::MAX, Expired);
    let lifetime = |not_before, not_after| {
        package().with(|package| package.source = Source::KeyPackage { not_before, not_after })
    };
    invalid(&lifetime(NOW, NOW), Expired);
    accepted(&lifetime(NOW, NOW + 1));
    // Reversed: at no time.
    for now in [500, 1_000, NOW, 2_000, 3_000] {
        check(&lifetime(2_000, 1_000).build(), now).expect_err("refused");
    }
    accepted_at(&lifetime(u64::MAX - 1, u64::MAX), u64::MAX - 1);
}

#[test]
fn sec_012_both_signatures_are_verified_with_the_leafs_key() {
    use KeyPackageFault::{LeafSignature, Signature};
    let other = signer(2);
    invalid(&package().with(|package| package.signers[0] = other.clone()), LeafSignature);
    invalid(&package().with(|package| package.signers[1] = other.clone()), Signature);
    invalid(
        &package().with(|package| package.signature_key = signer(2).verifying_key().to_bytes().to_vec()),
        LeafSignature,
    );
    // Bytes that are no point of the curve.
    invalid(&package().with(|package| package.signature_key = vec![2; 32]), LeafSignature);
    // A point of small order, and the signature R = identity, S = 0, which a lenient verifier takes for any message.
    let mut forged = package().with(|package| package.signature_key = [&[1][..], &[0; 31]].concat()).build();
    let signature = [&[64, 1][..], &[0; 63]].concat();
    let len = forged.len();
    assert_eq!(forged[len - 66..len - 64], [0x40, 64], "a vector of 64 bytes");
    let leaf_signature_at = len - 66 - 1 - 66;
    for at in [leaf_signature_at, len - 66] {
        forged[at + 1..at + 66].copy_from_slice(&signature);
    }
    assert_eq!(check(&forged, NOW), Err(Rejection::InvalidKeyPackage(LeafSignature)));

    // Any byte of an accepted package counts.
    let bytes = listed(&[(10, b""), (0xff04, b"x")]).build();
    check(&bytes, NOW).expect("accepted");
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            check(&damaged, NOW).expect_err("refused");
        }
    }
}

#[test]
fn sec_012_versions_keys_and_sources() {
    for version in [0, 2, 0x0100, u16::MAX] {
        invalid(&package().with(|package| package.version = version), KeyPackageFault::Version(version));
    }
    invalid(
        &package().with(|package| package.init_key = package.encryption_key.clone()),
        KeyPackageFault::SameKeys,
    );
    for source in [Source::Update, Source::Commit] {
        invalid(&package().with(|package| package.source = source), KeyPackageFault::LeafNodeSource);
    }
}

#[test]
fn sec_012_extensions_of_a_key_package_belong_there_and_are_listed() {
    for kind in [1, 2, 3, 4, 5, 0xf000] {
        // Whatever they hold, and listed or not.
        invalid(&listed(&[(kind, b"")]), KeyPackageFault::MisplacedExtension(kind));
        invalid(
            &package().with(|package| package.extensions = vec![(kind, vec![1, 7])]),
            KeyPackageFault::MisplacedExtension(kind),
        );
    }
    for kind in [6, 10, 0xff03, 0x0a0a, 0xf123] {
        let extension = (kind, Vec::new());
        invalid(
            &package().with(|package| package.extensions = vec![extension]),
            KeyPackageFault::UnlistedExtension(kind),
        );
        accepted(&listed(&[(kind, b"")]));
    }
}

#[test]
fn join_004_the_credential_is_basic_and_holds_an_mls_credential() {
    let with = |kind, content: &[u8]| package().with(|package| package.credential = (kind, content.to_vec()));
    for kind in [0, 2, 3, 0x0a0a, 0xf001] {
        invalid(&with(kind, b""), KeyPackageFault::CredentialType(kind));
    }
    let no_credentials: [&[u8]; 5] = [
        &[0x0a],          // no length
        &[0x0a, 2, b'a'], // shorter than it says
        &[0x08, 1],       // a number
        &[0x0a, 1, 0xff], // not UTF-8
        b"plain text",
    ];
    for identity in no_credentials {
        invalid(&with(1, identity), KeyPackageFault::CredentialIdentity);
    }
}

#[test]
fn topic_002_the_suite_of_a_key_of_32_bytes_signs_with_ed25519() {
    for cipher_suite in [2, 4, 5, 6, 7] {
        let package = package().with(|package| package.cipher_suite = cipher_suite);
        invalid(&package, KeyPackageFault::SignatureScheme(cipher_suite));
    }
    for value in [0, 8, 0x0042, 0x0a0a, 0x7777, 0xf042] {
        let package = package().with(|package| package.cipher_suite = value);
        malformed(package.build(), SyntaxError::UnknownValue { field: "cipher_suite", value });
    }
    for len in [0, 31, 33, 65] {
        let package = package().with(|package| package.signature_key = vec![4; len]).build();
        let rejection = Rejection::SignatureKeyLength(len);
        assert_eq!(check(&package, NOW), Err(rejection.clone()));
        assert_eq!(admit(&support::key_package(package)), Err(rejection));
    }
}

#[test]
fn api_230_a_package_that_no_client_can_decode_is_malformed() {
    let bytes = listed(&[(10, b"")]).build();
    malformed([&bytes[..], &[0]].concat(), SyntaxError::TrailingBytes(1));
    malformed(bytes[..bytes.len() - 1].to_vec(), SyntaxError::Truncated);
    malformed(Vec::new(), SyntaxError::Truncated);
    let wrapped = support::key_package([&[0, 1, 0, 5], &bytes[..]].concat());
    assert_eq!(admit(&wrapped).expect_err("no MLSMessage").reason(), Reason::MalformedPayload);
    malformed(listed(&[(10, b""), (10, b"")]).build(), SyntaxError::RepeatedExtension(10));
    malformed(listed(&[(10, b"x")]).build(), SyntaxError::ExtensionData(10));

    let leaf = |extensions: &[(u16, &[u8])]| {
        package()
            .with(|package| {
                package.leaf_extensions =
                    extensions.iter().map(|(kind, data)| (*kind, data.to_vec())).collect();
            })
            .build()
    };
    malformed(leaf(&[(9, b""), (9, b"")]), SyntaxError::RepeatedExtension(9));
    for value in [2, 3, 4, 5, 10, 0xf000] {
        let error = SyntaxError::UnknownValue { field: "LeafNode.extensions.extension_type", value };
        malformed(leaf(&[(value, &[0])]), error);
    }
    for data in [&b""[..], &[2, 7], &[0, 7], &[0x40, 1, 7]] {
        malformed(leaf(&[(1, data)]), SyntaxError::ExtensionData(1));
    }
}

/// The set of listed extensions is as cheap to search as it is long.
#[test]
fn sec_012_long_lists_do_not_multiply() {
    let kinds: Vec<u16> = (11..=u16::MAX).filter(|kind| *kind != 0xf000).collect();
    let long = package().with(|package| {
        package.capabilities[2] = kinds.iter().rev().copied().collect();
        package.extensions = kinds.iter().map(|&kind| (kind, Vec::new())).collect();
    });
    accepted(&long);
    let short = long.with(|package| package.capabilities[2].retain(|&kind| kind != u16::MAX));
    invalid(&short, KeyPackageFault::UnlistedExtension(u16::MAX));
}
