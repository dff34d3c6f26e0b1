//! What watches weigh: an isolate has 128 MB for its rows, its publishes and everything else.
//!
//! One test, so that nothing else allocates in this process while it watches the peak.

use bytes::Bytes;
use peak_alloc::PeakAlloc;
use sealog_log::native::Native;
use sealog_log::partition::watch::Watch as Machine;
use sealog_log::partition::{Action, Machine as _, Partition};
use sealog_log::{Nanos, SECOND};
use sealog_proto::backend::{Cursor, EnvelopeMeta, Topic};
use sealog_proto::internal::{ControlRequest, PushReply, Watch, control_reply::Verdict};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const NOON: Nanos = 1_800_000_000 * SECOND;
const MB: usize = 1_000_000;

#[track_caller]
fn grows_at_most<T>(bytes: usize, what: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = what();
    let grown = ALLOCATOR.peak_usage() - before;
    assert!(grown <= bytes, "grew by {grown} bytes, {bytes} allowed");
    result
}

fn topic(number: u32) -> Bytes {
    [&[0; 13][..], &number.to_be_bytes()].concat().into()
}

/// A partition in whose rows `sessions` sessions watch `topics(session)`.
fn stored(sessions: u32, topics: impl Fn(u32) -> std::ops::Range<u32>) -> Native {
    let storage = Native::new();
    Partition::load(&storage, NOON, 0).unwrap();
    let mut machine = Machine::new(0, 1, 0);
    for session in 0..sessions {
        let request = ControlRequest {
            session: [&[0; 28][..], &session.to_be_bytes()].concat().into(),
            number: 1,
            // Spread over the order of the topics, as they are in life.
            add: topics(session)
                .map(|number| Watch { topic: topic(number.wrapping_mul(2_654_435_761)), generation: 1 })
                .collect(),
            ..ControlRequest::default()
        };
        assert_eq!(machine.control(&storage, NOON, &request).unwrap().verdict(), Verdict::Done);
    }
    storage
}

fn loaded(storage: &Native) -> Machine {
    let mut machine = Machine::new(0, 2, 0);
    while machine.owes(NOON) == Some(0) {
        machine.alarm(storage, NOON).unwrap();
    }
    machine
}

/// A row on the first topic; the pushes that leave at once.
fn publish(storage: &Native, machine: &mut Machine) -> Vec<Action> {
    let mut news = machine.news();
    news.before(storage, &topic(0)).unwrap();
    let meta = EnvelopeMeta {
        topic: Some(Topic { topic: topic(0) }),
        cursor: Some(Cursor { sequence_id: 1 }),
        ..EnvelopeMeta::default()
    };
    news.stored(1, &meta, &vec![7; 1_000].into()).unwrap();
    let mark = news.mark(1).unwrap();
    let gathered = news.finish();
    machine.stored(gathered, mark).unwrap();
    let mut actions = Vec::new();
    machine.pump(NOON, &mut actions).unwrap();
    actions
}

/// Acknowledges everything; says how many pushes that took.
fn acknowledge(storage: &Native, machine: &mut Machine, mut actions: Vec<Action>) -> u32 {
    let mut calls = 0;
    loop {
        for action in std::mem::take(&mut actions) {
            let Action::Push { request, .. } = action else { panic!("only pushes") };
            let reply = PushReply { incarnation: 2, number: request.number, ..PushReply::default() };
            machine.pushed(storage, NOON, &request.session, (2, request.number), Some(&reply)).unwrap();
            machine.pump(NOON, &mut actions).unwrap();
            calls += 1;
        }
        if actions.is_empty() && machine.owes(NOON) == Some(0) {
            machine.alarm(storage, NOON).unwrap();
            machine.pump(NOON, &mut actions).unwrap();
        }
        if actions.is_empty() {
            return calls;
        }
    }
}

#[test]
fn watches_and_what_is_owed_stay_small() {
    // A fifth of what a partition may have: 200,000 watches of 80,000 topics.
    let storage = stored(2_000, |session| session * 40..session * 40 + 100);
    let machine = grows_at_most(12 * MB, || loaded(&storage));
    assert_eq!(machine.sizes(), (200_000, 80_060, 2_000));
    drop((machine, storage));

    let storage = stored(10_000, |_| 0..1);
    let mut machine = grows_at_most(7 * MB, || loaded(&storage));
    assert_eq!(machine.sizes(), (10_000, 1, 10_000));
    let actions = grows_at_most(5 * MB / 2, || publish(&storage, &mut machine));
    let calls = grows_at_most(MB / 5, || acknowledge(&storage, &mut machine, actions));
    assert_eq!(calls, 10_000);
}
