//! Load, in pieces, off the publish path: rule 8.

use sealog_log::SECOND;

use crate::support::{World, topic};

/// A partition with 60 sessions that watch 1,000 topics each: 1,000 watchers in common, the rest their own.
fn crowded() -> World {
    let mut world = World::new();
    for session in 0..60 {
        let topics: Vec<_> =
            (0..1_000).map(|n| topic(if n < 10 { n } else { session * 1_000 + n })).collect();
        world.add(session, 1, &topics);
    }
    world
}

#[test]
fn trap_32_the_load_is_done_in_pieces() {
    let mut world = crowded();
    world.restart();
    let (first, ..) = world.machine.sizes();
    assert!((8_000..=10_000).contains(&first), "{first} watches in one event");
    let mut pieces = 1;
    while world.rings_at.is_some_and(|at| at <= world.now) {
        world.ring();
        pieces += 1;
    }
    assert!((30..=45).contains(&pieces), "{pieces}");
    assert_eq!(world.machine.sizes(), (60_000, 10 + 60 * 990, 60));
}

#[test]
fn trap_32_rows_stored_while_it_loads_are_told_to_all_their_watchers() {
    let mut world = crowded();
    world.die();
    let mut next = 0;
    while world.rings_at.is_some_and(|at| at <= world.now) || next == 0 {
        world.publish(&topic(next % 10));
        next += 1;
        world.ring();
    }
    let told = world.drain();
    assert!(told >= 60, "{told}");
    world.publish(&topic(9_999_999));
    assert_eq!(world.mark, world.highest, "nothing is owed any more");
}

#[test]
fn rule_8_a_call_of_a_session_waits_for_the_watches_only() {
    let mut world = crowded();
    world.die();
    world.add(7, 2, &[topic(123_456)]);
    assert_eq!(world.machine.sizes().0, 60_001, "all rows are in the index");
    world.publish(&topic(123_456));
    let push = world.push();
    assert_eq!(push.items[0].generation, 2, "and pushes may leave");
    world.acknowledge(&push);
    assert_eq!(world.mark, 0, "but not the mark: the heads are not compared yet");
    world.settle();
    world.drain();
    world.publish(&topic(9_999_999));
    assert_eq!(world.mark, world.highest);
}

#[test]
fn a_load_is_never_left_half_done() {
    let mut world = crowded();
    world.commit(&(0..10).map(|n| (topic(n), 10)).collect::<Vec<_>>());
    // It dies after each piece, five times; only the alarm is left of it.
    for _ in 0..5 {
        world.die();
        world.now += SECOND;
        world.ring();
    }
    world.settle();
    assert_eq!(world.drain(), 60, "one push for each watcher, with ten heads in it");
    assert_eq!(world.machine.counters().hints, 600);
}
