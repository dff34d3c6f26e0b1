//! What `GetInboxIds` asks by (API-270, API-299, SEC-023).

use sealog_admission::identity::{LookupError, LookupKey, lookup_key};
use sealog_proto::associations::IdentifierKind;

use crate::Inbox;
use crate::signers::{Act, Signer};

fn key(identifier: &str, kind: IdentifierKind) -> Option<LookupKey> {
    lookup_key(identifier, kind.into()).expect("a kind that can be looked up")
}

#[test]
fn sec_023_a_lookup_finds_what_an_update_associates() {
    let (wallet, passkey) = (Signer::wallet(1), Signer::passkey(1));
    let mut inbox = Inbox::created_by(&wallet);
    let change = inbox.accepts(&[Act::add(&passkey, &wallet)]).changes.remove(0);
    let hex = passkey.identifier().text().into_owned();
    for spelled in [hex.clone(), hex.to_uppercase(), format!("0x{hex}")] {
        assert_eq!(key(&spelled, IdentifierKind::Passkey).as_ref(), Some(&change.key), "{spelled}");
    }
    let second = Signer::wallet(2);
    let change = inbox.accepts(&[Act::add(&second, &wallet)]).changes.remove(0);
    let address = second.identifier().text().into_owned();
    for spelled in [address.clone(), address.to_uppercase(), address.to_uppercase().replacen('X', "x", 1)] {
        assert_eq!(key(&spelled, IdentifierKind::Ethereum).as_ref(), Some(&change.key), "{spelled}");
        assert_eq!(key(&spelled, IdentifierKind::Unspecified).as_ref(), Some(&change.key), "{spelled}");
    }
}

#[test]
fn api_270_what_cannot_be_associated_is_found_nowhere() {
    for address in ["", "0x", "alice", &"0".repeat(42), &format!("0x{}", "g".repeat(40))] {
        assert_eq!(key(address, IdentifierKind::Ethereum), None, "{address}");
    }
    for passkey in ["0", "xyz", "0x0x00"] {
        assert_eq!(key(passkey, IdentifierKind::Passkey), None, "{passkey}");
    }
}

#[test]
fn api_299_a_handle_is_found_in_any_case_and_must_be_one() {
    let found = key("aLiCe.42", IdentifierKind::Handle).unwrap();
    assert_eq!((found.kind, &found.key[..]), (IdentifierKind::Handle, &b"alice.42"[..]));
    for handle in ["", "1alice", "al ice", "alice.1", "ÄLICE"] {
        assert_eq!(lookup_key(handle, IdentifierKind::Handle.into()), Err(LookupError::Handle), "{handle}");
    }
}

#[test]
fn an_unknown_kind_reads_as_the_first() {
    let address = format!("0x{}", "Ab".repeat(20));
    for kind in [4, -1, i32::MAX] {
        assert_eq!(
            lookup_key(&address, kind),
            lookup_key(&address, IdentifierKind::Ethereum.into()),
            "{kind}"
        );
    }
}
