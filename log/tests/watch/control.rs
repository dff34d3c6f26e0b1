//! Registering: rules 3 to 5, 10, 20, 22.

use sealog_log::{CommandError, Fault, SECOND};
use sealog_proto::internal::{Watch, control_reply::Verdict, control_request::Kind, failure};

use crate::support::{World, call, session_id, topic, watches};

/// Whether a row on `topic` is pushed to anybody.
fn is_watched(world: &mut World, number: u32) -> bool {
    world.publish(&topic(number));
    world.drain() > 0
}

#[test]
fn rule_5_the_watch_is_stored_in_the_event_that_reads_the_heads() {
    let mut world = World::new();
    world.publish(&topic(1));
    world.publish(&topic(1));
    let reply = world.add(1, 1, &[topic(1), topic(2)]);
    assert_eq!((reply.number, reply.verdict()), (1, Verdict::Done));
    let heads: Vec<_> = reply.heads.iter().map(|head| (head.topic.clone(), head.head)).collect();
    assert_eq!(heads, [(topic(1), 2), (topic(2), 0)], "in order; 0 = never had one");
    assert_eq!(world.watch_rows(), 1, "one row for each call");
    world.publish(&topic(2));
    let push = world.push();
    assert_eq!((push.session, push.items[0].previous, push.items[0].head), (session_id(1), 0, 3), "trap 1");
}

#[test]
fn trap_25_watches_outlive_the_instance() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.restart();
    world.publish(&topic(1));
    assert_eq!(world.push().items[0].generation, 1);
}

#[test]
fn trap_7_a_late_copy_of_a_remove_does_not_take_the_new_watch() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1), topic(2)]);
    let remove = call(1, Kind::Bidi, 2, &[], &watches(&[topic(1)], 1));
    world.control(&remove);
    assert!(!is_watched(&mut world, 1));
    world.add(1, 3, &[topic(1)]);
    assert_eq!(world.control(&remove).verdict(), Verdict::Superseded);
    assert!(is_watched(&mut world, 1));
}

#[test]
fn trap_7_even_when_the_session_was_forgotten_in_between() {
    let mut world = World::new();
    let add = call(1, Kind::Bidi, 1, &watches(&[topic(1)], 1), &[]);
    world.control(&add);
    let remove = call(1, Kind::Bidi, 2, &[], &watches(&[topic(1)], 1));
    world.control(&remove);
    assert_eq!(world.watch_rows(), 0, "of a session that watches nothing, nothing stays");
    world.control(&add);
    world.control(&remove);
    assert_eq!(world.watch_rows(), 0, "late copies, in the order in which they were sent");
    world.control(&add); // and out of order: a watch that nobody wants
    world.add(1, 3, &[topic(1)]);
    world.control(&remove);
    world.publish(&topic(1));
    assert_eq!(world.push().items[0].generation, 3);
}

#[test]
fn rule_4_a_repeat_applies_nothing_and_reads_the_heads_again() {
    let mut world = World::new();
    let add = call(1, Kind::Bidi, 5, &watches(&[topic(1)], 1), &[]);
    assert_eq!(world.control(&add).heads[0].head, 0);
    world.publish(&topic(1));
    world.drain();
    let writes = world.storage.writes.get();
    assert_eq!(world.control(&add).heads[0].head, 1);
    assert_eq!(world.storage.writes.get(), writes);
    world.restart();
    assert_eq!(world.control(&add).heads[0].head, 1, "the number and what it said are stored");
    assert_eq!(world.watch_rows(), 1);
}

#[test]
fn assertion_f_a_repeat_says_what_it_said() {
    let mut world = World::new();
    world.add(1, 5, &[topic(1)]);
    let other = call(1, Kind::Bidi, 5, &watches(&[topic(2)], 5), &[]);
    let fault = world.try_control(&other).unwrap_err();
    assert!(matches!(fault, CommandError::Fault(Fault::Invariant(_))));
}

#[test]
fn rule_4_the_highest_number_outlives_the_instance() {
    let mut world = World::new();
    world.add(1, 7, &[topic(1)]);
    world.restart();
    let late = call(1, Kind::Bidi, 6, &[], &watches(&[topic(1)], 7));
    assert_eq!(world.control(&late).verdict(), Verdict::Superseded, "trap 10");
}

