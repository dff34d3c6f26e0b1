//! `judge --vectors FILE`: runs every case of a vector file through admission, and says where the two disagree.
//!
//! The file has the format of `admission/tests/vectors/identity.json`: groups of cases by name, of which any may be
//! missing or empty. Each mismatch is one line; the last line counts. Exit status: 0 without a mismatch, 1 with one or
//! with a group that is not known, 2 when there is nothing to judge.

mod vectors;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

const USAGE: &str = "usage: judge --vectors FILE";

fn main() -> ExitCode {
    let args: Vec<_> = env::args_os().skip(1).collect();
    if matches!(&args[..], [flag] if flag == "-h" || flag == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match read(&args) {
        Ok(file) => {
            let report = vectors::judge(&file);
            // Whoever reads it may stop early, for example `head`: the status still tells.
            let _ = write!(io::stdout(), "{report}");
            if report.mismatches.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn read(args: &[OsString]) -> Result<serde_json::Value, String> {
    let [flag, path] = args else { return Err(USAGE.to_owned()) };
    if flag != "--vectors" {
        return Err(USAGE.to_owned());
    }
    let path = Path::new(path);
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{} is no JSON: {error}", path.display()))
}
