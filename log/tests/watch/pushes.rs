//! What is in a push, who is called when, and what an answer ends: rules 6, 9, 10.

use std::collections::BTreeSet;

use sealog_log::{MILLISECOND, SECOND};
use sealog_proto::internal::PushRequest;

use crate::support::{World, check, ids, session_id, topic};

fn previous_ids_head(push: &PushRequest) -> Vec<(u64, Vec<u64>, u64)> {
    push.items.iter().inspect(|item| check(item)).map(|item| (item.previous, ids(item), item.head)).collect()
}

#[test]
fn rule_6_one_push_is_under_way_and_later_rows_join_its_queue() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1), topic(2)]);
    world.publish(&topic(1));
    let first = world.push();
    assert_eq!(previous_ids_head(&first), [(0, vec![1], 1)]);
    world.publish(&topic(1));
    world.commit(&[(topic(2), 10), (topic(1), 10), (topic(3), 10)]);
    assert!(world.pushes.is_empty());
    world.acknowledge(&first);
    assert_eq!(previous_ids_head(&world.push()), [(0, vec![3], 3), (1, vec![2, 4], 4)]);
}

#[test]
fn rule_6_a_row_arrives_as_it_is_stored() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.commit(&[(topic(1), 1_000)]);
    let row = world.push().items.remove(0).rows.remove(0);
    assert_eq!(row.envelope, vec![7; 1_000]);
    let meta = row.meta.unwrap();
    assert_eq!((meta.topic.unwrap().topic, meta.cursor.unwrap().sequence_id), (topic(1), 1));
}

#[test]
fn rule_9_a_push_holds_256_rows_and_the_next_goes_on_behind_them() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1), topic(2)]);
    world.commit(&vec![(topic(1), 10); 600]);
    world.commit(&[(topic(2), 10)]);
    let first = world.push();
    assert_eq!(previous_ids_head(&first), [(0, (1..=256).collect(), 256)]);
    world.publish(&topic(2));
    assert_eq!(world.mark, 0);
    world.acknowledge(&first);
    let second = world.push();
    let told = previous_ids_head(&second);
    assert_eq!(told[0], (0, vec![601, 602], 602), "a busy topic starves no other");
    assert_eq!(told[1], (256, (257..=510).collect(), 510));
    world.publish(&topic(2));
    assert_eq!(world.mark, 256, "below what is in flight");
    world.acknowledge(&second);
    world.drain();
    world.publish(&topic(9));
    assert_eq!(world.mark, world.highest);
}

#[test]
fn rule_9_a_push_holds_a_mebibyte_or_one_row() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.commit(&[(topic(1), 2 << 20), (topic(1), 600_000), (topic(1), 400_000), (topic(1), 300_000)]);
    let mut told = Vec::new();
    while let Some(push) = world.pushes.pop_front() {
        told.extend(previous_ids_head(&push));
        world.acknowledge(&push);
    }
    assert_eq!(told, [(0, vec![1], 1), (1, vec![2, 3], 3), (3, vec![4], 4)]);
}

#[test]
fn rule_9_sixteen_mebibytes_of_rows_wait_and_the_rest_is_hinted() {
    let mut world = World::new();
    // Two who are slow, and both want the same rows: each row is kept once.
    world.add(1, 1, &[topic(1)]);
    world.add(2, 1, &[topic(1)]);
    world.publish(&topic(1));
    let under_way = [world.push(), world.push()];
    for _ in 0..15 {
        world.commit(&[(topic(1), 1 << 20)]);
    }
    world.acknowledge(&under_way[0]);
    assert_eq!(previous_ids_head(&world.push()), [(1, vec![2], 2)], "all of it is there");
    world.commit(&[(topic(1), 1 << 20)]);
    world.acknowledge(&under_way[1]);
    assert_eq!(previous_ids_head(&world.push()), [(17, vec![], 17)], "the oldest are gone: only the head");
    assert_eq!(world.machine.counters().hints, 1);
}

#[test]
fn rule_10_a_failure_or_a_timeout_removes_nothing_and_is_tried_again() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    for failures in 0..20_u32 {
        let push = world.push();
        world.answer(&push, None);
        assert!(world.pushes.is_empty());
        let pause = (SECOND << failures.min(6)).min(60 * SECOND);
        let failed = world.now;
        while world.pushes.is_empty() {
            world.ring();
        }
        let waited = world.now - failed;
        assert!((pause * 3 / 4..=pause).contains(&waited), "failure {failures}: {} ms", waited / MILLISECOND);
    }
    assert_eq!(previous_ids_head(&world.push()), [(1, vec![], 1)]);
    assert_eq!(world.machine.sizes(), (1, 1, 1));
}