#[test]
fn rule_4_a_remove_of_another_generation_removes_nothing() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.control(&call(1, Kind::Bidi, 2, &[], &watches(&[topic(1)], 9)));
    assert!(is_watched(&mut world, 1));
}

#[test]
fn rule_4_a_generation_replaces_the_older_one() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    let both = call(1, Kind::Bidi, 2, &watches(&[topic(1)], 2), &watches(&[topic(1)], 1));
    world.control(&both);
    world.add(1, 3, &[topic(1)]);
    world.publish(&topic(1));
    assert_eq!(world.push().items[0].generation, 3);
    world.restart();
    world.publish(&topic(1));
    assert_eq!(world.push().items[0].generation, 3, "so say the rows");
}

#[test]
fn trap_8_unwanted_names_the_watch_that_it_refuses() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.publish(&topic(1));
    let push = world.push();
    world.add(1, 3, &[topic(1)]);
    world.refuse(&push, watches(&[topic(1)], 1));
    assert!(is_watched(&mut world, 1), "the new watch stays");
    assert_eq!(world.machine.counters().unwanted, 0);
    world.publish(&topic(1));
    let push = world.push();
    world.refuse(&push, watches(&[topic(1)], 3));
    assert!(!is_watched(&mut world, 1));
    world.restart();
    assert!(!is_watched(&mut world, 1), "durably");
    assert_eq!(world.watch_rows(), 0);
}

#[test]
fn rule_10_an_unwanted_watch_among_others_leaves_the_others() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1), topic(2)]);
    world.publish(&topic(1));
    let push = world.push();
    world.refuse(&push, watches(&[topic(1)], 1));
    world.restart();
    assert!(!is_watched(&mut world, 1));
    assert!(is_watched(&mut world, 2));
}

#[test]
fn rule_10_gone_and_bye_leave_nothing() {
    for bye in [false, true] {
        let mut world = World::new();
        world.add(1, 1, &[topic(1), topic(2)]);
        world.add(1, 2, &[topic(3)]);
        world.add(2, 1, &[topic(1)]);
        world.commit(&[(topic(1), 10), (topic(3), 10)]);
        let push = world.push();
        assert_eq!(push.session, session_id(1));
        if bye {
            world.control(&call(1, Kind::Bye, 3, &[], &[]));
            world.acknowledge(&push); // of a session that nobody knows
        } else {
            world.gone(&push);
        }
        assert_eq!(world.machine.sizes(), (1, 1, 1));
        assert_eq!(world.watch_rows(), 1);
        world.drain();
        world.publish(&topic(9));
        assert_eq!(world.mark, world.highest, "it holds the mark no more");
    }
}

#[test]
fn rule_5_many_rows_of_a_session_become_one() {
    let mut world = World::new();
    for number in 1..=17 {
        world.add(1, number, &[topic(u32::try_from(number).unwrap())]);
    }
    assert_eq!(world.watch_rows(), 1);
    world.add(1, 18, &[topic(18)]);
    assert_eq!(world.watch_rows(), 2);
    world.restart();
    assert_eq!(world.machine.sizes(), (18, 18, 1));
    let late = call(1, Kind::Bidi, 17, &[], &[]);
    assert_eq!(world.control(&late).verdict(), Verdict::Superseded);
}

#[test]
fn rule_5_rows_that_are_half_dead_are_rewritten() {
    let mut world = World::new();
    let topics: Vec<_> = (0..100).map(topic).collect();
    world.add(1, 1, &topics);
    for (number, gone) in (2..).zip(topics.chunks(10).take(9)) {
        world.control(&call(1, Kind::Bidi, number, &[], &watches(gone, 1)));
    }
    assert!(world.watch_rows() <= 3, "{} rows", world.watch_rows());
    world.restart();
    assert_eq!(world.machine.sizes(), (10, 10, 1));
}

