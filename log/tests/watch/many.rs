//! Ten thousand watchers of one topic, and what they cost.

use sealog_log::SECOND;

use crate::support::{World, topic};

const WATCHERS: u32 = 10_000;

fn crowd() -> World {
    let mut world = World::new();
    for session in 0..WATCHERS {
        world.add(session, 1, &[topic(1)]);
    }
    world
}

#[test]
fn trap_28_an_event_makes_at_most_800_calls_and_the_rest_goes_on_in_new_ones() {
    let mut world = crowd();
    world.now += SECOND;
    world.ring();
    world.publish(&topic(1));
    let (mut calls, mut events) = (0, 1);
    while let Some(push) = world.pushes.pop_front() {
        calls += 1;
        world.acknowledge(&push);
        if world.pushes.is_empty() && calls < WATCHERS {
            assert_eq!(calls % 800, 0, "the event has no calls left");
            assert_eq!(world.rings_at, Some(world.now), "so the alarm rings at once");
            world.ring();
            events += 1;
        }
    }
    assert_eq!((calls, events), (WATCHERS, 13));
    assert_eq!(world.machine.counters().hints, 0, "each got the row itself");
    world.publish(&topic(9));
    assert_eq!(world.mark, 2);
}

#[test]
fn rows_that_commit_during_a_pass_cost_no_pass_of_their_own() {
    let mut world = crowd();
    world.publish(&topic(1));
    let mut rows = 0;
    for turn in 0..WATCHERS {
        if turn % 100 == 0 {
            world.publish(&topic(1));
        }
        if world.pushes.is_empty() {
            world.ring();
        }
        let push = world.push();
        rows += push.items[0].rows.len();
        world.acknowledge(&push);
    }
    let first = world.machine.counters();
    assert_eq!(first.hints, 0);
    assert!(rows > 400_000, "about fifty rows with each call: {rows}");
    let mut rest = 0;
    while world.mark < world.highest {
        rest += world.drain();
        world.settle();
        if world.pushes.is_empty() {
            world.publish(&topic(9));
        }
    }
    assert!(rest <= 10_006, "one more pass: {rest}");
}

#[test]
fn a_publish_is_not_delayed_by_its_watchers() {
    let mut world = crowd();
    world.now += SECOND;
    world.ring();
    let (writes, statements) = (world.storage.writes.get(), world.storage.statements.get());
    world.publish(&topic(1));
    // A row, its head, and the one read that the watchers cost.
    assert_eq!(world.storage.writes.get() - writes, 2);
    assert_eq!(world.storage.statements.get() - statements, 3);
    let statements = world.storage.statements.get();
    world.publish(&topic(2));
    assert_eq!(world.storage.statements.get() - statements, 2, "an unwatched topic costs nothing");
    let statements = world.storage.statements.get();
    let push = world.push();
    world.acknowledge(&push);
    assert_eq!(world.storage.statements.get(), statements, "neither does an answer");
}
