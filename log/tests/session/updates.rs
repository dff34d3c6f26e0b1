//! Updates and their Applied (rules 3, 12; API-250 to 253, 258).

use sealog_log::SECOND;
use sealog_log::session::{Limits, Rate};
use sealog_proto::backend::{Cursor, Topic, subscribe_request::Request};
use sealog_proto::internal::{ControlReply, control_reply::Verdict, control_request::Kind};
use sealog_proto::status::Code;

use crate::support::{Got, NOON, World, bytes, update};

#[test]
fn api_250_started_is_first_and_nothing_is_read_before_it() {
    let mut world = World::idle(1, Limits::default());
    world.event(sealog_log::session::Session::accept);
    world.ping(1);
    assert_eq!(world.take(), [], "no frame before the header block");
    world.event(sealog_log::session::Session::start);
    world.event(sealog_log::session::Session::start);
    assert_eq!(world.take(), [Got::Started], "once");
}

#[test]
fn api_252_applied_lists_what_is_new_in_add_order_with_the_heads() {
    let mut world = World::with(4, Limits::default());
    let heads: Vec<u64> = [5, 3, 9].map(|topic| world.store(topic)).to_vec();
    world.update(1, &[(9, 0), (5, 0), (4, 0), (3, 0)], &[]);
    assert_eq!(world.take(), [], "not before the heads are there");
    while !world.controls.is_empty() {
        assert_eq!(world.take(), [], "not before all heads are there");
        world.control();
    }
    assert_eq!(world.take()[0], Got::Applied(1, vec![(9, heads[2]), (5, heads[0]), (4, 0), (3, heads[1])]));
    world.run();
    world.update(2, &[(5, 0), (6, 0)], &[]);
    world.run();
    assert_eq!(world.take().last(), Some(&Got::Applied(2, vec![(6, 0)])), "API-253: only what is new");
}

#[test]
fn api_252_updates_are_taken_one_at_a_time_and_answered_in_order() {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    world.update(2, &[(2, 0)], &[]);
    world.update(7, &[], &[1]);
    assert_eq!(world.controls.len(), 1, "rule 3: one call at a time to a partition");
    world.control();
    assert_eq!(world.take(), [Got::Applied(1, vec![(1, 0)])]);
    let second = world.control();
    assert_eq!(second.add.len(), 1);
    assert_eq!(
        world.take(),
        [Got::Applied(2, vec![(2, 0)]), Got::Applied(7, vec![])],
        "without adds: at once"
    );
    let third = world.control();
    assert_eq!((third.add.len(), third.remove.len()), (0, 1), "in the background");
    assert!(world.logs[&0].watches.keys().eq([&2]));
}

#[test]
fn api_253_a_removed_topic_is_silent_after_its_applied_and_starts_anew_when_added_again() {
    let mut world = World::open();
    let first = world.store(1);
    world.update(1, &[(1, 0)], &[]);
    world.run();
    assert_eq!(world.rows(), [(1, first)]);
    world.update(2, &[], &[1, 3]);
    assert_eq!(world.take(), [Got::Applied(2, vec![])], "removing what is not there is nothing");
    world.run();
    let second = world.store(1);
    let item = world.item(1, 1, first);
    let reply = world.push(vec![item]);
    assert_eq!(reply.unwanted.len(), 1);
    assert_eq!(world.take(), []);
    world.update(3, &[(1, 0)], &[]);
    world.run();
    assert_eq!(world.take()[0], Got::Applied(3, vec![(1, second)]));
    world.update(4, &[(1, second)], &[]);
    world.run();
    assert_eq!(world.take(), [Got::Applied(4, vec![])], "an add of a registered topic changes nothing");
}

#[test]
fn api_253_a_readded_topic_starts_from_the_cursor_that_its_add_supplies() {
    let mut world = World::open();
    let ids: Vec<u64> = (0..3).map(|_| world.store(1)).collect();
    world.update(1, &[(1, 0)], &[]);
    world.run();
    assert_eq!(world.rows(), [(1, ids[0]), (1, ids[1]), (1, ids[2])]);
    world.update(2, &[], &[1]);
    world.update(3, &[(1, ids[0])], &[]);
    world.run();
    assert_eq!(world.rows(), [(1, ids[1]), (1, ids[2])]);
}

