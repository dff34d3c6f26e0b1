//! Pings, keepalives and what a client that does not read costs (rule 18; API-255 to 257).

use sealog_log::session::{Action, Limits, Session};
use sealog_log::{Nanos, SECOND};
use sealog_proto::status::Code;

use crate::support::{Got, NOON, World};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn pings(got: &[Got]) -> Vec<u64> {
    got.iter().filter_map(|got| if let Got::Ping(nonce) = got { Some(*nonce) } else { None }).collect()
}

/// A stream with topic 1 registered at 0, and current.
fn current() -> World {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    world.run();
    world.take();
    world
}

/// A live row of so many bytes.
fn publish_of(world: &mut World, bytes: usize) {
    let previous = world.head(1);
    world.store_of(1, bytes);
    let item = world.item(1, 1, previous);
    world.push(vec![item]);
}

#[test]
fn api_255_a_silent_stream_gets_a_ping_every_interval_while_it_is_answered() {
    let mut world = World::open();
    for nth in 1..=10 {
        world.pass(30 * SECOND);
        world.sync();
        assert_eq!(world.take(), [Got::Ping(nth)]);
        world.now += SECOND;
        world.pong(nth);
        assert_eq!(world.take(), []);
        world.now -= SECOND;
    }
    assert_eq!(world.finished, None, "API-259: whether or not a topic is registered");
}

#[test]
fn api_257_an_unanswered_ping_is_never_doubled_and_ends_the_stream_after_its_time() {
    let mut world = World::open();
    world.pass(30 * SECOND);
    assert_eq!(world.take(), [Got::Ping(1)]);
    world.pong(7);
    world.pass(90 * SECOND);
    assert_eq!((world.take(), world.code()), (vec![], None));
    world.pass(SECOND);
    assert_eq!(world.code(), Some(Code::DeadlineExceeded));
    assert_eq!(world.now, NOON + (30 + 90 + 1) * SECOND);
    assert_eq!(world.take(), []);
}

#[test]
fn trap_36_a_pong_that_is_in_the_inbox_when_its_deadline_rings_is_found() {
    let mut world = World::open();
    world.pass(30 * SECOND);
    world.pass(90 * SECOND);
    assert_eq!(world.alarm_at, Some(world.now + SECOND), "looked for once more");
    world.pong(1);
    assert_eq!(pings(&world.take()), [1, 2], "30 s without a frame: at once (trap 34)");
    world.pass(5 * SECOND);
    assert_eq!(world.finished, None);
}

#[test]
fn trap_33_a_busy_stream_is_probed_too() {
    // A small frame every 20 s, and a client that sends Pings and reads nothing.
    let mut world = current();
    let began = world.now;
    let mut nonces = 0;
    while world.finished.is_none() {
        world.pass(20 * SECOND);
        if world.finished.is_none() {
            publish_of(&mut world, 10);
            nonces += 1;
            world.ping(nonces);
        }
        assert!(world.now - began < 200 * SECOND);
    }
    assert_eq!(world.code(), Some(Code::DeadlineExceeded));
    assert!(world.now - began <= (30 + 90 + 20 + 1) * SECOND);
}

#[test]
fn trap_34_no_keepalive_is_late_whenever_frames_leave_and_pongs_come() {
    // Frames and Pongs at any of these seconds.
    for frame in (0..60).step_by(5) {
        for pong_after in [0, 1, 9, 31, 45, 89] {
            let mut world = current();
            let (mut last, mut ping) = (world.now, None::<(u64, Nanos)>);
            for second in 0..400 {
                world.pass(SECOND);
                if second % 60 == frame {
                    publish_of(&mut world, 10);
                }
                if let Some((nonce, _)) = ping.take_if(|(_, at)| world.now >= *at + pong_after * SECOND) {
                    world.pong(nonce);
                }
                let got = world.take();
                if !got.is_empty() {
                    last = world.now;
                }
                for nonce in pings(&got) {
                    assert_eq!(ping, None, "API-257: one at a time");
                    ping = Some((nonce, world.now));
                }
                let silent = world.now - last;
                assert!(silent <= 30 * SECOND || ping.is_some(), "{frame} {pong_after}: {silent}");
            }
            assert_eq!(world.finished, None);
        }
    }
}

