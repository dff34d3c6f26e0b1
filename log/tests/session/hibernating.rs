//! What survives a sleep, and what ends the stream (rules 2, 19, 20).

use sealog_log::session::{Action, Limits};
use sealog_log::{SECOND, Sql};
use sealog_proto::internal::control_request::Kind;
use sealog_proto::status::Code;

use crate::support::{Got, World, busy};

fn current(topics: u32) -> World {
    let mut world = World::open();
    world.update(1, &(0..topics).map(|topic| (topic, 0)).collect::<Vec<_>>(), &[]);
    world.run();
    world.take();
    assert!(!world.busy(), "nothing is in work, and all is durable");
    world
}

#[test]
fn trap_13_what_was_delivered_before_the_sleep_is_not_delivered_after_it() {
    let mut world = current(2);
    let first = world.publish(1, 1);
    world.take();
    world.restart();
    let second = world.store(1);
    let grown = world.item(1, 1, first - 1);
    assert_eq!(grown.rows.len(), 2);
    world.push(vec![grown]);
    assert_eq!(world.rows(), [(1, second)]);
    assert_eq!(world.finished, None);
}

#[test]
fn a_sleep_after_every_event_changes_nothing() {
    let mut world = World::open();
    for id in 1..=40_u64 {
        let topic = u32::try_from(id % 5).unwrap();
        let remove = u32::try_from((id + 2) % 5).unwrap();
        world.update(id, &[(topic, 0)], &[remove]);
        world.run();
        world.restart();
        let registered = world.logs[&0].watches.get(&topic).copied().unwrap();
        world.publish(topic, registered);
        world.run();
        world.restart();
        assert_eq!(world.finished, None, "{id}");
    }
    let mut last = std::collections::BTreeMap::new();
    for got in world.take() {
        match got {
            Got::Applied(_, targets) => last.extend(targets.iter().map(|(topic, _)| (*topic, 0))),
            Got::Rows(rows) => {
                for (topic, id) in rows {
                    assert!(last.insert(topic, id).is_some_and(|before| before < id));
                }
            }
            _ => {}
        }
    }
    assert_eq!(last.len(), 5);
    assert_eq!(world.session.take_counters().busy_restarts, 0);
}

#[test]
fn trap_10_numbers_and_generations_go_on_after_a_sleep() {
    let mut world = current(1);
    let before = world.logs[&0].highest;
    world.restart();
    world.update(2, &[(9, 0)], &[0]);
    let request = world.control();
    assert!(request.number > before);
    assert_eq!((request.add[0].generation, request.remove[0].generation), (2, 1));
    assert_eq!(world.take(), [Got::Applied(2, vec![(9, 0)])]);
    world.run();
    world.restart();
    world.update(2, &[], &[]);
    assert_eq!(world.code(), Some(Code::InvalidArgument), "API-251: ids too");
}

#[test]
fn trap_14_behind_and_quiet_asks_for_the_heads_after_waking() {
    let mut world = World::open();
    for _ in 0..4 {
        world.store_of(1, 1_500_000);
    }
    world.update(1, &[(1, 0), (2, 0)], &[]);
    world.control();
    while !world.pulls.is_empty() {
        world.pull();
        world.sync();
    }
    let got = world.rows();
    assert!(got.len() < 4, "history waits for a Pong");
    assert!(!world.busy(), "with nothing in flight: the object may hibernate");
    world.restart();
    let sync = world.controls[0].request.clone();
    assert_eq!((sync.kind(), sync.add.len()), (Kind::Sync, 2));
    assert!(world.busy());
    let push = world.publish(2, 1);
    assert_eq!(world.rows(), [(2, push)], "rule 20: pushes follow rule 13 meanwhile");
    world.control();
    assert!(world.pulls.is_empty(), "still no room");
    world.pong(1);
    assert!(!world.pulls.is_empty());
    world.run();
    assert_eq!(got.len() + world.rows().len(), 4);
    let counters = world.session.take_counters();
    assert_eq!((counters.syncs, counters.sync_repairs), (1, 0));
}

#[test]
fn rule_20_a_push_may_overtake_the_answer_to_a_sync() {
    let mut world = World::open();
    for _ in 0..4 {
        world.store_of(1, 1_500_000);
    }
    world.update(1, &[(1, 0), (2, 0)], &[]);
    world.control();
    while !world.pulls.is_empty() {
        world.pull();
    }
    world.sync();
    world.restart();
    let sync = world.controls.pop_front().unwrap();
    let heads = world.answer_control(&sync);
    world.take();
    let id = world.publish(2, 1);
    assert_eq!(world.rows(), [(2, id)]);
    world.control_reply(&sync, Some(&heads));
    assert_eq!(world.code(), None, "the heads are older, and none fell");
}

