//! No input makes identity admission panic, and none makes it disagree with a plain model of its rules.

#[path = "../../fuzz/src/identity/mod.rs"]
mod targets;

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use prost::Message;
use sealog_admission::identity::{Rules, State, decide, plan};
use sealog_proto::associations::IdentityUpdate;
use sealog_proto::internal::IdentityFacts;
use serde_json::Value;

/// The updates of the shared vectors.
static UPDATES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let vectors: Value = serde_json::from_str(include_str!("vectors/identity.json")).unwrap();
    let logs = vectors["identity_logs"].as_array().unwrap();
    let steps = logs.iter().flat_map(|log| log["steps"].as_array().unwrap());
    steps
        .map(|step| base16ct::mixed::decode_vec(step["identity_update"].as_str().unwrap()).unwrap())
        .collect()
});

/// The facts of those that an empty log takes.
static FACTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let decided = UPDATES.iter().filter_map(|bytes| {
        let plan = plan(&IdentityUpdate::decode(bytes.as_slice()).unwrap(), &Rules::STORED).ok()?;
        Some(decide(&plan, &vec![true; plan.questions().len()], &State::default()).ok()?.facts.to_vec())
    });
    decided.collect()
});

fn damaged(mut bytes: Vec<u8>, damage: &[(Index, u8)]) -> Vec<u8> {
    for (at, byte) in damage {
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn decoders_hold_on_damaged_objects(at in any::<Index>(), damage in vec(any::<(Index, u8)>(), 0..4)) {
        targets::identity_plan(&damaged(at.get(&UPDATES).clone(), &damage));
        targets::identity_facts(&damaged(at.get(&FACTS).clone(), &damage));
    }

    #[test]
    fn decoders_hold_on_any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        targets::identity_plan(&bytes);
        targets::identity_facts(&bytes);
        targets::lookup(&bytes);
    }

    #[test]
    fn sec_023_a_normal_form_is_its_own(kind in 0..6_u8, text in "(0[xX])?[0-9a-fA-F]{0,66}|[a-zA-Z_][a-zA-Z0-9_]{0,33}(\\.[0-9]{0,10})?") {
        targets::lookup(&[&[kind], text.as_bytes()].concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    /// IDENT-002 to IDENT-050, API-270: the same verdicts, states and effects as the model, update by update.
    #[test]
    fn ident_011_to_050_random_logs_agree_with_the_model(bytes in vec(any::<u8>(), 0..120)) {
        targets::associations(&bytes);
    }
}

/// The runs above are worth something: updates of every kind are accepted in them, and refused.
#[test]
fn random_logs_go_deep() {
    let mut tally = targets::Tally::default();
    let mut random = 1_u64;
    for _ in 0..50 {
        let mut byte = || {
            // The generator of MMIX.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random.to_be_bytes()[0]
        };
        let bytes: Vec<u8> = (0..120).map(|_| byte()).collect();
        let run = targets::associations(&bytes);
        tally.accepted += run.accepted;
        tally.refused += run.refused;
    }
    assert!(tally.accepted > 300 && tally.refused > 300, "{tally:?}");
}

#[test]
fn facts_say_what_was_signed_and_no_more() {
    for facts in FACTS.iter() {
        let decoded = IdentityFacts::decode(facts.as_slice()).unwrap();
        assert_eq!(decoded.encode_to_vec(), *facts);
        assert!(facts.len() < 700, "{}", facts.len());
    }
}