#[test]
fn trap_35_a_pong_acknowledges_only_what_was_sent_before_its_ping() {
    let mut world = current();
    publish_of(&mut world, 300 * KIB);
    let before = world.session.unacked();
    assert_eq!(pings(&world.take()), [1]);
    for _ in 0..10 {
        publish_of(&mut world, 300 * KIB);
    }
    assert_eq!(pings(&world.take()), [], "one is out");
    world.pong(1);
    assert!(world.session.unacked() > before * 9);
    assert_eq!(pings(&world.take()), [2], "and the next leaves at once");
    world.pong(2);
    assert!(world.session.unacked() < 100, "the Ping itself");
}

#[test]
fn trap_38_frames_set_no_alarm() {
    let mut world = current();
    let before = world.alarms_set;
    for _ in 0..100 {
        publish_of(&mut world, 10);
    }
    assert_eq!(world.alarms_set, before);
    world.pass(300 * SECOND);
    assert!(world.alarms_set - before <= 10);
}

#[test]
fn history_stops_at_4_mib_and_goes_on_with_each_pong() {
    let mut world = World::open();
    for _ in 0..40 {
        world.store_of(1, MIB);
    }
    world.update(1, &[(1, 0)], &[]);
    world.control();
    let mut most = 0;
    let mut rows = 0;
    for nonce in 1.. {
        while !world.pulls.is_empty() {
            world.pull();
            most = most.max(world.session.unacked());
        }
        world.sync();
        let got = world.take();
        rows += got.iter().map(|got| if let Got::Rows(rows) = got { rows.len() } else { 0 }).sum::<usize>();
        if pings(&got).is_empty() {
            break;
        }
        assert_eq!(pings(&got), [nonce]);
        world.pong(nonce);
    }
    assert_eq!(rows, 40);
    assert!(most <= 6 << 20, "{most}");
}

#[test]
fn a_client_that_stops_reading_while_current_meets_the_bound() {
    let mut world = current();
    let mut sent = 0;
    while world.finished.is_none() {
        publish_of(&mut world, MIB);
        sent += 1;
        assert!(world.session.unacked() <= 16 << 20);
    }
    assert_eq!(sent, 16);
    assert_eq!(world.code(), Some(Code::ResourceExhausted));
}

#[test]
fn a_push_to_a_registration_that_is_behind_sends_nothing_and_never_fails() {
    let mut world = World::open();
    for _ in 0..10 {
        world.store_of(1, MIB);
    }
    world.update(1, &[(1, 0)], &[]);
    world.control();
    while !world.pulls.is_empty() {
        world.pull();
    }
    let before = world.session.unacked();
    for _ in 0..100 {
        publish_of(&mut world, MIB);
    }
    assert_eq!((world.code(), world.session.unacked()), (None, before));
    world.pass(200 * SECOND);
    assert_eq!(world.code(), Some(Code::DeadlineExceeded), "it meets the Pong deadline");
}

#[test]
fn trap_37_with_much_unread_in_the_isolate_each_stream_holds_4_mib() {
    let mut world = current();
    world.elsewhere = 47 << 20;
    let mut sent = 0;
    while world.finished.is_none() {
        publish_of(&mut world, MIB);
        sent += 1;
    }
    assert_eq!(sent, 4);
    assert_eq!(world.code(), Some(Code::ResourceExhausted));
}

#[test]
fn api_256_a_ping_is_answered_with_its_nonce_while_an_update_waits() {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    world.ping(u64::MAX);
    assert_eq!(world.take(), [Got::Pong(u64::MAX)]);
}

#[test]
fn an_alarm_that_rings_twice_or_late_harms_nothing() {
    let mut world = World::open();
    world.event(Session::alarm);
    world.event(Session::alarm);
    assert_eq!(pings(&world.take()), [1]);
    world.now += 3_600 * SECOND;
    world.event(Session::alarm);
    assert_eq!(world.code(), None, "a late alarm looks once more");
    world.pong(1);
    world.event(Session::alarm);
    assert_eq!(world.code(), None);
    world.now -= 7_200 * SECOND;
    world.event(Session::alarm);
    assert!(
        world.last.iter().any(|action| matches!(action, Action::Alarm { .. })),
        "whatever the clock does"
    );
    assert_eq!(world.code(), None);
}

#[test]
fn the_intervals_are_settings() {
    let limits = Limits { keepalive_interval_ms: 1_000, max_pong_wait_ms: 3_000, ..Limits::default() };
    let mut world = World::with(1, limits);
    world.pass(SECOND);
    assert_eq!(world.take(), [Got::Ping(1)]);
    world.pass(4 * SECOND);
    assert_eq!(world.code(), Some(Code::DeadlineExceeded));
}
