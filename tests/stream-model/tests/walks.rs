//! Seeded random walks. A failing seed is printed; `SEALOG_MODEL_SEED=<seed>` makes it the only one, and its steps
//! are printed too.

use sealog_stream_model::Mutation;
use sealog_stream_model::walk::{Lost, Walked, walk};

/// Walks in the normal run: a few seconds.
const WALKS: u64 = 50_000;
/// Walks in the soak run: some minutes.
const SOAK_WALKS: u64 = 1_000_000;
/// What to set to replay one walk.
const SEED: &str = "SEALOG_MODEL_SEED";

#[test]
fn walks_are_clean() {
    match std::env::var(SEED) {
        Ok(seed) => replay(seed.parse().expect("SEALOG_MODEL_SEED is a number")),
        Err(_) => walk_all(0..WALKS),
    }
}

#[test]
#[ignore = "soak: a million walks"]
fn many_walks_are_clean() {
    walk_all(WALKS..SOAK_WALKS);
}

/// The walks are worth taking: they find these without being told where to look.
#[test]
fn walks_find_broken_rules() {
    let found_by_walks = [
        Mutation::TargetBeforeWatch,
        Mutation::KnownOverwrittenByTarget,
        Mutation::ControlUnordered,
        Mutation::UnwantedWithoutGeneration,
        Mutation::OverlappingPushDropped,
        Mutation::PageOfEarlierRegistration,
        Mutation::PageEndIsHead,
        Mutation::PushIntoHistory,
        Mutation::FairnessOnlyWhenPulling,
        Mutation::MarkWhenSent,
        Mutation::MarkWhileNotLoaded,
        Mutation::NoAlarm,
        Mutation::IncarnationNotStored,
        Mutation::AnswerToOlderSync,
        Mutation::PositionsLost,
    ];
    for mutation in found_by_walks {
        let seed = (0..WALKS).find(|seed| walk(*seed, Some(mutation)).is_err());
        println!("{mutation:?}: seed {seed:?}");
        assert!(seed.is_some(), "no walk finds {mutation:?}");
    }
}

fn walk_all(seeds: std::ops::Range<u64>) {
    let mut all = Walked::default();
    for seed in seeds.clone() {
        let walked = walk(seed, None).unwrap_or_else(|lost| {
            panic!("seed {seed}: {} (replay with {SEED}={seed})", what(&lost));
        });
        all.steps += walked.steps;
        all.progress_tests += walked.progress_tests;
        all.inert += walked.inert;
    }
    println!("walks {seeds:?}: {all:?}");
    assert!(all.inert > 0, "the walks met inert messages");
}

fn replay(seed: u64) {
    match walk(seed, None) {
        Ok(walked) => println!("seed {seed}: clean, {walked:?}"),
        Err(lost) => {
            println!("{:#?}", lost.scenario);
            for (step, action) in lost.trace.iter().enumerate() {
                println!("{:3} {action:?}", step + 1);
            }
            panic!("seed {seed}: {}", what(&lost));
        }
    }
}

fn what(lost: &Lost) -> String {
    match lost.violation {
        Some(violation) => violation.to_string(),
        None => "an inert message changed something".to_owned(),
    }
}
