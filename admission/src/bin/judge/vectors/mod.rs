//! The groups of a vector file, and what each is judged by.
#![allow(unreachable_pub)] // the binary is one user of this module, a test is the other

mod case;
mod envelopes;
mod identity;
mod logs;

use std::fmt;

use serde_json::Value;

use case::Case;

/// What came of a file.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases that were judged.
    pub cases: usize,
    /// Where expectation and verdict differ, or a case cannot be read; one line each.
    pub mismatches: Vec<String>,
    /// Where the file contradicts itself, and how it was read.
    pub notes: Vec<String>,
}

impl Report {
    /// Counts a case, and what is wrong with it.
    fn add(&mut self, name: impl fmt::Display, verdict: Result<(), String>) {
        self.cases += 1;
        if let Err(mismatch) = verdict {
            self.mismatches.push(format!("{name}: {mismatch}"));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.notes.iter().try_for_each(|note| writeln!(f, "note      {note}"))?;
        self.mismatches.iter().try_for_each(|mismatch| writeln!(f, "mismatch  {mismatch}"))?;
        writeln!(f, "{} cases, {} mismatches", self.cases, self.mismatches.len())
    }
}

/// Judges every group of the file.
pub fn judge(file: &Value) -> Report {
    let mut report = Report::default();
    let Some(groups) = file.as_object() else {
        report.mismatches.push("the file is no JSON object of groups".to_owned());
        return report;
    };
    for (name, group) in groups {
        let group = Case::new(name, group);
        match name.as_str() {
            // What the file is, and what other groups refer to.
            "about" | "keys" | "chain_answers" => {}
            "inbox_ids" => identity::inbox_ids(&group, &mut report),
            "signature_texts" => identity::signature_texts(&group, &mut report),
            "erc_191" => identity::erc_191(&group, file, &mut report),
            "installation_key" => identity::installation_key(&group, file, &mut report),
            "passkey" => identity::passkey(&group, file, &mut report),
            "retired_delegated_signature" => identity::retired_delegated_signature(&group, &mut report),
            "identity_logs" => logs::identity_logs(&group, &file["chain_answers"]["answers"], &mut report),
            "block_freshness" => logs::block_freshness(&group, &mut report),
            "key_packages" => envelopes::key_packages(&group, &mut report),
            "group_messages" => envelopes::group_messages(&group, &mut report),
            "welcomes" => envelopes::welcomes(&group, &mut report),
            "commit_log" => envelopes::commit_log(&group, &mut report),
            "client_envelopes" => envelopes::client_envelopes(&group, &mut report),
            _ => report.mismatches.push(format!("{name}: no such group is known")),
        }
    }
    report
}
