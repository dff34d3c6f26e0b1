//! Replays one seed, or searches many.
//!
//! `cargo run -p sealog-simulator -- --seed N [--count N] [--trace] [--mutation NAME]`

use std::process::ExitCode;

use sealog_simulator::{Mutation, run};

const USAGE: &str = "usage: sealog-simulator --seed N [--count N] [--trace] [--mutation NAME]";

#[derive(Debug, Default)]
struct Arguments {
    seed: u64,
    count: u64,
    tracing: bool,
    mutation: Option<Mutation>,
}

fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    let mut broken = false;
    for seed in arguments.seed..arguments.seed + arguments.count {
        let report = run(seed, arguments.mutation, arguments.tracing);
        print!("{}", report.trace);
        if arguments.count == 1 {
            println!("{report}");
        }
        if let Some(what) = report.broken {
            println!("seed {seed} is broken: {what}");
            broken = true;
        }
    }
    if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

impl Arguments {
    fn read() -> Result<Self, String> {
        let mut read = Self { count: 1, ..Self::default() };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match name.as_str() {
                "--trace" => read.tracing = true,
                "--seed" => read.seed = number(&value()?)?,
                "--count" => read.count = number(&value()?)?,
                "--mutation" => {
                    let name = value()?;
                    let known = Mutation::ALL.into_iter().find(|it| format!("{it:?}") == name);
                    read.mutation = Some(known.ok_or_else(|| format!("no mutation is called {name}"))?);
                }
                other => return Err(format!("{other} is not understood")),
            }
        }
        Ok(read)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}