#[test]
fn trap_9_the_reply_to_an_older_call_is_not_taken_for_the_newer_one() {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    let first = world.controls.pop_front().unwrap();
    let old = world.answer_control(&first);
    world.control_reply(&first, Some(&old));
    world.update(2, &[], &[1]);
    world.control();
    world.sync();
    world.take();
    let head = world.store(1);
    world.update(3, &[(1, 0)], &[]);
    let third = world.controls.pop_front().unwrap();
    assert!(third.request.number > first.request.number, "trap 10: numbers rise");
    world.control_reply(&first, Some(&old));
    world.event(|session, ctx| session.control_reply(ctx, 0, third.request.number, Some(&old)));
    assert_eq!(world.take(), [], "neither by the call it answers, nor by the number it names");
    world.pass(SECOND);
    let again = world.controls.pop_front().expect("asked again");
    assert_eq!(again.request, third.request, "rule 3: a retry repeats number and content");
    let reply = world.answer_control(&again);
    world.control_reply(&again, Some(&reply));
    assert_eq!(world.take()[0], Got::Applied(3, vec![(1, head)]));
}

#[test]
fn rule_3_a_reply_counts_once() {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    let sent = world.controls.pop_front().unwrap();
    let reply = world.answer_control(&sent);
    world.control_reply(&sent, Some(&reply));
    world.update(2, &[(2, 0)], &[]);
    world.control_reply(&sent, Some(&reply));
    assert_eq!(world.take(), [Got::Applied(1, vec![(1, 0)])]);
    world.control();
    assert_eq!(world.take(), [Got::Applied(2, vec![(2, 0)])]);
}

#[test]
fn trap_42_generations_are_ordinals_whatever_the_client_numbers() {
    let mut world = World::open();
    world.update(u64::MAX - 1, &[(1, 0)], &[]);
    assert_eq!(world.control().add[0].generation, 1);
    world.update(u64::MAX, &[(2, 0)], &[]);
    assert_eq!(world.control().add[0].generation, 2);
}

#[test]
fn rule_3_a_partition_that_stays_silent_fails_the_stream_after_30_seconds() {
    let mut world = World::open();
    world.sync();
    world.update(1, &[(1, 0)], &[]);
    let first = world.controls[0].clone();
    let mut attempts = 0;
    while world.finished.is_none() {
        assert!(world.busy(), "an Update is in work");
        let Some(sent) = world.controls.pop_front() else {
            world.pass(SECOND / 10);
            continue;
        };
        assert_eq!(sent.request, first.request);
        assert!(sent.deadline <= 5 * SECOND);
        attempts += 1;
        world.pass(sent.deadline);
        world.control_reply(&sent, None);
    }
    assert!((4..=8).contains(&attempts), "{attempts}");
    assert!(world.now - NOON <= 30 * SECOND + SECOND / 10, "at most 30 s together, as far as the test looks");
    assert_eq!(world.code(), Some(Code::Unavailable));
    assert!(!world.got.iter().any(|got| matches!(got, Got::Applied(..))));
}

#[test]
fn a_full_partition_makes_the_stream_unavailable() {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    let sent = world.controls.pop_front().unwrap();
    let full = ControlReply {
        number: sent.request.number,
        verdict: Verdict::Full.into(),
        ..ControlReply::default()
    };
    world.control_reply(&sent, Some(&full));
    assert_eq!(world.code(), Some(Code::Unavailable));
    assert_eq!(world.controls[0].request.kind(), Kind::Bye);
}

