//! Handles: the grammar, who may claim, how often, and what the backend allows (API-297, API-298, IDENT-080).

use sealog_admission::Rejection;
use sealog_admission::identity::{IdentityRejection, MAX_CLAIMS, Rules, handle, plan, signature_text};
use sealog_proto::backend::publish_error::Reason;

use crate::signers::{Act, Signer, update};
use crate::{Inbox, RULES, refused};

const DAY_NS: u64 = 24 * 60 * 60 * 1_000_000_000;

#[test]
fn a_handle_is_a_name_and_at_most_a_discriminator() {
    for (handle, name) in [
        ("a", "a"),
        ("_", "_"),
        ("alice", "alice"),
        ("a1_b2", "a1_b2"),
        ("alice.01", "alice"),
        ("alice.123456789", "alice"),
        (&"x".repeat(32), &"x".repeat(32)),
    ] {
        assert_eq!(handle::name_part(handle), Some(name), "{handle}");
    }
    for handle in [
        "",
        ".12",
        "1a",
        "Alice",
        "al-ice",
        "al ice",
        "älice",
        "alice.",
        "alice.1",
        "alice.1234567890",
        "alice.1a",
        "alice.12.34",
        "alice..12",
        " alice",
        &"x".repeat(33),
    ] {
        assert_eq!(handle::name_part(handle), None, "{handle}");
        let wallet = Signer::wallet(1);
        let claim = update(&wallet.identifier().inbox_id(0), 0, &[Act::claim(handle, &wallet)]);
        refused(&claim, IdentityRejection::HandleGrammar);
    }
}

#[test]
fn api_297_reserved_and_short_name_parts_are_not_allowed() {
    let reason = |handle: &str, min| handle::check_name(handle, min).map_err(|refused| refused.reason());
    for name in ["admin", "support", "xmtp", "sealog", "me", "webmaster", "abuse"] {
        assert_eq!(reason(name, 1), Err(Reason::HandleNotAllowed), "{name}");
        assert_eq!(reason(&format!("{name}.42"), 1), Err(Reason::HandleNotAllowed), "{name}");
        assert_eq!(reason(&format!("{name}_"), 1), Ok(()), "{name}");
    }
    assert_eq!((reason("abc", 3), reason("abc.12", 3)), (Ok(()), Ok(())));
    // A discriminator makes a name no longer.
    assert_eq!(
        (reason("ab", 3), reason("ab.12345", 3)),
        (Err(Reason::HandleNotAllowed), Err(Reason::HandleNotAllowed))
    );
    assert_eq!(reason("Abc", 3), Err(Reason::InvalidIdentityUpdate));
}

#[test]
fn a_claim_is_signed_by_a_member_or_by_recovery() {
    let (wallet, recovery, stranger) = (Signer::wallet(1), Signer::wallet(2), Signer::wallet(3));
    let (installation, passkey) = (Signer::installation(1), Signer::passkey(1));
    let mut inbox = Inbox::created_by(&wallet);
    inbox.accepts(&[
        Act::add(&installation, &wallet),
        Act::add(&passkey, &wallet),
        Act::recover(&recovery, &wallet),
    ]);
    for by in [&wallet, &installation, &passkey, &recovery] {
        let effects = inbox.accepts(&[Act::claim("alice", by)]);
        assert_eq!((effects.claim.as_deref(), effects.changes.as_slice()), (Some("alice"), &[][..]));
    }
    inbox.refuses(&[Act::claim("alice", &stranger)], IdentityRejection::UnknownSigner);
    inbox.accepts(&[Act::revoke(&installation, &recovery)]);
    inbox.refuses(&[Act::claim("alice", &installation)], IdentityRejection::UnknownSigner);
    Inbox::of(&wallet).refuses(&[Act::claim("alice", &wallet)], IdentityRejection::NotCreated);
}

#[test]
fn the_text_of_a_claim_names_the_handle() {
    let claim = sealog_admission::identity::Action::Claim { handle: "alice.42".to_owned(), signature: 0 };
    let text = signature_text("00", 0, &[claim]);
    assert!(text.contains("\n\n- Claim handle\n  (Handle: alice.42)\n\nFor more info"), "{text}");
}

#[test]
fn one_update_claims_one_handle() {
    let wallet = Signer::wallet(1);
    let inbox_id = wallet.identifier().inbox_id(0);
    let claims = [Act::create(&wallet), Act::claim("alice", &wallet), Act::claim("alice", &wallet)];
    refused(&update(&inbox_id, 0, &claims), IdentityRejection::SecondClaim);
    let mut inbox = Inbox::of(&wallet);
    inbox.accepts(&claims[..2]);
    assert!(inbox.state.handles().eq(["alice"]));
}

#[test]
fn without_handles_a_claim_is_an_invalid_update() {
    let wallet = Signer::wallet(1);
    let claim =
        update(&wallet.identifier().inbox_id(0), 0, &[Act::create(&wallet), Act::claim("alice", &wallet)]);
    let off = Rules { handles: false, ..RULES };
    let refusal = plan(&claim, &off).map(drop).unwrap_err();
    assert_eq!(refusal, IdentityRejection::HandlesOff.into());
    assert_eq!(refusal.reason(), Reason::InvalidIdentityUpdate);
}

#[test]
fn ident_080_the_65th_claim_is_refused_also_of_a_handle_that_is_held() {
    let wallet = Signer::wallet(1);
    let mut inbox = Inbox::created_by(&wallet);
    for claim in 0..MAX_CLAIMS {
        inbox.accepts(&[Act::claim(["alice", "bob"][claim % 2], &wallet)]);
    }
    assert_eq!(inbox.state.handles().len(), 64);
    inbox.refuses(&[Act::claim("alice", &wallet)], IdentityRejection::TooManyClaims);
    assert_eq!(IdentityRejection::TooManyClaims.reason(), Reason::InvalidIdentityUpdate);
    inbox.accepts(&[Act::add(&Signer::wallet(2), &wallet)]);
}

#[test]
fn api_298_seven_days_lie_between_two_claims() {
    let wallet = Signer::wallet(1);
    let mut inbox = Inbox::created_by(&wallet);
    let too_soon: Result<(), Rejection> = Err(IdentityRejection::HandleTooSoon.into());
    assert_eq!(inbox.state.check_claim_time(0), Ok(()));
    inbox.server_ns = 100 * DAY_NS;
    inbox.accepts(&[Act::claim("alice", &wallet)]);
    assert_eq!(inbox.state.check_claim_time(100 * DAY_NS), too_soon);
    assert_eq!(inbox.state.check_claim_time(107 * DAY_NS - 1), too_soon);
    assert_eq!(inbox.state.check_claim_time(107 * DAY_NS), Ok(()));
    // A clock that is behind is no reason to allow it.
    assert_eq!(inbox.state.check_claim_time(0), too_soon);
    // Updates without a claim do not count.
    inbox.server_ns = 107 * DAY_NS;
    inbox.accepts(&[Act::add(&Signer::wallet(2), &wallet)]);
    assert_eq!(inbox.state.check_claim_time(107 * DAY_NS), Ok(()));
}
