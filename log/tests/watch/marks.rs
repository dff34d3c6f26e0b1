//! The waker, the mark, and what a new instance owes: rules 7 and 8.

use sealog_log::{Fault, SECOND};

use crate::support::{World, check, reply, topic};
use sealog_proto::internal::PushReply;

#[test]
fn trap_19_the_alarm_is_set_in_the_event_that_stores_the_rows() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.rings_at = None;
    world.publish(&topic(1));
    assert_eq!(world.rings_at, Some(world.now + 2 * SECOND));
    // The instance dies with its push. Nobody publishes again: the alarm starts the next one.
    world.die();
    world.ring();
    let push = world.push();
    assert_eq!((push.items[0].head, push.items[0].rows.len()), (1, 0), "a hint");
}

#[test]
fn rule_7_while_the_watches_are_not_loaded_any_row_sets_it() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.drain();
    world.die();
    world.rings_at = None;
    world.publish(&topic(1)); // before the first piece of the load
    assert!(world.pushes.is_empty());
    assert!(world.rings_at.is_some_and(|at| at <= world.now + 2 * SECOND));
    world.die();
    world.ring();
    assert_eq!(world.push().items[0].head, 1);
}

#[test]
fn rule_7_it_is_set_again_while_anything_is_owed_and_then_rests() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    let push = world.push();
    for _ in 0..3 {
        world.ring();
        assert!(world.rings_at.is_some_and(|at| at <= world.now + 2 * SECOND));
    }
    world.acknowledge(&push);
    world.ring();
    assert_eq!(world.rings_at, Some(world.now + 3_600 * SECOND), "only to look for the silent");
    let mut world = World::new();
    world.publish(&topic(1));
    assert_eq!(world.rings_at, None, "nobody watches: it costs nothing");
}

#[test]
fn trap_20_what_was_acknowledged_is_not_told_again() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    world.drain();
    world.publish(&topic(2)); // the mark goes with another write
    assert_eq!(world.mark, 2);
    world.restart();
    assert!(world.pushes.is_empty());
}

#[test]
fn rule_8_the_alarm_raises_the_mark_once_nothing_is_owed() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    let push = world.push();
    world.ring();
    assert_eq!(world.mark, 0, "in flight");
    world.acknowledge(&push);
    assert_eq!(world.mark, 0, "not in a write of its own");
    world.ring();
    assert_eq!(world.mark, 1, "with the alarm that is set for later");
    assert_eq!(world.machine.settle(1), Ok(None), "once");
    world.restart();
    assert!(world.pushes.is_empty(), "whoever slept well is not woken by it");
}

#[test]
fn trap_21_the_mark_waits_for_the_answer_not_for_the_push() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    let push = world.push();
    world.publish(&topic(2));
    assert_eq!(world.mark, 0, "in flight");
    world.answer(&push, None);
    world.publish(&topic(2));
    assert_eq!(world.mark, 0, "owed");
    world.restart();
    assert_eq!(world.push().items[0].head, 1);
}

#[test]
fn trap_21_an_instance_that_has_not_loaded_does_not_move_it() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    world.die();
    world.publish(&topic(2));
    assert_eq!(world.mark, 0);
    world.ring();
    assert_eq!(world.push().items[0].head, 1);
}

#[test]
fn rule_8_a_hint_holds_the_mark() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    world.restart();
    let hint = world.push();
    world.publish(&topic(2));
    assert_eq!(world.mark, 0, "in flight");
    world.acknowledge(&hint);
    world.publish(&topic(2));
    assert_eq!(world.mark, 3);
}

#[test]
fn trap_22_after_a_restart_heads_are_told_not_rows() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1), topic(2), topic(3)]);
    for _ in 0..300 {
        world.commit(&[(topic(1), 10), (topic(2), 10)]);
    }
    world.restart();
    let push = world.push();
    assert_eq!(push.items.len(), 2, "not of the topic that is quiet");
    for item in &push.items {
        check(item);
        assert!(item.rows.is_empty());
    }
    assert_eq!(push.items[1].head, world.highest);
}

#[test]
fn trap_23_an_answer_to_the_previous_instance_clears_nothing() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    let old = world.push();
    world.restart();
    let new = world.push();
    assert_eq!((old.number, new.number), (1, 1), "numbers begin anew");
    assert!(new.incarnation > old.incarnation);
    world.acknowledge(&old);
    world.answer(&old, None);
    world.publish(&topic(2));
    assert_eq!(world.mark, 0, "still owed");
    // As a transport would deliver it that pairs answers with calls by number only.
    world.answer(&new, Some(&PushReply { incarnation: old.incarnation, number: old.number, ..reply() }));
    world.publish(&topic(2));
    assert_eq!(world.mark, 0, "it says nothing about the new one");
}

#[test]
fn trap_23_an_answer_to_an_earlier_push_clears_nothing() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    let first = world.push();
    world.answer(&first, None);
    world.ring();
    let second = world.push();
    world.acknowledge(&first);
    world.publish(&topic(2));
    assert_eq!(world.mark, 0);
    world.acknowledge(&second);
    world.publish(&topic(2));
    assert_eq!(world.mark, 3);
}

#[test]
fn assertion_a_the_mark_never_falls() {
    let mut world = World::new();
    world.publish(&topic(1));
    world.publish(&topic(1));
    let fault = world.machine.news().mark(1).unwrap_err();
    assert!(matches!(fault, Fault::Invariant(_)));
}

#[test]
fn a_silent_session_holds_the_mark_and_nothing_else() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.add(2, 1, &[topic(1)]);
    world.publish(&topic(1));
    let dead = world.push();
    world.answer(&dead, None);
    for _ in 0..100 {
        world.drain(); // of the other one
        world.publish(&topic(1));
    }
    assert_eq!(world.mark, 0);
    world.drain();
    world.now += SECOND;
    world.ring();
    let hint = world.push();
    assert_eq!((hint.items.len(), hint.items[0].head, hint.items[0].rows.len()), (1, 101, 0));
    world.gone(&hint);
    world.publish(&topic(2));
    assert_eq!(world.mark, 102, "its own word ends it");
}
