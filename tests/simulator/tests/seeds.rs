//! Many seeds, each a history of its own that must keep every promise of the contract.

use sealog_simulator::search;

/// Seeds that broke something once, with what it was. They mean that only as long as the workload is drawn as it is
/// now: whoever changes it looks for them anew, with the fix undone.
const REGRESSIONS: [(u64, &str); 5] = [
    (1, "an update with a claim was sent again, and was unavailable for ever"),
    (3, "a handle that its own inbox claimed again while it was doing so was staged twice"),
    (20, "a Directory had confirmed to a sequencer that died, and nobody asked it again"),
    (480, "a log partition died between applying and confirming, and nobody asked it again"),
    (5, "every new staged copy put off the alarm that asks about old ones"),
];

#[test]
fn seeds_that_broke_something_once() {
    for (seed, what) in REGRESSIONS {
        let broken = sealog_simulator::run(seed, None, false).broken;
        assert_eq!(broken, None, "seed {seed}: {what}");
    }
}

#[test]
fn two_thousand_seeds_keep_every_promise() {
    keep(1, 2_000);
}

#[test]
#[ignore = "soak: a hundred thousand seeds, about half an hour on two cores"]
fn a_hundred_thousand_seeds_keep_every_promise() {
    keep(1_000_000, 100_000);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 1..=20 {
        let one = sealog_simulator::run(seed, None, true);
        let other = sealog_simulator::run(seed, None, true);
        assert_eq!(one.trace, other.trace, "seed {seed}");
    }
}

/// The runs are worth something only if much happens in them.
fn keep(first: u64, count: u64) {
    let found = search(first..first + count, None);
    assert_eq!(found.broken, None, "replay it with: cargo run -p sealog-simulator -- --seed N --trace");
    let sum = found.sum;
    println!("{count} seeds: {sum}");
    assert!(sum.successes > count * 5, "publishes were acknowledged: {sum}");
    assert!(sum.decided > count, "transactions were decided: {sum}");
    assert!(sum.lookups > count * 5, "identifiers were looked up: {sum}");
    assert!(sum.aborted > count / 20, "transactions were aborted by a participant: {sum}");
}
