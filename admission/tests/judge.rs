//! `judge` and the shared vectors: objects and logs made by other tools, with the verdict that each must get, and proof
//! that the judge looks at every one of them.

#[path = "judge/files.rs"]
mod files;
#[path = "../src/bin/judge/vectors/mod.rs"]
mod vectors;

use serde_json::{Value, json};

fn file() -> Value {
    serde_json::from_str(include_str!("vectors/identity.json")).unwrap()
}

/// The file with one group, and what that group refers to.
fn only(group: &str) -> Value {
    let mut file = file();
    let kept = [group, "keys", "signature_texts", "chain_answers"];
    file.as_object_mut().unwrap().retain(|name, _| kept.contains(&name.as_str()));
    file
}

#[test]
fn api_230_ident_001_to_062_every_vector_gets_its_verdict() {
    let report = vectors::judge(&file());
    assert_eq!(report.mismatches, Vec::<String>::new());
    assert_eq!(report.cases, 226);
}

/// Where a value stands in the file: the members and places that lead to it.
type Path = Vec<String>;

/// Every value below `value` whose path `chosen` takes.
fn leaves(value: &Value, at: &Path, chosen: &dyn Fn(&Path) -> bool, found: &mut Vec<Path>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, child)| (name.clone(), child)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, child)| (at.to_string(), child)).collect(),
        _ => {
            if chosen(at) {
                found.push(at.clone());
            }
            return;
        }
    };
    for (name, child) in children {
        leaves(child, &[at.as_slice(), &[name]].concat(), chosen, found);
    }
}

/// Another value of the same type, near enough that only a judge who looks notices.
fn changed(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) => json!(number.as_u64().unwrap() + 1),
        Value::Null => json!(1),
        Value::String(text) => match text.as_str() {
            "accept" => json!("reject"),
            "reject" | "unavailable" => json!("accept"),
            "REASON_INVALID_SIGNATURE" => json!("REASON_INVALID_IDENTITY_UPDATE"),
            text if text.starts_with("REASON_") => json!("REASON_INVALID_SIGNATURE"),
            // The last character, which is a digit in everything that is not prose.
            text => {
                let mut text = text.to_owned();
                let last = text.pop();
                text.push(if last == Some('1') { '2' } else { '1' });
                json!(text)
            }
        },
        Value::Array(_) | Value::Object(_) => unreachable!("leaves have no children"),
    }
}

/// Changes each chosen value of the group, alone, and wants a mismatch each time.
#[track_caller]
fn every_change_is_noticed(group: &str, chosen: impl Fn(&Path) -> bool) {
    every_change_in_is_noticed(&only(group), group, chosen);
}

#[track_caller]
fn every_change_in_is_noticed(file: &Value, group: &str, chosen: impl Fn(&Path) -> bool) {
    assert_eq!(vectors::judge(file).mismatches, Vec::<String>::new());
    let mut found = Vec::new();
    leaves(&file[group], &Vec::new(), &chosen, &mut found);
    assert!(!found.is_empty());
    for path in found {
        let mut file = file.clone();
        let pointer = format!("/{group}/{}", path.join("/"));
        let value = file.pointer_mut(&pointer).unwrap();
        *value = changed(value);
        assert!(!vectors::judge(&file).mismatches.is_empty(), "nobody looks at {pointer}");
    }
}

fn ends_with(names: &'static [&'static str]) -> impl Fn(&Path) -> bool {
    move |path| path.last().is_some_and(|last| names.contains(&last.as_str()))
}

#[test]
fn inbox_ids_are_judged() {
    every_change_is_noticed(
        "inbox_ids",
        ends_with(&["kind", "identifier_text", "nonce", "hash_input", "inbox_id"]),
    );
}

#[test]
fn signature_texts_are_judged() {
    let texts = ["text", "text_utf8_hex", "eip191_hash", "sha512", "challenge_b64url"];
    every_change_is_noticed("signature_texts", move |path| {
        texts.contains(&path[1].as_str()) || ["inbox_id", "actions"].contains(&path[1].as_str())
    });
}

