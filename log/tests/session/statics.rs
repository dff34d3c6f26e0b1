//! Static streams (rule 23; API-254, 255, 259 to 261).

use sealog_log::SECOND;
use sealog_log::session::{Action, Limits, Session};
use sealog_proto::internal::control_request::Kind;
use sealog_proto::status::Code;

use crate::support::{Got, World, row_count};

fn open(topics: &[(u32, u64)]) -> World {
    World::open_static(4, Limits::default(), topics).expect("a good request")
}

/// Every write resolves.
fn read_all(world: &mut World) {
    for frame in std::mem::take(&mut world.frames) {
        let bytes = frame.len() as u64;
        world.event(|session, ctx| session.written(ctx, bytes));
    }
}

fn run(world: &mut World) {
    while !(world.controls.is_empty() && world.pulls.is_empty()) {
        world.run();
        read_all(world);
    }
}

#[test]
fn api_260_started_is_first_and_has_all_targets_in_request_order() {
    let mut world = open(&[(9, 0), (1, 0), (30, 7), (4, 0)]);
    let id = world.store(1);
    assert!(world.controls.iter().all(|sent| sent.request.kind() == Kind::Static));
    while !world.controls.is_empty() {
        assert_eq!(world.take(), [], "not before all targets are there");
        world.control();
    }
    assert_eq!(world.take()[0], Got::StartedAt(vec![(9, 0), (1, id), (30, 0), (4, 0)]));
    run(&mut world);
    assert_eq!(world.rows(), [(1, id)]);
}

#[test]
fn api_260_and_bounds_a_bad_request_is_refused_before_anything_is_sent() {
    let limits = Limits { max_static_topics: 2, ..Limits::default() };
    for topics in [&[][..], &[(1, 0), (1, 5)], &[(1, 0), (2, 0), (3, 0)], &[(1, 1 << 63)]] {
        let refused = World::open_static(1, limits, topics).err().expect("refused");
        assert_eq!(refused.code, Code::InvalidArgument, "{topics:?}");
    }
    assert!(World::open_static(1, limits, &[(1, 0), (2, 0)]).is_ok());
}

#[test]
fn api_254_history_and_live_on_a_static_stream() {
    let mut world = open(&[(1, 0), (2, 0)]);
    let stored: Vec<u64> = (0..150).map(|_| world.store(1)).collect();
    run(&mut world);
    assert_eq!(world.rows().len(), 150);
    let live = world.publish(2, 1);
    let gap = world.store(1);
    let next = world.publish(1, 1);
    run(&mut world);
    assert_eq!(world.rows(), [(2, live), (1, gap), (1, next)]);
    assert!(stored.iter().all(|id| *id < gap));
}

#[test]
fn api_255_keepalive_only_after_an_interval_without_a_frame() {
    let mut world = open(&[(1, 0)]);
    world.pass(29 * SECOND);
    assert_eq!(world.take(), [], "Started is first");
    run(&mut world);
    world.take();
    for _ in 0..5 {
        world.pass(29 * SECOND);
        assert_eq!(world.take(), []);
        world.pass(SECOND);
        assert_eq!(world.take(), [Got::Keepalive]);
        read_all(&mut world);
        world.pass(20 * SECOND);
        world.publish(1, 1);
        read_all(&mut world);
        assert_eq!(world.take().len(), 1);
    }
    assert_eq!(world.finished, None, "API-259");
}

#[test]
fn rule_23_a_write_that_does_not_resolve_exhausts_the_stream() {
    let mut world = open(&[(1, 0)]);
    run(&mut world);
    for _ in 0..4 {
        world.pass(20 * SECOND);
        world.publish(1, 1);
    }
    assert_eq!(world.finished, None);
    let first = world.frames[0].len() as u64;
    world.event(|session, ctx| session.written(ctx, first));
    world.pass(49 * SECOND);
    assert_eq!(world.finished, None, "the oldest is younger");
    world.pass(SECOND);
    assert_eq!(world.code(), Some(Code::ResourceExhausted));
}

#[test]
fn rule_23_unread_output_is_bounded_alike() {
    let mut world = open(&[(1, 0), (2, 0)]);
    for _ in 0..40 {
        world.store_of(1, 1 << 20);
    }
    world.run();
    assert!(world.session.unacked() <= 6 << 20, "history waits for the reader");
    world.frames.clear();
    while world.finished.is_none() {
        let before = world.head(2);
        world.store_of(2, 1 << 20);
        let item = world.item(2, 1, before);
        world.push(vec![item]);
        assert!(world.session.unacked() <= 16 << 20);
    }
    assert_eq!(world.code(), Some(Code::ResourceExhausted));
}

#[test]
fn rule_23_a_rejected_write_ends_the_stream_and_nothing_is_ever_stored() {
    let mut world = open(&[(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]);
    run(&mut world);
    world.publish(1, 1);
    world.event(Session::closed);
    assert_eq!(world.finished, None);
    let item = world.item(1, 1, 0);
    assert!(world.push(vec![item]).gone);
    world.run();
    assert!(world.deleted);
    assert!(world.logs.values().all(|log| log.watches.is_empty()));
    assert_eq!(row_count(&world), 0);
    let none = world
        .last
        .iter()
        .any(|it| matches!(it, Action::Attach(_) | Action::Alarm { .. } | Action::Sync { .. }));
    assert!(!none);
}

#[test]
fn rule_11_an_object_without_memory_of_its_static_stream_says_gone() {
    let mut world = open(&[(1, 0)]);
    run(&mut world);
    world.attachment = None;
    world.restart();
    world.store(1);
    let item = world.item(1, 1, 0);
    assert!(world.push(vec![item]).gone);
    assert_eq!(row_count(&world), 0);
}

#[test]
fn rule_3_a_silent_partition_fails_a_static_stream_before_started() {
    let mut world = open(&[(1, 0)]);
    while world.finished.is_none() {
        match world.controls.pop_front() {
            Some(sent) => {
                world.pass(sent.deadline);
                world.control_reply(&sent, None);
            }
            None => world.pass(SECOND),
        }
    }
    assert_eq!((world.take(), world.code()), (vec![], Some(Code::Unavailable)));
}
