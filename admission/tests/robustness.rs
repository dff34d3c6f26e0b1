//! No input makes admission panic, and none makes it disagree with the MLS library that clients use.

mod support;

#[path = "../../fuzz/src/admission.rs"]
mod targets;

use openmls::prelude::tls_codec::Deserialize;
use openmls::prelude::{MlsMessageIn, ProtocolMessage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sealog_admission::admit;
use support::damage::{apply, damage};
use support::group_message;
use support::mls::{GROUP_MESSAGES, KEY_PACKAGES, NOW, OTHER_MESSAGES};

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
        targets::key_package_check(&[&NOW.to_be_bytes(), &bytes[..]].concat());
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