#[test]
fn trap_14_an_answer_to_an_earlier_waking_is_void() {
    let mut world = World::open();
    for _ in 0..4 {
        world.store_of(1, 1_500_000);
    }
    world.update(1, &[(1, 0)], &[]);
    world.control();
    while !world.pulls.is_empty() {
        world.pull();
    }
    world.sync();
    world.restart();
    let earlier = world.controls.pop_front().unwrap();
    let answer = world.answer_control(&earlier);
    world.control_reply(&earlier, Some(&answer));
    assert!(!world.busy(), "quiet again, and behind");
    world.restart();
    let sync = world.controls[0].clone();
    assert!(sync.request.number > earlier.request.number);
    world.control_reply(&earlier, Some(&answer));
    world.event(|session, ctx| session.control_reply(ctx, 0, sync.request.number, Some(&answer)));
    assert!(world.busy(), "the sync goes on");
}

#[test]
fn trap_15_memory_lost_in_work_fails_the_stream() {
    // In the middle of an Update, of a pull, and of a sync.
    let update = |world: &mut World| world.update(2, &[(9, 0)], &[]);
    let pull = |world: &mut World| {
        let id = world.store(1);
        let hint = world.item(1, 1, id);
        world.push(vec![hint]);
    };
    let background = |world: &mut World| {
        world.update(2, &[], &[1]);
        world.sync();
    };
    let begin: [fn(&mut World); 3] = [update, pull, background];
    for (nth, begin) in begin.iter().enumerate() {
        let mut world = current(2);
        begin(&mut world);
        assert!(world.busy(), "{nth}");
        world.restart();
        assert_eq!(world.code(), Some(Code::Unavailable), "{nth}");
        assert_eq!(world.session.take_counters().busy_restarts, 1);
        assert_eq!(world.controls[0].request.kind(), Kind::Bye, "its watches go");
    }
}

#[test]
fn trap_16_a_stream_is_busy_until_its_writes_are_durable() {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    world.control();
    assert_eq!(world.take(), [Got::Applied(1, vec![(1, 0)])]);
    assert!(world.busy(), "the row of the registration");
    let numbers: Vec<u64> = world.syncs.drain(..).collect();
    for number in numbers {
        assert!(world.busy());
        world.event(|session, ctx| session.synced(ctx, number));
    }
    assert!(!world.busy());
    world.pass(30 * SECOND);
    assert!(world.busy(), "the alarm is a write too");
    world.sync();
    assert!(!world.busy());
}

#[test]
fn trap_16_an_attachment_that_is_ahead_of_storage_fails_the_stream() {
    let mut world = current(1);
    let before = world.attachment.clone();
    world.update(2, &[(5, 0)], &[]);
    world.run();
    world.attachment = before;
    world.restart();
    assert_eq!(world.code(), Some(Code::Unavailable), "storage has another version");
}

