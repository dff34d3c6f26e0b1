//! Replays one seed of the stream simulator, or searches many.
//!
//! `cargo run -p sealog-simulator --bin streams -- FIRST [COUNT [MUTATION]]`; one seed comes with its trace.

use std::process::ExitCode;

use sealog_simulator::streams::{StreamMutation, StreamReport, run};

fn main() -> ExitCode {
    let (first, count, mutation) = match arguments() {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!("{what}\nusage: streams FIRST [COUNT [MUTATION]]");
            return ExitCode::FAILURE;
        }
    };
    let mut sum = StreamReport::default();
    let mut broken = false;
    for seed in first..first + count {
        let report = run(seed, mutation, count == 1);
        print!("{}", report.trace);
        if let Some(what) = &report.broken {
            println!("seed {seed} is broken: {what}");
            broken = true;
        }
        sum.add(&report);
    }
    println!("{sum}");
    if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn arguments() -> Result<(u64, u64, Option<StreamMutation>), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| match arguments.get(at) {
        Some(text) => text.parse().map_err(|_| format!("{text} is no number")),
        None => Ok(1),
    };
    let mutation = match arguments.get(2) {
        Some(name) => {
            let known = StreamMutation::ALL.into_iter().find(|it| format!("{it:?}") == *name);
            Some(known.ok_or_else(|| format!("no mutation is called {name}"))?)
        }
        None => None,
    };
    Ok((number(0)?, number(1)?, mutation))
}
