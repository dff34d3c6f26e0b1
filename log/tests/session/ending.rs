//! How streams end (rules 1, 11, 22; API-259).

use bytes::Bytes;
use sealog_log::session::{Limits, Session, Status};
use sealog_log::{SECOND, Sql};
use sealog_proto::internal::control_request::Kind;
use sealog_proto::status::Code;

use crate::support::{Got, World};

fn tables(world: &World) -> i64 {
    let row = world.sql.first("SELECT count(*) FROM sqlite_schema", &[]).unwrap().unwrap();
    row[0].integer().unwrap()
}

/// A stream with 20 topics on 4 partitions.
fn current() -> World {
    let mut world = World::with(4, Limits::default());
    world.update(1, &(0..20).map(|topic| (topic, 0)).collect::<Vec<_>>(), &[]);
    world.run();
    world.take();
    world
}

/// What the object does when it deletes its storage.
fn delete(world: &World) {
    for table in ["stream", "blocks", "schema_migrations"] {
        world.sql.run(&format!("DROP TABLE {table}"), &[]).unwrap();
    }
}

#[test]
fn api_259_a_half_close_answers_what_was_accepted_and_ends_with_ok() {
    let mut world = current();
    for _ in 0..3 {
        world.store(30);
    }
    world.update(2, &[(30, 0)], &[]);
    world.update(3, &[(31, 0)], &[]);
    world.event(Session::half_close);
    world.ping(1);
    assert_eq!((world.take(), world.code()), (vec![], None), "later frames are ignored");
    while world.finished.is_none() {
        world.control();
    }
    let got = world.take();
    let applied: Vec<_> = got.iter().filter(|got| matches!(got, Got::Applied(..))).collect();
    assert_eq!(applied.len(), 2);
    assert_eq!(world.finished, Some(Status::new(Code::Ok, "")));
}

#[test]
fn api_259_a_half_close_with_nothing_in_work_ends_at_once() {
    let mut world = World::open();
    world.event(Session::half_close);
    assert_eq!(world.code(), Some(Code::Ok));
    assert!(world.deleted, "nobody is to be told");
}

#[test]
fn rule_22_the_end_is_stored_the_partitions_are_told_and_then_all_is_deleted() {
    let mut world = current();
    world.event(|session, ctx| session.fail(ctx, Status::new(Code::InvalidArgument, "text")));
    assert_eq!(world.code(), Some(Code::InvalidArgument));
    assert_eq!(world.controls.len(), 4);
    assert!(!world.deleted);
    while !world.controls.is_empty() {
        assert_eq!(world.control().kind(), Kind::Bye);
    }
    assert!(world.deleted);
    assert!(world.logs.values().all(|log| log.watches.is_empty() && log.byes == 1));
}

#[test]
fn rule_22_a_bye_is_tried_twice() {
    let mut world = current();
    world.event(Session::closed);
    assert_eq!(world.finished, None, "nobody reads a status");
    let mut tries = 0;
    while !world.deleted {
        match world.controls.pop_front() {
            Some(sent) => {
                tries += 1;
                world.control_reply(&sent, None);
            }
            None => world.pass(SECOND),
        }
    }
    assert_eq!(tries, 8);
}

#[test]
fn rule_22_byes_go_to_every_partition_that_may_watch_also_of_an_update_in_work() {
    let mut world = World::with(4, Limits::default());
    world.update(1, &(0..20).map(|topic| (topic, 0)).collect::<Vec<_>>(), &[]);
    let lost = world.controls.pop_front().unwrap();
    world.answer_control(&lost);
    world.event(Session::closed);
    world.controls.retain(|sent| sent.request.kind() == Kind::Bye);
    assert_eq!(world.controls.len(), 4);
    world.run();
    assert!(world.logs.values().all(|log| log.watches.is_empty()));
}

#[test]
fn rule_1_a_socket_lost_without_a_close_ends_the_stream_and_its_byes_are_spread() {
    let mut world = current();
    world.attachment = None;
    world.restart();
    assert!(world.session.is_over());
    let at = world.alarm_at.unwrap();
    assert!(at <= world.now + 600 * SECOND);
    world.store(1);
    let item = world.item(1, 1, 0);
    assert!(world.push(vec![item]).gone, "rule 11: storage shows it");
    world.event(Session::alarm);
    assert!(world.controls.is_empty(), "not before its time");
    assert_eq!(world.alarm_at, Some(at));
    world.restart();
    assert!(world.session.is_over(), "still");
    world.pass(600 * SECOND);
    assert_eq!(world.controls.len(), 4);
    world.run();
    assert!(world.deleted);
    assert!(world.logs.values().all(|log| log.watches.is_empty()));
}

#[test]
fn rule_22_an_object_that_died_while_it_told_the_partitions_tells_them_again() {
    let mut world = current();
    world.event(Session::closed);
    world.control();
    world.attachment = None;
    world.restart();
    assert!(world.controls.is_empty());
    world.event(Session::alarm);
    assert!(world.alarm_at.is_some_and(|at| at > world.now), "were it to die again");
    world.run();
    assert!(world.deleted);
    assert!(world.logs.values().all(|log| log.watches.is_empty()));
}

#[test]
fn trap_40_a_late_push_to_a_finished_stream_leaves_no_storage() {
    let mut world = current();
    world.event(Session::closed);
    world.run();
    delete(&world);
    world.restart();
    let id = world.store(1);
    let item = world.item(1, 1, id - 1);
    assert!(world.push(vec![item]).gone);
    world.event(Session::alarm);
    world.event(Session::wake);
    assert_eq!(tables(&world), 0);
}

#[test]
fn rule_1_an_object_holds_one_stream_once() {
    let mut world = current();
    world.event(Session::accept);
    assert_eq!(world.code(), Some(Code::Internal));
    let mut world = current();
    world.event(Session::closed);
    world.event(Session::accept);
    assert!(!world.session.is_absent());
    assert_eq!(world.take(), []);
}

#[test]
fn nothing_that_comes_after_the_end_has_an_effect() {
    let mut world = current();
    world.update(2, &[(50, 0)], &[]);
    let late = world.controls.pop_front().unwrap();
    let reply = world.answer_control(&late);
    world.event(|session, ctx| session.fail(ctx, Status::new(Code::InvalidArgument, "text")));
    assert_eq!(world.code(), None, "behind the Update");
    world.event(Session::closed);
    world.control_reply(&late, Some(&reply));
    world.update(3, &[(51, 0)], &[]);
    world.event(|session, ctx| session.data(ctx, Bytes::from_static(&[9, 9])));
    world.event(Session::half_close);
    world.event(|session, ctx| session.synced(ctx, 99));
    world.event(Session::start);
    assert_eq!((world.take(), world.code()), (vec![], None));
    world.run();
    assert!(world.deleted);
}

#[test]
fn a_socket_that_never_sends_a_header_block_is_closed() {
    let mut world = World::idle(1, Limits::default());
    world.event(Session::accept);
    world.pass(89 * SECOND);
    assert_eq!((world.take(), world.code()), (vec![], None));
    world.pass(SECOND);
    assert_eq!(world.code(), Some(Code::DeadlineExceeded));
}