#[test]
fn assertion_e_a_reply_with_other_heads_fails_the_stream_with_internal() {
    let mut world = World::open();
    world.update(1, &[(1, 0), (2, 0)], &[]);
    let sent = world.controls.pop_front().unwrap();
    let mut reply = world.answer_control(&sent);
    reply.heads.pop();
    world.control_reply(&sent, Some(&reply));
    assert_eq!(world.code(), Some(Code::Internal));
    assert_eq!(world.faults.len(), 1);
}

#[test]
fn assertion_d_a_target_below_the_topics_earlier_one_fails_the_stream_with_internal() {
    let mut world = World::open();
    world.store(1);
    world.update(1, &[(1, 0)], &[]);
    world.run();
    world.update(2, &[], &[1]);
    world.run();
    world.update(3, &[(1, 0)], &[]);
    let sent = world.controls.pop_front().unwrap();
    let mut reply = world.answer_control(&sent);
    reply.heads[0].head = 0;
    world.control_reply(&sent, Some(&reply));
    assert_eq!(world.code(), Some(Code::Internal));
}

#[test]
fn api_251_an_invalid_update_fails_the_stream() {
    let long = |topic| Topic { topic: [bytes(topic), vec![0].into()].concat().into() };
    let mut cases = vec![
        ("id 0", update(0, &[], &[])),
        ("an id that was used", update(5, &[], &[])),
        ("an id below", update(4, &[(1, 0)], &[])),
        ("twice in adds", update(6, &[(1, 0), (2, 0), (1, 0)], &[])),
        ("twice in removes", update(6, &[], &[1, 1])),
        ("in adds and removes", update(6, &[(1, 0)], &[2, 1])),
        ("a cursor above 2^63 - 1", update(6, &[(1, 1 << 63)], &[])),
    ];
    let mut bad = update(6, &[(1, 0)], &[]);
    bad.adds[0].topic = Some(long(1));
    cases.push(("a topic of a wrong length", bad.clone()));
    bad.adds[0].topic = None;
    cases.push(("no topic", bad.clone()));
    bad.adds[0] = update(6, &[(1, 0)], &[]).adds[0].clone();
    bad.adds[0].topic.as_mut().unwrap().topic = vec![9; 17].into();
    cases.push(("an unknown kind", bad));
    let mut bad = update(6, &[], &[1]);
    bad.removes[0] = long(1);
    cases.push(("a remove of no topic", bad));
    for (case, update) in cases {
        let mut world = World::open();
        world.update(5, &[], &[]);
        assert_eq!(world.take(), [Got::Applied(5, vec![])]);
        world.frame(Some(Request::Update(update)));
        assert_eq!(world.code(), Some(Code::InvalidArgument), "{case}");
        assert_eq!(world.take(), [], "{case}");
    }
    let mut world = World::open();
    world.frame(None);
    assert_eq!(world.code(), Some(Code::InvalidArgument), "no request");
    let mut world = World::open();
    let largest = Cursor { sequence_id: i64::MAX as u64 };
    world.update(1, &[(1, largest.sequence_id)], &[]);
    world.run();
    assert_eq!(world.take(), [Got::Applied(1, vec![(1, 0)])], "the largest cursor is valid");
}

#[test]
fn bounds_of_an_update_fail_the_stream_with_invalid_argument() {
    let limits =
        Limits { max_update_adds: 3, max_update_removes: 2, max_stream_topics: 4, ..Limits::default() };
    let open = || {
        let mut world = World::with(1, limits);
        world.update(1, &[(1, 0), (2, 0), (3, 0)], &[]);
        world.run();
        world.take();
        world
    };
    let refused = |adds: &[(u32, u64)], removes: &[u32]| {
        let mut world = open();
        world.update(2, adds, removes);
        world.run();
        world.code()
    };
    assert_eq!(refused(&[(4, 0)], &[]), None, "exactly max_stream_topics");
    assert_eq!(refused(&[(4, 0), (5, 0)], &[]), Some(Code::InvalidArgument));
    assert_eq!(refused(&[(4, 0), (5, 0)], &[1]), None, "counted after the removes");
    assert_eq!(refused(&[(4, 0), (1, 0), (2, 0)], &[]), None, "registered topics are not counted twice");
    assert_eq!(refused(&[(1, 0), (2, 0), (3, 0), (4, 0)], &[]), Some(Code::InvalidArgument), "adds");
    assert_eq!(refused(&[], &[1, 2]), None);
    assert_eq!(refused(&[], &[7, 8, 9]), Some(Code::InvalidArgument), "removes");
}