#[test]
fn rule_19_busy_is_written_before_the_first_frame_of_an_event() {
    let mut world = current(1);
    world.publish(0, 1);
    let order: Vec<_> = world
        .last
        .iter()
        .filter_map(|action| match action {
            Action::Attach(bytes) => Some(busy(bytes)),
            Action::Send(_) => None,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(order, [true, false]);
    assert!(matches!(world.last[..], [Action::Attach(_), Action::Send(_), Action::Attach(_)]));
    let during = world.attached[0].clone();
    world.attachment = Some(during);
    world.restart();
    assert_eq!(world.code(), Some(Code::Unavailable), "an instance that died between two frames");
}

#[test]
fn trap_17_while_busy_something_is_pending() {
    let mut world = current(1);
    world.update(2, &[(9, 0)], &[]);
    let sent = world.controls.pop_front().unwrap();
    world.control_reply(&sent, None);
    assert!(world.busy());
    assert!(world.wakes.iter().any(|at| *at > world.now), "a timer, until the retry");
}

#[test]
fn rule_19_many_positions_make_the_stream_dirty_until_they_are_stored() {
    let mut world = current(1_000);
    let mut ids = Vec::new();
    for topic in 0..800 {
        ids.push(world.publish(topic, 1));
    }
    let whole = world.attachment.clone().unwrap();
    assert!((9_000..13 << 10).contains(&whole.len()), "{}", whole.len());
    world.restart();
    assert_eq!(world.finished, None, "800 fit the attachment");
    ids.push(world.publish(800, 1));
    let dirty = world.attachment.clone();
    assert!(world.wakes.iter().any(|at| *at <= world.now + 5 * SECOND), "a timer keeps the object awake");
    world.pass(5 * SECOND);
    assert!(world.busy(), "until they are durable");
    world.sync();
    world.take();
    world.restart();
    assert_eq!(world.finished, None);
    for (topic, id) in (0..).zip(&ids) {
        let item = world.item(topic, 1, id - 1);
        assert_eq!(item.rows.len(), 1);
        world.push(vec![item]);
    }
    assert_eq!(world.take(), [], "every position is kept");
    world.attachment = dirty;
    world.restart();
    assert_eq!(world.code(), Some(Code::Unavailable));
}

#[test]
fn trap_39_keepalives_do_not_load_the_registrations() {
    let mut world = current(3);
    world.restart();
    // With the journal gone, only what does not read it goes well.
    world.sql.run("UPDATE blocks SET body = x'ff'", &[]).unwrap();
    for _ in 0..3 {
        world.pass(30 * SECOND);
        world.sync();
        let Some(Got::Ping(nonce)) = world.take().pop() else { panic!("a keepalive") };
        world.restart();
        world.pong(nonce);
        world.ping(4);
        assert_eq!(world.take(), [Got::Pong(4)]);
        world.restart();
    }
    assert_eq!(world.finished, None);
    world.update(2, &[], &[]);
    assert_eq!(world.code(), Some(Code::Internal), "it is gone, after all");
}

#[test]
fn an_attachment_of_another_format_fails_the_stream_and_its_watches_still_go() {
    let mut world = current(2);
    world.attachment = Some(vec![8, 99]);
    world.restart();
    assert_eq!(world.code(), Some(Code::Unavailable));
    world.run();
    assert!(world.logs[&0].watches.is_empty());
    assert!(world.deleted);
}

#[test]
fn a_stream_of_many_changes_keeps_a_journal_of_bounded_length() {
    let limits = Limits::default();
    let mut world = World::with(1, limits);
    for id in 1..=60 {
        let topics: Vec<u32> = (0..500).map(|topic| topic + u32::try_from(id % 2).unwrap() * 1_000).collect();
        let gone: Vec<u32> =
            (0..500).map(|topic| topic + u32::try_from((id + 1) % 2).unwrap() * 1_000).collect();
        world.now += SECOND;
        world.update(id, &topics.iter().map(|topic| (*topic, 3)).collect::<Vec<_>>(), &gone);
        world.run();
    }
    let row = world.sql.first("SELECT count(*), sum(length(body)) FROM blocks", &[]).unwrap().unwrap();
    assert!(row[0].integer().unwrap() <= 5, "{row:?}");
    assert!(row[1].integer().unwrap() < 150_000, "{row:?}");
    world.restart();
    world.update(99, &[(7, 0), (1_007, 0)], &[]);
    world.run();
    let Some(Got::Applied(99, targets)) = world.take().pop() else { panic!("applied") };
    assert_eq!(targets.len(), 1, "one of the two is registered, as before the sleep");
}

#[test]
fn rule_1_a_socket_whose_acceptance_never_became_durable_is_failed() {
    let mut world = World::open();
    for table in ["stream", "blocks", "schema_migrations"] {
        world.sql.run(&format!("DROP TABLE {table}"), &[]).unwrap();
    }
    world.restart();
    assert_eq!(world.code(), Some(Code::Unavailable));
    assert_eq!(world.faults, []);
    assert!(world.deleted);
}

#[test]
fn a_stream_whose_topics_are_all_removed_sleeps_and_goes_on() {
    // With positions that were stored, with positions that are to be stored, and without any.
    for (stored, moved) in [(0, 0), (900, 0), (900, 900), (0, 900)] {
        let mut world = current(1_200);
        for (topics, pause) in [(stored, 5 * SECOND), (moved, 0)] {
            for topic in 0..topics {
                world.publish(topic, 1);
            }
            world.pass(pause);
            world.sync();
        }
        world.take();
        world.update(2, &[], &(0..1_200).collect::<Vec<_>>());
        world.run();
        assert_eq!(world.take(), [Got::Applied(2, vec![])]);
        world.pass(5 * SECOND);
        world.sync();
        let row = world.sql.first("SELECT count(*) FROM blocks", &[]).unwrap().unwrap();
        assert!(row[0].integer().unwrap() <= 1, "the journal is rewritten, and empty");
        world.restart();
        assert_eq!(world.finished, None, "{stored} {moved}");
    }
}

#[test]
fn a_storage_that_fails_makes_the_stream_unavailable() {
    let mut world = World::open();
    world.sql.run("DROP TABLE blocks", &[]).unwrap();
    world.update(1, &[(1, 0)], &[]);
    world.control();
    assert_eq!(world.code(), Some(Code::Unavailable));
    assert_eq!(world.take(), [], "no Applied for what is not stored");
    assert_eq!(world.faults.len(), 1);
}

#[test]
fn api_281_a_stored_block_that_makes_no_sense_fails_the_stream_with_internal() {
    let mut world = current(2);
    world.restart();
    let id = world.store(1);
    let item = world.item(1, 1, id - 1);
    world.sql.run("UPDATE blocks SET body = x'ff'", &[]).unwrap();
    assert!(world.push(vec![item]).gone, "the stream is over");
    assert_eq!(world.code(), Some(Code::Internal));
    assert_eq!(world.take(), []);
}

#[test]
fn a_message_that_is_lost_with_the_instance_that_read_it_fails_the_stream() {
    let mut world = current(1);
    world.attachment = world.session.reading();
    world.restart();
    assert_eq!(world.code(), Some(Code::Unavailable));
    let mut world = current(1);
    world.update(2, &[(7, 0)], &[]);
    assert_eq!(world.session.reading(), None, "it is busy already");
}
