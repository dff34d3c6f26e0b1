//! What streams cost: `scripts/bench --streams` runs this.
//!
//! Each measurement has a backend of its own: the release build in plain workerd, its databases below the directory that
//! is named. The clients run on the same machine, in this process; so the numbers are upper bounds.

#![allow(clippy::disallowed_methods)] // it measures real time
#![allow(clippy::cast_precision_loss)] // what is counted here is far below 2^52

mod idle;
mod latency;
mod memory;
mod samples;
mod update;
mod watchers;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use sealog_tests::backend::Var;
use sealog_tests::workerd::Workerd;
use tempfile::TempDir;

const USAGE: &str =
    "usage: stream_bench --state DIR [latency|memory|update|idle]...    (all, when none is named)";
const ALL: [&str; 4] = ["latency", "memory", "update", "idle"];

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stream_bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let (mut state, mut named) = (None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--state" => state = Some(PathBuf::from(arguments.next().context("--state needs a directory")?)),
            name if ALL.contains(&name) => named.push(argument),
            other => bail!("unknown argument `{other}`\n{USAGE}"),
        }
    }
    let state = state.context(USAGE)?;
    if named.is_empty() {
        named = ALL.map(str::to_owned).to_vec();
    }
    for name in named {
        match name.as_str() {
            "latency" => latency::measure(&state).await?,
            "memory" => memory::measure(&state).await?,
            "update" => update::measure(&state).await?,
            _ => idle::measure(&state).await?,
        }
    }
    Ok(())
}

/// A backend with fresh state below `state`, which goes with the second value.
async fn backend(state: &std::path::Path, vars: &[Var<'_>]) -> Result<(Workerd, TempDir)> {
    let fresh = tempfile::tempdir_in(state)?;
    let workerd = Workerd::start_on(fresh.path(), vars).await?;
    Ok((workerd, fresh))
}
