//! Many seeds of the stream simulator: every stream keeps every promise of the contract's section 5. And the checker can
//! see: every deliberate mistake is found within a bounded number of seeds.

use std::sync::Mutex;
use std::thread;

use sealog_simulator::streams::{StreamMutation, StreamReport, run};

/// Runs seeds, two at a time, until one breaks something. Returns it, and all runs together.
fn search(
    seeds: std::ops::Range<u64>,
    mutation: Option<StreamMutation>,
) -> (Option<(u64, String)>, StreamReport) {
    let seeds = Mutex::new(seeds);
    let found = Mutex::new((None, StreamReport::default()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = seeds.lock().expect("no run panics").next();
                    let Some(seed) = next.filter(|_| found.lock().expect("no run panics").0.is_none()) else {
                        return;
                    };
                    let report = run(seed, mutation, false);
                    let mut found = found.lock().expect("no run panics");
                    found.1.add(&report);
                    if let Some(what) = report.broken {
                        found.0.get_or_insert((seed, what));
                    }
                }
            });
        }
    });
    found.into_inner().expect("no run panics")
}

/// The runs are worth something only if much happens in them.
fn keep(first: u64, count: u64) {
    let (broken, sum) = search(first..first + count, None);
    assert_eq!(broken, None, "replay it with: cargo run -p sealog-simulator --bin streams -- SEED");
    println!("{count} seeds: {sum}");
    assert!(sum.streams > count * 5 && sum.applied > count * 15 && sum.envelopes > count * 60, "{sum}");
    assert!(sum.hibernations > count * 4 && sum.losses > count / 2 && sum.crashes > count, "{sum}");
    let counters = sum.counters;
    assert!(counters.pages_dropped > 0 && counters.syncs > 0 && counters.unwanted > 0, "{sum}");
    assert!(counters.pulls_after_push > 0 && counters.hints > 0 && counters.busy_restarts > 0, "{sum}");
}

#[test]
fn hundreds_of_seeds_keep_every_promise() {
    keep(1, 600);
}

#[test]
#[ignore = "soak: twenty thousand seeds, about half an hour on two cores"]
fn thousands_of_seeds_keep_every_promise() {
    keep(1_000_000, 20_000);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 1..=10 {
        assert_eq!(run(seed, None, true), run(seed, None, true), "seed {seed}");
    }
}

/// Looks for a seed that shows the mistake, and for the words of the checker or the assertion that saw it.
fn found(mutation: StreamMutation, signs: &[&str]) {
    const SEEDS: u64 = 4_000;
    let (broken, _) = search(1..SEEDS, Some(mutation));
    let (seed, what) = broken.unwrap_or_else(|| panic!("{mutation:?} was not found in {SEEDS} seeds"));
    println!("{mutation:?}: seed {seed}: {what}");
    let known = signs.iter().any(|words| what.contains(words));
    assert!(known, "{mutation:?} showed at seed {seed} as something else: {what}");
}

/// One test for each mistake.
macro_rules! mutations {
    ($($name:ident: $mutation:ident is seen as [$($words:literal),+];)+) => {
        $(#[test] fn $name() { found(StreamMutation::$mutation, &[$($words),+]); })+

        #[test]
        fn every_mistake_has_its_test() {
            assert_eq!(vec![$(StreamMutation::$mutation),+], StreamMutation::ALL);
        }
    };
}

mutations! {
    resumed_while_busy: ResumedWhileBusy is seen as ["API-252", "API-253", "API-254"];
    busy_after_the_frames: BusyAfterTheFrames is seen as ["API-252", "API-254", "a repeated number"];
    message_read_unmarked: MessageReadUnmarked is seen as ["API-252", "API-254", "progress"];
    behind_lost: BehindLost is seen as ["API-254"];
    positions_lost: PositionsLost is seen as ["API-254"];
    numbers_start_again: NumbersStartAgain is seen as ["a repeated number", "progress"];
    target_before_registration: TargetBeforeRegistration is seen as ["API-254", "API-252", "heads never fall"];
    reply_to_older_control: ReplyToOlderControl is seen as ["the heads that were asked for", "API-252"];
    unwanted_without_generation: UnwantedWithoutGeneration is seen as ["API-254"];
    time_out_means_gone: TimeOutMeansGone is seen as ["API-254"];
    push_not_retried: PushNotRetried is seen as ["API-254"];
    partition_sets_no_alarm: PartitionSetsNoAlarm is seen as ["API-254"];
    session_sets_no_timer: SessionSetsNoTimer is seen as ["API-255", "API-252", "API-254"];
    session_hears_no_alarm: SessionHearsNoAlarm is seen as ["API-255"];
    watch_told_before_durable: WatchToldBeforeDurable is seen as [
        "API-252",
        "API-254",
        "heads never fall",
        "a topic's targets never fall"
    ];
    writes_taken_for_durable: WritesTakenForDurable is seen as ["API-252", "API-253", "API-254"];
}