#[test]
fn trap_41_an_invalid_frame_does_not_overtake_the_applied_of_the_update_before_it() {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    world.update(2, &[(2, 0)], &[]);
    world.frame(None);
    world.update(3, &[(3, 0)], &[]);
    world.ping(9);
    assert_eq!((world.code(), world.take()), (None, vec![]), "nothing after it is read");
    world.control();
    world.control();
    assert_eq!(world.take(), [Got::Applied(1, vec![(1, 0)]), Got::Applied(2, vec![(2, 0)])]);
    assert_eq!(world.code(), Some(Code::InvalidArgument));
}

#[test]
fn api_258_each_bucket_is_exact_and_a_pong_costs_nothing() {
    let rate = Rate { per_second: 2, burst: 3 };
    let limits = Limits { updates: rate, pings: rate, ..Limits::default() };
    let mut world = World::with(1, limits);
    for frame in 1..=3 {
        world.ping(frame);
        world.update(frame, &[], &[]);
        world.pong(frame);
        world.pong(frame);
    }
    assert_eq!(world.code(), None, "both bursts");
    world.now += SECOND / 2;
    world.update(4, &[], &[]);
    world.ping(4);
    assert_eq!(world.code(), None, "one of each came back");
    let pings = world.take().iter().filter(|got| matches!(got, Got::Pong(_))).count();
    assert_eq!(pings, 4, "API-256");
    world.ping(5);
    assert_eq!(world.code(), Some(Code::ResourceExhausted));
    assert_eq!(world.take(), []);

    let mut world = World::with(1, limits);
    for id in 1..=4 {
        world.update(id, &[], &[]);
    }
    assert_eq!(world.take().len(), 3);
    assert_eq!(world.code(), Some(Code::ResourceExhausted));
}

#[test]
fn updates_that_wait_are_bounded_together() {
    let limits = Limits { max_request_bytes: 200, ..Limits::default() };
    let mut world = World::with(1, limits);
    world.update(1, &[(1, 0)], &[]);
    let mut sent = 1;
    while world.session.is_over() || world.controls.len() == 1 && sent < 20 {
        sent += 1;
        world.update(sent, &[(u32::try_from(sent).unwrap(), 0)], &[]);
    }
    world.run();
    let applied = world.take().iter().filter(|got| matches!(got, Got::Applied(..))).count();
    assert!((5..15).contains(&applied), "{applied}");
    assert_eq!(world.code(), Some(Code::ResourceExhausted), "behind the Updates that wait");
}

#[test]
fn trap_28_calls_of_an_update_are_bounded_by_partitions_and_six_are_under_way_at_once() {
    let mut world = World::with(64, Limits::default());
    let adds: Vec<_> = (0..10_000).map(|topic| (topic, 0)).collect();
    world.update(1, &adds, &[]);
    let mut calls = 0;
    while world.finished.is_none() && !world.controls.is_empty() {
        assert!(world.controls.len() <= 6);
        world.control();
        calls += 1;
    }
    assert_eq!(calls, 64);
    assert!(matches!(&world.take()[..], [Got::Applied(1, targets)] if targets.len() == 10_000));
}

#[test]
fn a_control_frame_that_does_not_fit_exhausts_the_stream() {
    let limits = Limits { max_response_bytes: 100, ..Limits::default() };
    let mut world = World::with(1, limits);
    world.update(1, &[(1, 0), (2, 0)], &[]);
    world.run();
    assert!(matches!(world.take()[..], [Got::Applied(1, _)]));
    world.update(2, &[(3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0)], &[]);
    world.run();
    assert_eq!(world.code(), Some(Code::ResourceExhausted));
    assert_eq!(world.take(), []);
}
