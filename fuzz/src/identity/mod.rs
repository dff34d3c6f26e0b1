//! One function per decoder of identity updates, and one that drives the association rules against a model of them.
//!
//! `fuzz_targets/` runs them under libFuzzer; the tests of `sealog-admission` include this file and run them on
//! generated input, on the stable toolchain.
#![allow(unreachable_pub)] // public in one crate, private in the other

mod associations;
#[path = "../../../admission/tests/support/signers.rs"]
mod signers;

use base16ct::lower;
use prost::Message;
use sealog_admission::identity::{FoldError, Rules, State, decide, lookup_key, plan};
use sealog_proto::associations::{IdentifierKind, IdentityUpdate};
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::internal::IdentityFacts;

pub use associations::{Tally, associations};

/// Bounds that small inputs reach.
const RULES: Rules = Rules { max_signatures: 6, max_wallet_signatures: 2, handles: true };

/// An encoded `IdentityUpdate`: what is planned keeps to the bounds, and what is decided folds.
pub fn identity_plan(data: &[u8]) {
    let Ok(update) = IdentityUpdate::decode(data) else { return };
    let is_hex = update.inbox_id.len() == 64 && update.inbox_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let plan = match plan(&update, &RULES) {
        Ok(plan) => plan,
        Err(rejection) => {
            let reasons = [Reason::InvalidIdentityUpdate, Reason::InvalidSignature, Reason::TooLarge];
            assert_eq!(rejection.reason() == Reason::MalformedPayload, !is_hex);
            assert!(!is_hex || reasons.contains(&rejection.reason()));
            return;
        }
    };
    assert!(is_hex && !update.actions.is_empty());
    assert!(plan.signature_count() <= RULES.max_signatures);
    assert!(plan.questions().len() <= RULES.max_wallet_signatures);
    let mut state = State::default();
    if let Ok(decision) = decide(&plan, &vec![true; plan.questions().len()], &state) {
        assert_eq!(state.fold(&update.inbox_id, 1, &decision.facts), Ok(decision.effects));
        assert_eq!(state.seen().len(), plan.signature_count());
    }
}

/// Stored facts: of any bytes, those that fold are what this version writes.
pub fn identity_facts(data: &[u8]) {
    let inbox_id = "00".repeat(32);
    match State::default().fold(&inbox_id, 1, data) {
        // Nobody has the inbox whose id is zeros.
        Ok(_) => panic!("an inbox id that no founder has"),
        Err(FoldError::UnknownVersion(version)) => {
            assert_eq!(IdentityFacts::decode(data).map(|facts| facts.version), Ok(version));
            assert_ne!(version, 1);
        }
        Err(FoldError::Undecodable | FoldError::DoesNotApply(_)) => {}
    }
}

/// An entry of `GetInboxIds`: its first byte is the kind, the rest the text. A normal form is its own normal form.
pub fn lookup(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let kind = i32::from(*kind % 6);
    let Ok(found) = lookup_key(text, kind) else { return };
    if let Some(key) = found {
        let normal = match key.kind {
            IdentifierKind::Passkey => lower::encode_string(&key.key),
            IdentifierKind::Ethereum | IdentifierKind::Handle => String::from_utf8(key.key.to_vec()).unwrap(),
            IdentifierKind::Unspecified => panic!("never looked up"),
        };
        assert_eq!(lookup_key(&normal, key.kind.into()), Ok(Some(key)));
        assert_eq!(normal.to_ascii_lowercase(), normal);
    }
}
