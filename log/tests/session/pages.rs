//! Pages of history (rules 14 and 15).

use sealog_log::SECOND;
use sealog_log::session::Limits;
use sealog_proto::internal::PullReply;
use sealog_proto::status::Code;

use crate::support::{Got, World};

#[test]
fn assertions_f_and_g_a_page_that_contradicts_itself_fails_the_stream_with_internal() {
    let breaks: [fn(&mut PullReply); 7] = [
        |page| page.items[0].rows.swap(0, 1),
        |page| page.items[0].through = page.items[0].head - 1,
        |page| page.items[0].head = page.items[0].through - 1,
        |page| page.items[0].through = 0,
        |page| page.items[0].after += 1,
        |page| {
            let item = page.items[0].clone();
            page.items.push(item);
        },
        |page| page.items[0].topic = crate::support::bytes(9),
    ];
    for (nth, break_it) in breaks.iter().enumerate() {
        let mut world = World::open();
        for _ in 0..3 {
            world.store(1);
        }
        world.update(1, &[(1, 0)], &[]);
        world.control();
        world.take();
        let pull = world.pulls.pop_front().unwrap();
        let mut page = world.answer_pull(&pull);
        break_it(&mut page);
        world.pull_reply(&pull, Some(page));
        assert_eq!(world.code(), Some(Code::Internal), "{nth}");
        assert_eq!(world.take(), [], "{nth}");
    }
}

#[test]
fn rule_14_a_pull_that_fails_is_repeated_and_a_partition_that_stays_silent_fails_the_stream() {
    let mut world = World::open();
    let id = world.store(1);
    world.update(1, &[(1, 0)], &[]);
    world.control();
    let late = world.pulls.pop_front().unwrap();
    let page = world.answer_pull(&late);
    world.pull_reply(&late, None);
    assert!(world.pulls.is_empty(), "a pause first");
    world.pass(SECOND);
    world.pull_reply(&late, Some(page));
    world.run();
    assert_eq!(world.rows(), [(1, id)], "once, though two pages came");

    let mut world = World::open();
    world.store(1);
    world.update(1, &[(1, 0)], &[]);
    world.control();
    let began = world.now;
    while world.finished.is_none() {
        let Some(pull) = world.pulls.pop_front() else {
            world.pass(SECOND / 10);
            continue;
        };
        world.pass(pull.deadline);
        world.pull_reply(&pull, None);
    }
    assert_eq!(world.code(), Some(Code::Unavailable));
    assert!(((20 * SECOND)..=(31 * SECOND)).contains(&(world.now - began)));
}

#[test]
fn rule_15_a_page_is_one_frame_of_at_most_two_mebibytes() {
    let mut world = World::open();
    for _ in 0..10 {
        world.store_of(1, 900_000);
    }
    for topic in 2..300 {
        world.store_of(topic, 20_000);
    }
    world.update(1, &(1..300).map(|topic| (topic, 0)).collect::<Vec<_>>(), &[]);
    world.control();
    while let Some(pull) = world.pulls.pop_front() {
        assert!(pull.request.positions.len() <= 256);
        let page = world.answer_pull(&pull);
        let before = world.got.iter().filter(|got| matches!(got, Got::Rows(_))).count();
        world.pull_reply(&pull, Some(page));
        let after = world.got.iter().filter(|got| matches!(got, Got::Rows(_))).count();
        assert_eq!(after - before, 1);
        while let Some(Got::Ping(nonce)) = world.got.pop_if(|got| matches!(got, Got::Ping(_))) {
            world.pong(nonce);
        }
    }
    assert!(world.frames.iter().all(|frame| frame.len() <= 2 << 20));
    assert_eq!(world.rows().len(), 10 + 298);
}

#[test]
fn rule_15_an_envelope_that_does_not_fit_goes_alone_or_exhausts_the_stream() {
    let mut world = World::open();
    world.store_of(1, 2_200_000);
    world.store(1);
    world.update(1, &[(1, 0)], &[]);
    world.run();
    assert_eq!(world.rows().len(), 2);
    let limits = Limits { max_response_bytes: 1_000, ..Limits::default() };
    let mut world = World::with(1, limits);
    world.store_of(1, 900);
    world.store_of(1, 1_000);
    world.update(1, &[(1, 0)], &[]);
    world.run();
    assert_eq!(world.rows().len(), 1);
    assert_eq!(world.code(), Some(Code::ResourceExhausted), "a stored envelope that cannot fit a frame");
}
