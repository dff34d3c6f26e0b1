//! The text that every signature of an update is over (IDENT-020).

use std::fmt::Write as _;

use prost_types::Timestamp;

use super::Identifier;
use super::structure::Action;

/// The text of an update, from its fields as carried and its actions in order. Nothing in it is escaped.
pub fn signature_text(inbox_id: &str, client_timestamp_ns: u64, actions: &[Action]) -> String {
    let time = signed_time(client_timestamp_ns);
    let mut text = format!("XMTP : Authenticate to inbox\n\nInbox ID: {inbox_id}\nCurrent time: {time}\n\n");
    for action in actions {
        let (phrase, label, named) = lines(action);
        writeln!(text, "- {phrase}\n  ({label}: {named})").expect("a String grows");
    }
    text.push_str("\nFor more info: https://xmtp.org/signatures");
    text
}

/// To the second, in UTC. Times above `i64::MAX` count as negative, so they print as times before 1970.
fn signed_time(client_timestamp_ns: u64) -> Timestamp {
    const NANOS_PER_SECOND: i64 = 1_000_000_000;
    Timestamp { seconds: client_timestamp_ns.cast_signed().div_euclid(NANOS_PER_SECOND), nanos: 0 }
}

fn lines(action: &Action) -> (&'static str, &'static str, std::borrow::Cow<'_, str>) {
    use Identifier::{Ethereum, Installation, Passkey};
    let (phrase, label, named) = match action {
        Action::Create { founder, .. } => ("Create inbox", "Owner", founder),
        Action::Add { member: member @ Installation(_), .. } => {
            ("Grant messaging access to app", "ID", member)
        }
        Action::Add { member: member @ Ethereum(_), .. } => ("Link address to inbox", "Address", member),
        Action::Add { member: member @ Passkey(_), .. } => ("Link passkey to inbox", "Passkey", member),
        Action::Revoke { member: member @ Installation(_), .. } => {
            ("Revoke messaging access from app", "ID", member)
        }
        Action::Revoke { member: member @ Ethereum(_), .. } => {
            ("Unlink address from inbox", "Address", member)
        }
        Action::Revoke { member: member @ Passkey(_), .. } => {
            ("Unlink passkey from inbox", "Passkey", member)
        }
        Action::ChangeRecovery { recovery, .. } => ("Change inbox recovery address", "Address", recovery),
        Action::Claim { handle, .. } => return ("Claim handle", "Handle", handle.as_str().into()),
    };
    (phrase, label, named.text())
}
