//! No input makes admission panic, and none makes it disagree with the MLS library that clients use.

mod support;

#[path = "../../fuzz/src/admission.rs"]
mod targets;

use openmls::prelude::tls_codec::Deserialize;
use openmls::prelude::{KeyPackageIn, MlsMessageIn, ProtocolMessage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use sealog_admission::admit;
use support::mls::{GROUP_MESSAGES, KEY_PACKAGES, OTHER_MESSAGES};
use support::{group_message, key_package};

/// Damage that a real object may take.
#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Flip(Index, u8),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Remove(Index),
    Repeat(Index, Index),
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let one = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, 1 << bit)),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), vec(any::<u8>(), 1..5)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        any::<Index>().prop_map(Damage::Remove),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
    ];
    vec(one, 0..4)
}

/// Most fields that select anything stand at the start, so that half of the positions are taken from there.
fn position(index: Index, len: usize) -> usize {
    if index.index(2) == 0 { index.index(len.min(120)) } else { index.index(len) }
}

fn apply(mut bytes: Vec<u8>, damage: &[Damage]) -> Vec<u8> {
    for damage in damage {
        if bytes.is_empty() {
            break;
        }
        let len = bytes.len();
        match damage {
            Damage::Set(at, byte) => bytes[position(*at, len)] = *byte,
            Damage::Flip(at, bits) => bytes[position(*at, len)] ^= bits,
            Damage::Cut(at) => bytes.truncate(at.index(len)),
            Damage::Insert(at, more) => {
                let at = position(*at, len);
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Remove(at) => drop(bytes.remove(position(*at, len))),
            Damage::Repeat(from, to) => {
                let piece = bytes[from.index(len)..].to_vec();
                bytes.truncate(to.index(len));
                bytes.extend(piece);
            }
        }
    }
    bytes
}

fn mls_messages() -> Vec<Vec<u8>> {
    GROUP_MESSAGES.iter().chain(OTHER_MESSAGES.iter()).map(|sample| sample.bytes.clone()).collect()
}

fn key_packages() -> Vec<Vec<u8>> {
    KEY_PACKAGES.iter().map(|(package, _)| package.clone()).collect()
}

/// What the reference does with `GroupMessage.data`: group id and flag, if it takes the message.
fn openmls_frame(data: &[u8]) -> Option<(Vec<u8>, bool)> {
    let message = MlsMessageIn::tls_deserialize(&mut &data[..]).ok()?;
    // openmls is built without the extensions draft here, and takes its proposals for private ones of another shape.
    let text = format!("{message:?}");
    let draft = ["proposal_type: 8,", "proposal_type: 9,"].iter().any(|proposal| text.contains(proposal));
    let message = ProtocolMessage::try_from(message).ok()?;
    let group_id = message.group_id().to_vec();
    (group_id.len() == 16 && !draft).then(|| (group_id, message.is_handshake_message()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// API-230: what an openmls client can read is never refused, and is routed as that client routes it.
    #[test]
    fn api_230_a_message_that_openmls_reads_is_admitted(
        message in select(mls_messages()),
        damage in damage(),
    ) {
        let data = apply(message, &damage);
        let verdict = admit(&group_message(data.clone()));
        if let Some((group_id, flag)) = openmls_frame(&data) {
            let admitted = verdict.expect("openmls reads it");
            prop_assert_eq!(admitted.topic.identifier(), group_id);
            prop_assert_eq!(admitted.is_commit_or_proposal, flag);
        } else if data.starts_with(&[0, 1, 0, 2]) {
            // A PrivateMessage has nothing that the two could see differently.
            prop_assert!(verdict.is_err());
        }
    }

    #[test]
    fn api_230_a_key_package_that_openmls_reads_is_admitted(
        package in select(key_packages()),
        damage in damage(),
    ) {
        let bytes = apply(package, &damage);
        let verdict = admit(&key_package(bytes.clone()));
        if let Ok(package) = KeyPackageIn::tls_deserialize_exact(&bytes) {
            let key = package.unverified_credential().signature_key;
            match verdict {
                Ok(admitted) => prop_assert_eq!(admitted.topic.identifier(), key.as_slice()),
                Err(rejection) => prop_assert_ne!(key.as_slice().len(), 32, "{}", rejection),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The fuzz targets, on real objects that were damaged.
    #[test]
    fn fuzz_targets_hold_on_damaged_objects(
        message in select([mls_messages(), key_packages()].concat()),
        damage in damage(),
    ) {
        let bytes = apply(message, &damage);
        targets::group_message(&bytes);
        targets::key_package(&bytes);
    }

    /// The fuzz targets, on anything.
    #[test]
    fn fuzz_targets_hold_on_any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        for target in targets::ALL {
            target(&bytes);
        }
    }

    /// The fuzz targets of protobuf messages, on bytes that look like protobuf.
    #[test]
    fn fuzz_targets_hold_on_protobuf(bytes in protobuf()) {
        for target in targets::ALL {
            target(&bytes);
        }
    }
}

/// Nested fields with the numbers and wire types that envelopes use, and faults in between.
fn protobuf() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        4 => vec(any::<u8>(), 0..4),
        4 => (0..6_u8, any::<u8>()).prop_map(|(number, value)| vec![number << 3, value & 0x7f]),
        2 => Just(vec![0x0a, 16].into_iter().chain([7; 16]).collect()),
        2 => Just(vec![0x0a, 32].into_iter().chain([7; 32]).collect()),
        2 => Just(vec![0x1a, 64].into_iter().chain([b'a'; 64]).collect()),
        1 => Just(vec![0x0a, 9]),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        (1..6_u8, vec(inner, 0..4)).prop_map(|(number, parts)| {
            let content = parts.concat();
            let mut field = vec![number << 3 | 2];
            prost::encode_length_delimiter(content.len(), &mut field).expect("a vector grows");
            [field, content].concat()
        })
    })
}
