//! What files `judge` takes, and how it ends.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::{file, leaves, logs, only, vectors};

/// One answer is kept for each question, so that a step before the last that asks it may have had another.
#[test]
fn a_step_that_contradicts_the_answers_of_wallets_is_noted() {
    let mut file = only("identity_logs");
    let create = file["identity_logs"][2]["steps"][0]["identity_update"].clone();
    for (says, expect) in [(("why", "not valid at block"), "reject"), (("rule", "IDENT-061"), "unavailable")]
    {
        file["identity_logs"] = json!([{ "steps": [
            { "identity_update": create, "expect": expect, says.0: says.1 },
            { "identity_update": create, "expect": "accept" },
        ] }]);
        let report = vectors::judge(&file);
        assert_eq!((report.mismatches, report.notes.len()), (Vec::<String>::new(), 1));
        // Nothing else makes the judge see it so.
        file["identity_logs"][0]["steps"][0].as_object_mut().unwrap().remove(says.0);
        assert!(!vectors::judge(&file).mismatches.is_empty());
    }
}

fn judge(args: &[impl AsRef<OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_judge")).args(args).output().unwrap()
}

fn judge_file(file: &Value) -> (Option<i32>, String) {
    let path = tempfile::NamedTempFile::new().unwrap();
    fs::write(path.path(), file.to_string()).unwrap();
    let output = judge(&["--vectors", path.path().to_str().unwrap()]);
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_binary_counts_and_its_status_tells() {
    let (status, text) = judge_file(&file());
    assert_eq!((status, text.lines().last()), (Some(0), Some("226 cases, 0 mismatches")));

    // A group may be missing.
    let mut file = only("inbox_ids");
    let (status, text) = judge_file(&file);
    assert_eq!((status, text.lines().last()), (Some(0), Some("24 cases, 0 mismatches")));

    file["inbox_ids"][3]["inbox_id"] = json!("00");
    let (status, text) = judge_file(&file);
    assert_eq!((status, text.lines().last()), (Some(1), Some("24 cases, 1 mismatches")));
    assert!(text.starts_with("mismatch  inbox_ids #3: inbox_id: expected \"00\""), "{text}");

    // A group that is not known would go unjudged, and so would a list of cases.
    let (status, text) = judge_file(&json!({ "inbox_id": [] }));
    assert_eq!((status, text.lines().next()), (Some(1), Some("mismatch  inbox_id: no such group is known")));
    let mut file = only("passkey");
    file["passkey"]["more_cases"] = json!([{}]);
    assert_eq!(judge_file(&file).0, Some(1));
    for no_cases in [
        json!([]),
        json!({ "inbox_ids": {} }),
        json!({ "welcomes": [] }),
        json!({ "welcomes": { "cases": {} } }),
    ] {
        assert_eq!(judge_file(&no_cases).0, Some(1), "{no_cases}");
    }
}

#[track_caller]
fn judged(file: &Value, cases: usize) {
    let report = vectors::judge(file);
    assert_eq!((report.mismatches, report.cases), (Vec::<String>::new(), cases));
}

#[test]
fn a_file_may_hold_a_part_of_the_cases() {
    judged(
        &json!({ "inbox_ids": [], "identity_logs": [], "welcomes": {}, "commit_log": { "cases": [] } }),
        0,
    );
    let mut file = file();
    file["erc_191"]["accepted_encodings_share_one_replay_key"] = json!([]);
    file["erc_191"].as_object_mut().unwrap().remove("high_s_without_flipping_parity");
    file["installation_key"].as_object_mut().unwrap().remove("signature");
    let rejected = |group: &str| file[group]["rejected"].as_array().unwrap().len();
    // The text that they are over is one of the texts that this repository has.
    let part = json!({ "erc_191": file["erc_191"], "installation_key": file["installation_key"] });
    judged(&part, rejected("erc_191") + rejected("installation_key"));
    let mut part = part;
    part["erc_191"]["text_of"] = json!("a text that nobody has");
    assert_eq!(vectors::judge(&part).mismatches.len(), rejected("erc_191"));
}

/// Only inputs, the verdict, and the first result of a case have to be stated.
#[test]
fn what_a_case_does_not_state_is_not_compared() {
    let removed = |group: &str, names: &[&str]| {
        let mut file = only(group);
        let mut found = Vec::new();
        leaves(&file[group], &Vec::new(), &|_| true, &mut found);
        for path in found {
            let Some(at) = path.iter().position(|name| names.contains(&name.as_str())) else { continue };
            let parent = format!("/{group}/{}", path[..at].join("/"));
            let parent = file.pointer_mut(parent.trim_end_matches('/')).unwrap();
            parent.as_object_mut().unwrap().remove(&path[at]);
        }
        assert_ne!(file[group], only(group)[group]);
        judged(&file, vectors::judge(&only(group)).cases);
    };
    removed("inbox_ids", &["hash_input", "identifier"]);
    removed("signature_texts", &["text_utf8_hex", "eip191_hash", "sha512", "challenge_b64url"]);
    removed("erc_191", &["signer", "signer_key", "replay_key", "name"]);
    removed(
        "installation_key",
        &["context_utf8", "context_hex", "dom2_hex", "prehash_sha512", "replay_key", "name"],
    );
    removed("passkey", &["signer_key", "replay_key", "name"]);
    removed("identity_logs", &["state_after", "reason"]);
    for field in ["inbox_id", "recovery", "recovery_chain", "members", "seen_replay_keys"] {
        removed("identity_logs", &[field]);
    }
    removed("client_envelopes", &["topic", "message_hash_sha256", "note"]);
    for group in ["key_packages", "group_messages", "welcomes", "commit_log"] {
        removed(group, &["topic", "reason", "is_commit_or_proposal", "name"]);
    }
    // An input, or a verdict, is needed.
    for (group, field) in [("passkey", "signature"), ("welcomes", "expect"), ("key_packages", "now_seconds")]
    {
        let mut file = only(group);
        file[group]["cases"][0].as_object_mut().unwrap().remove(field);
        let mismatches = vectors::judge(&file).mismatches;
        assert!(mismatches.len() == 1 && mismatches[0].contains(field), "{mismatches:?}");
    }
}

#[test]
fn values_may_be_spelled_otherwise() {
    let mut file = only("key_packages");
    let case = &mut file["key_packages"]["cases"][0];
    for field in ["key_package_tls_serialized", "topic"] {
        case[field] = json!(format!("0x{}", case[field].as_str().unwrap().to_uppercase()));
    }
    case["now_seconds"] = json!(case["now_seconds"].as_u64().unwrap().to_string());
    case["a field that came later"] = json!(["with", "a", { "list": [] }]);
    judged(&file, vectors::judge(&only("key_packages")).cases);
    // What is no number of 64 bits is said to be none.
    let over = serde_json::from_str("18446744073709551616").unwrap();
    for number in [over, json!("18446744073709551616"), json!(-1), json!(1.5), json!("0x1"), json!(null)] {
        file["key_packages"]["cases"][0]["now_seconds"] = number;
        let mismatches = vectors::judge(&file).mismatches;
        assert!(mismatches.len() == 1 && mismatches[0].contains("now_seconds"), "{mismatches:?}");
    }
}

/// The publish that carries them is refused before anything else is looked at.
#[test]
fn bytes_that_are_no_message_are_malformed() {
    let case = |field: &str, bytes: &str, reason: &str| json!({ "expect": "reject", "reason": reason, field: bytes });
    let file = |reason: &str| {
        json!({
            "welcomes": { "cases": [case("welcome_message", "ff", reason)] },
            "commit_log": { "cases": [case("commit_log_entry", "0a05", reason)] },
            "client_envelopes": { "cases": [case("wire", "2202", reason), case("wire", "", reason)] },
            // An inbox id that is no UTF-8.
            "identity_logs": [{ "steps": [case("identity_update", "1a01ff", reason)] }],
        })
    };
    judged(&file("REASON_MALFORMED_PAYLOAD"), 5);
    assert_eq!(vectors::judge(&file("REASON_INVALID_IDENTITY_UPDATE")).mismatches.len(), 5);
}

/// Whatever stands anywhere in the file, it is a mismatch or it is not, and never the end of the judge.
#[test]
fn a_value_of_another_type_is_no_panic() {
    for group in file().as_object().unwrap().keys() {
        // Of the logs a short one.
        let file = if group == "identity_logs" { logs().nth(1).unwrap() } else { only(group) };
        let mut found = Vec::new();
        leaves(&file[group], &Vec::new(), &|_| true, &mut found);
        let paths = found.iter().flat_map(|path| (0..=path.len()).map(|end| path[..end].to_vec()));
        // Every place would take minutes; the places of one kind have the same depth and name.
        let mut places = BTreeMap::new();
        for path in paths {
            places.entry((path.len(), path.last().cloned())).or_insert(path);
        }
        for path in places.values() {
            for value in [json!(null), json!([1]), json!({ "": 0 }), json!("z"), json!(-1.5e300)] {
                let mut file = file.clone();
                let pointer = format!("/{group}/{}", path.join("/"));
                *file.pointer_mut(pointer.trim_end_matches('/')).unwrap() = value;
                vectors::judge(&file);
            }
        }
    }
}

#[test]
fn a_file_that_is_no_json_is_refused_with_its_place() {
    for (text, place) in
        [("", "line 1"), ("{", "line 1"), ("{\n\"inbox_ids\": [}", "line 2"), ("\u{ff}", "line 1")]
    {
        let path = tempfile::NamedTempFile::new().unwrap();
        fs::write(path.path(), text).unwrap();
        let output = judge(&["--vectors", path.path().to_str().unwrap()]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(error.starts_with("error: ") && error.contains(place), "{error}");
    }
}

/// Names of files are bytes.
#[cfg(unix)]
#[test]
fn a_path_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt as _;

    let output = judge(&[OsStr::new("--vectors"), OsStr::from_bytes(b"\xff")]);
    assert_eq!(output.status.code(), Some(2), "not a panic");
    assert!(output.stderr.starts_with(b"error: "));
}

#[test]
fn the_binary_says_what_it_needs() {
    for args in [&[][..], &["--vectors"], &["--vector", "file"], &["--vectors", "a file that is not there"]] {
        let output = judge(args);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: "));
    }
    let output = judge(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("usage: judge --vectors FILE"));
}