#[test]
fn erc_191_is_judged() {
    every_change_is_noticed(
        "erc_191",
        ends_with(&["text_of", "signer_key", "expect", "signer", "replay_key", "recovered"]),
    );
}

#[test]
fn installation_key_is_judged() {
    every_change_is_noticed("installation_key", |path| path.len() == 1 || path.last().unwrap() == "expect");
}

#[test]
fn passkey_is_judged() {
    every_change_is_noticed("passkey", ends_with(&["text_of", "expect", "signer_key", "replay_key"]));
}

#[test]
fn the_retired_signature_is_judged() {
    // Whatever stands in the retired field is unread; only that it is there can be looked at.
    let mut file = only("retired_delegated_signature");
    assert_eq!(vectors::judge(&file).cases, 10);
    file["retired_delegated_signature"]["signature_field_4_body"] = json!(null);
    assert_eq!(vectors::judge(&file).mismatches.len(), 1);
}

/// The file with each of its logs alone, which are independent of each other.
fn logs() -> impl Iterator<Item = Value> {
    let file = only("identity_logs");
    let logs = file["identity_logs"].as_array().unwrap().clone();
    logs.into_iter().map(move |log| {
        let mut file = file.clone();
        file["identity_logs"] = json!([log]);
        file
    })
}

#[test]
fn identity_logs_are_judged() {
    for log in logs() {
        every_change_in_is_noticed(&log, "identity_logs", ends_with(&["expect", "reason"]));
    }
}

/// The state after the last accepted step of a log holds what every step before it left behind.
#[test]
fn states_are_judged() {
    for log in logs() {
        let steps = log["identity_logs"][0]["steps"].as_array().unwrap();
        if let Some(last) = steps.iter().rposition(|step| step["expect"] == "accept") {
            let state = [last.to_string(), "state_after".to_owned()];
            every_change_in_is_noticed(&log, "identity_logs", |path| path[2..].starts_with(&state));
        }
    }
}

#[test]
fn the_answers_of_wallets_decide() {
    let mut file = only("identity_logs");
    let answers = file["chain_answers"]["answers"].as_object().unwrap().clone();
    // One entry belongs to a wallet that another chain's record refuses anyway.
    for key in answers.keys() {
        file["chain_answers"]["answers"] = json!(answers);
        file["chain_answers"]["answers"][key] = json!(false);
        assert!(!vectors::judge(&file).mismatches.is_empty(), "nobody asks {key}");
        file["chain_answers"]["answers"].as_object_mut().unwrap().remove(key);
        assert!(!vectors::judge(&file).mismatches.is_empty(), "nobody asks {key}");
    }
}

#[test]
fn block_freshness_is_judged() {
    every_change_is_noticed("block_freshness", |path| path.last().unwrap() == "expect");
    // The boundary cases stand exactly on the boundary.
    every_change_is_noticed("block_freshness", |path| path[0] == "head");
}

#[test]
fn envelopes_are_judged() {
    for group in ["key_packages", "group_messages", "welcomes", "commit_log", "client_envelopes"] {
        const JUDGED: &[&str] =
            &["expect", "reason", "topic", "is_commit_or_proposal", "stored", "message_hash_sha256"];
        every_change_is_noticed(group, ends_with(JUDGED));
    }
}

/// A changed byte anywhere in what was signed makes an accepted case a mismatch.
#[test]
fn signed_bytes_are_judged() {
    every_change_is_noticed("erc_191", |path| {
        path[0].starts_with("accepted") && path.last().unwrap() == "signature"
    });
    every_change_is_noticed("passkey", |path| {
        let signed = ["authenticator_data", "client_data_json", "signature", "public_key"];
        let [_, at, field] = path.as_slice() else { return false };
        // The first four are accepted.
        ["0", "1", "2", "3"].contains(&at.as_str()) && signed.contains(&field.as_str())
    });
}