#[test]
fn rule_5_a_large_call_is_a_few_rows_of_at_most_a_mebibyte() {
    let mut world = World::new();
    // The longest topics there are.
    let topics: Vec<_> = (0..100_000_u32)
        .map(|number| [&[1_u8][..], &[0; 28], &number.to_be_bytes()].concat().into())
        .collect();
    let reply = world.add(1, u64::from(u32::MAX), &topics);
    assert_eq!(reply.heads.len(), topics.len());
    assert_eq!(world.watch_rows(), 5);
    assert!(world.count("SELECT max(length(entries)) FROM watches") <= 1 << 20);
    world.restart();
    while world.rings_at.is_some_and(|at| at <= world.now) {
        world.ring();
    }
    assert_eq!(world.machine.sizes(), (100_000, 100_000, 1));
    // And it may go on changing without being rewritten each time.
    world.control(&call(1, Kind::Bidi, 1 << 40, &[], &watches(&topics[..1], u64::from(u32::MAX))));
    assert_eq!(world.watch_rows(), 6);
}

#[test]
fn rule_20_a_sync_finds_nothing_missing_and_writes_nothing() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1), topic(2)]);
    world.publish(&topic(1));
    world.drain();
    let writes = world.storage.writes.get();
    let all = watches(&[topic(1), topic(2)], 1);
    let reply = world.control(&call(1, Kind::Sync, 2, &all, &[]));
    assert_eq!(reply.heads.iter().map(|head| head.head).collect::<Vec<_>>(), [1, 0]);
    assert_eq!((reply.repaired, world.storage.writes.get()), (0, writes));
    let late = call(1, Kind::Bidi, 1, &[], &[]);
    assert_eq!(world.control(&late).verdict(), Verdict::Superseded, "its number counts all the same");
}

#[test]
fn assertion_h_a_sync_repairs_and_counts_what_is_missing() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    let all = [watches(&[topic(1)], 1), watches(&[topic(2)], 2)].concat();
    assert_eq!(world.control(&call(1, Kind::Sync, 3, &all, &[])).repaired, 1);
    assert_eq!(world.machine.counters().repaired, 1);
    world.restart();
    assert!(is_watched(&mut world, 2));
}

#[test]
fn a_static_stream_watches_like_any_other() {
    let mut world = World::new();
    world.control(&call(1, Kind::Static, 1, &watches(&[topic(1)], 1), &[]));
    assert!(is_watched(&mut world, 1));
}

#[test]
fn a_call_that_makes_no_sense_is_refused_and_harms_nobody() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    let nonsense = Watch { topic: vec![99; 17].into(), generation: 1 };
    let mut short = call(2, Kind::Bidi, 1, &[], &[]);
    short.session.truncate(31);
    for request in [call(2, Kind::Bidi, 1, &[nonsense], &[]), short] {
        let Err(CommandError::Refused(failure)) = world.try_control(&request) else { panic!("refused") };
        assert_eq!(failure.kind(), failure::Kind::BadCommand);
    }
    assert_eq!(world.machine.sizes(), (1, 1, 1));
}

#[test]
fn trap_31_the_index_is_bounded() {
    let mut world = World::new();
    for session in 0..20_000 {
        assert_eq!(world.add(session, 1, &[topic(1)]).verdict(), Verdict::Done);
    }
    assert_eq!(world.add(20_000, 1, &[topic(1)]).verdict(), Verdict::Full);
    assert_eq!(world.add(1, 2, &[topic(2)]).verdict(), Verdict::Done, "those that are here go on");
    assert_eq!(world.machine.sizes(), (20_001, 2, 20_000));
    world.control(&call(5, Kind::Bye, 2, &[], &[]));
    assert_eq!(
        world.add(20_000, 1, &[topic(1)]).verdict(),
        Verdict::Done,
        "the same call, when there is room"
    );
}

#[test]
fn trap_30_a_watch_that_a_late_call_left_behind_is_found_after_a_day() {
    let mut world = World::new();
    world.add(1, 1, &[topic(1)]);
    world.add(2, 1, &[topic(2)]);
    let born = world.now;
    let mut asked = Vec::new();
    while world.now < born + 26 * 3_600 * SECOND {
        world.ring();
        while let Some(push) = world.pushes.pop_front() {
            assert!(push.items.is_empty(), "it only asks");
            asked.push(world.now);
            if push.session == session_id(1) { world.gone(&push) } else { world.acknowledge(&push) }
        }
    }
    assert_eq!(asked.len(), 2, "each is asked once, and one lives");
    assert!(asked.iter().all(|at| (24 * 3_600..=25 * 3_600 + 2).contains(&((at - born) / SECOND))));
    assert_eq!(world.machine.sizes(), (1, 1, 1));
    world.restart();
    assert!(world.pushes.is_empty(), "that it lives is stored");
}