#[test]
fn rule_10_a_session_that_answers_again_gets_rows_again() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    let push = world.push();
    world.answer(&push, None);
    world.publish(&topic(1));
    while world.pushes.is_empty() {
        world.ring();
    }
    assert_eq!(previous_ids_head(&world.push()), [(2, vec![], 2)]);
    world.pushes.clear();
    let push = PushRequest { session: session_id(1), incarnation: 1, number: 2, ..PushRequest::default() };
    world.acknowledge(&push);
    world.publish(&topic(1));
    assert_eq!(previous_ids_head(&world.push()), [(2, vec![3], 3)]);
}

#[test]
fn what_fails_is_not_tried_again_when_nobody_wants_it_any_more() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1), topic(2)]);
    world.publish(&topic(1));
    let push = world.push();
    world.add(1, 2, &[topic(1)]); // a newer registration: this row is its history
    world.answer(&push, None);
    world.publish(&topic(9));
    assert_eq!(world.mark, world.highest);
    assert!(world.rings_at.is_none_or(|at| at > world.now));
    world.publish(&topic(1));
    world.now += SECOND;
    while world.pushes.is_empty() {
        world.ring();
    }
    assert_eq!(world.push().items[0].generation, 2);
}

#[test]
fn trap_29_sessions_that_hang_hold_one_slot() {
    let mut world = World::new();
    for session in 0..20 {
        world.add(session, 1, &[topic(session)]);
        world.publish(&topic(session));
    }
    assert_eq!(world.pushes.len(), 5, "calls at once");
    while let Some(push) = world.pushes.pop_front() {
        world.answer(&push, None);
    }
    world.now += 60 * SECOND;
    world.ring();
    assert_eq!(world.pushes.len(), 1, "all have failed: one at a time");
    world.add(100, 1, &[topic(100)]);
    world.publish(&topic(100));
    assert_eq!(world.pushes.back().unwrap().session, session_id(100), "who is well is called at once");
}

#[test]
fn trap_27_a_wide_topic_does_not_starve_a_narrow_one() {
    let mut world = World::new();
    for session in 0..1_000 {
        world.add(session, 1, &[topic(1)]);
    }
    world.add(5_000, 1, &[topic(2)]);
    world.publish(&topic(1));
    assert_eq!(world.pushes.len(), 4, "one slot is left for a narrow topic");
    world.publish(&topic(2));
    assert_eq!(world.pushes.back().unwrap().session, session_id(5_000), "at once, though none has answered");
    // While narrow pushes wait, at most three are wide.
    for session in 6_000..6_050 {
        world.add(session, 1, &[topic(session)]);
        world.publish(&topic(session));
    }
    let mut wide = 0;
    for _ in 0..90 {
        let push = world.push();
        wide += usize::from(push.items[0].topic == topic(1));
        world.acknowledge(&push);
    }
    let narrow = world.machine.counters().pushes - u64::try_from(wide).unwrap();
    assert!(narrow >= 45 && wide >= 30, "in turn: {narrow} narrow, {wide} wide");
}

#[test]
fn a_wide_session_that_gets_a_narrow_row_goes_ahead() {
    let mut world = World::new();
    for session in 0..1_000 {
        world.add(session, 1, &[topic(1)]);
    }
    world.add(999, 2, &[topic(2)]);
    world.publish(&topic(1));
    world.publish(&topic(2));
    let push = world.pushes.back().unwrap();
    assert_eq!(push.session, session_id(999));
    assert_eq!(push.items.len(), 2, "and takes the other row along");
}

#[test]
fn dead_watchers_of_a_wide_topic_delay_nobody_on_a_narrow_one() {
    let mut world = World::new();
    for session in 0..1_000 {
        world.add(session, 1, &[topic(1)]);
    }
    world.add(5_000, 1, &[topic(2)]);
    world.publish(&topic(1));
    let mut hanging = BTreeSet::new();
    for _ in 0..50 {
        // Whoever is called on the wide topic never answers; 2 s later the call has failed.
        hanging.extend(world.pushes.drain(..).map(|push| (push.number, push.session)));
        world.publish(&topic(2));
        let push = world.push();
        assert_eq!(push.session, session_id(5_000), "the only free slot is for it");
        world.acknowledge(&push);
        world.now += 2 * SECOND;
        for (number, session) in std::mem::take(&mut hanging) {
            let push = PushRequest { incarnation: 1, number, session, ..PushRequest::default() };
            world.answer(&push, None);
        }
    }
}

#[test]
fn a_session_that_did_not_say_whether_it_lives_is_told_hints_after_a_pause() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.now += 25 * 3_600 * SECOND;
    world.ring();
    let probe = world.push();
    assert!(probe.items.is_empty());
    world.answer(&probe, None);
    world.publish(&topic(1));
    assert!(world.pushes.is_empty(), "it has failed just now");
    world.now += SECOND;
    world.ring();
    assert_eq!(previous_ids_head(&world.push()), [(1, vec![], 1)]);
}
