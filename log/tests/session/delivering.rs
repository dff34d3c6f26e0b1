//! Pushes and pages (rules 11, 13 to 16; API-252, 254, 261).

use sealog_log::SECOND;
use sealog_log::session::Limits;
use sealog_proto::internal::PullReply;
use sealog_proto::status::Code;

use crate::support::{Got, World};

/// A stream with topic 1 registered at 0, and current.
fn current() -> World {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    world.run();
    world.take();
    world
}

#[test]
fn api_254_history_then_live_each_once_and_in_order() {
    let mut world = World::open();
    let stored: Vec<u64> = (0..200).map(|_| world.store(1)).collect();
    world.update(1, &[(1, stored[9])], &[]);
    world.run();
    assert_eq!(world.rows(), stored[10..].iter().map(|id| (1, *id)).collect::<Vec<_>>());
    let live: Vec<u64> = (0..5).map(|_| world.publish(1, 1)).collect();
    assert_eq!(world.rows(), live.iter().map(|id| (1, *id)).collect::<Vec<_>>());
    assert!(world.pulls.is_empty(), "nothing is missing");
}

#[test]
fn api_254_a_cursor_above_the_head_delivers_only_what_is_above_it() {
    let mut world = World::open();
    let first = world.store(1);
    world.update(1, &[(1, first + 2)], &[]);
    world.run();
    assert_eq!(world.take(), [Got::Applied(1, vec![(1, first)])]);
    for _ in 0..2 {
        world.publish(1, 1);
    }
    assert_eq!(world.rows(), [], "not above the cursor");
    let above = world.publish(1, 1);
    assert_eq!(world.rows(), [(1, above)]);
    assert!(world.pulls.is_empty());
}

#[test]
fn trap_2_a_push_that_overtakes_the_reply_only_marks() {
    let mut world = World::open();
    world.update(1, &[(1, 0)], &[]);
    let sent = world.controls.pop_front().unwrap();
    let reply = world.answer_control(&sent); // target 0
    let id = world.publish(1, 1);
    assert_eq!(world.take(), [], "API-252: no envelope before its Applied");
    world.control_reply(&sent, Some(&reply));
    assert_eq!(world.take(), [Got::Applied(1, vec![(1, 0)])], "the target that was read");
    world.run();
    assert_eq!(world.rows(), [(1, id)], "known is a maximum, never an assignment");
}

#[test]
fn trap_3_rows_are_dropped_not_pushes() {
    let mut world = current();
    let first = world.publish(1, 1);
    let second = world.store(1);
    let grown = world.item(1, 1, 0);
    assert_eq!(grown.rows.len(), 2);
    world.push(vec![grown]);
    assert_eq!(world.rows(), [(1, first), (1, second)]);
}

#[test]
fn trap_4_the_end_of_a_page_is_not_the_head_of_the_topic() {
    let mut world = World::open();
    let first = world.store(1);
    world.update(1, &[(1, 0)], &[]);
    world.control();
    let pull = world.pulls.pop_front().unwrap();
    let page = world.answer_pull(&pull);
    let second = world.publish(1, 1);
    assert_eq!(world.rows(), [], "history is on its way");
    world.pull_reply(&pull, Some(page));
    assert_eq!(world.rows(), [(1, first)]);
    world.run();
    assert_eq!(world.rows(), [(1, second)]);
}

#[test]
fn trap_5_a_push_that_finds_a_gap_is_remembered_and_pulled() {
    let mut world = current();
    let lost = world.store(1);
    let id = world.publish(1, 1);
    assert_eq!(world.take(), []);
    world.run();
    assert_eq!(world.rows(), [(1, lost), (1, id)]);
    assert_eq!(world.session.take_counters().pulls_after_push, 1);
}

#[test]
fn rule_6_a_hint_is_pulled() {
    let mut world = current();
    let id = world.store(1);
    let hint = world.item(1, 1, id);
    assert!(hint.rows.is_empty());
    world.push(vec![hint.clone()]);
    world.run();
    assert_eq!(world.rows(), [(1, id)]);
    world.push(vec![hint]);
    assert_eq!((world.take(), world.pulls.len()), (vec![], 0), "what is known already is nothing");
    let counters = world.session.take_counters();
    assert_eq!((counters.hints, counters.items), (2, 2));
}

#[test]
fn trap_6_a_page_of_an_older_registration_does_not_count() {
    let mut world = World::open();
    let ids: Vec<u64> = (0..2).map(|_| world.store(1)).collect();
    world.update(1, &[(1, 0)], &[]);
    world.control();
    let pull = world.pulls.pop_front().unwrap();
    let page = world.answer_pull(&pull);
    world.update(2, &[], &[1]);
    world.update(3, &[(1, 0)], &[]);
    world.control();
    world.control();
    world.take();
    world.pull_reply(&pull, Some(page));
    assert_eq!(world.take(), []);
    world.run();
    assert_eq!(world.rows(), [(1, ids[0]), (1, ids[1])]);
}

#[test]
fn rule_13_pushes_of_every_order_and_any_number_of_copies_deliver_each_row_once() {
    // Three rows, pushed one by one, each up to twice, in every order.
    for order in 0..3_u32.pow(4) {
        let mut world = current();
        let ids: Vec<u64> = (0..3).map(|_| world.store(1)).collect();
        let items: Vec<_> = (0..3)
            .map(|nth| {
                let mut item = world.item(1, 1, if nth == 0 { 0 } else { ids[nth - 1] });
                item.rows.truncate(1);
                item.head = ids[nth];
                item
            })
            .collect();
        for place in 0..4 {
            let item = &items[(order / 3_u32.pow(place) % 3) as usize];
            world.push(vec![item.clone()]);
        }
        world.run();
        let newest = (0..4).map(|place| order / 3_u32.pow(place) % 3).max().unwrap() as usize;
        let got = world.rows();
        let want: Vec<_> = ids.iter().map(|id| (1, *id)).collect();
        assert!(got.len() > newest && want.starts_with(&got), "{order}: {got:?}");
    }
}

#[test]
fn trap_8_what_is_unwanted_names_the_watch_that_is_meant() {
    let mut world = current();
    world.update(2, &[], &[1]);
    world.update(3, &[(1, 0)], &[]);
    let id = world.store(1);
    let old = world.item(1, 1, 0);
    let reply = world.push(vec![old]);
    assert_eq!(reply.unwanted.len(), 1);
    assert_eq!(reply.unwanted[0].generation, 1, "not the watch of generation 3");
    world.run();
    assert_eq!(world.rows(), [(1, id)]);
}

#[test]
fn trap_11_a_push_into_history_only_marks() {
    let mut world = World::open();
    let ids: Vec<u64> = (0..2).map(|_| world.store(1)).collect();
    world.update(1, &[(1, 0)], &[]);
    world.control();
    world.take();
    let item = world.item(1, 1, 0);
    world.push(vec![item]);
    assert_eq!(world.take(), [], "position is below the target");
    world.run();
    assert_eq!(world.rows(), [(1, ids[0]), (1, ids[1])]);
}

#[test]
fn trap_26_a_push_is_answered_while_a_pull_of_the_same_partition_is_in_flight() {
    let mut world = World::open();
    world.store(1);
    world.update(1, &[(1, 0), (2, 0)], &[]);
    world.control();
    assert_eq!(world.pulls.len(), 1);
    world.take();
    let id = world.publish(2, 1);
    assert_eq!(world.rows(), [(2, id)], "and delivered: nothing of topic 2 is missing");
}

#[test]
fn assertions_f_and_m_a_push_that_contradicts_itself_fails_the_stream_with_internal() {
    let breaks: [fn(&mut sealog_proto::internal::push_request::Item); 5] = [
        |item| item.rows.swap(0, 1),
        |item| item.head += 1,
        |item| item.previous = item.head,
        |item| item.rows.clear(),
        |item| item.generation = 2,
    ];
    for (nth, break_it) in breaks.iter().enumerate() {
        let mut world = current();
        world.store(1);
        world.store(1);
        let mut item = world.item(1, 1, 0);
        break_it(&mut item);
        let reply = world.push(vec![item]);
        assert_eq!(world.code(), Some(Code::Internal), "{nth}");
        assert_eq!((world.take(), reply.gone), (vec![], true), "{nth}");
    }
}

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
fn api_261_every_topic_gets_its_first_helping_before_any_gets_a_second() {
    let mut world = World::with(4, Limits::default());
    let topics: Vec<u32> = (0..600).collect();
    for topic in &topics {
        for _ in 0..if topic % 100 == 0 { 500 } else { 1 } {
            world.store(*topic);
        }
    }
    world.update(1, &topics.iter().map(|topic| (*topic, 0)).collect::<Vec<_>>(), &[]);
    world.run();
    let mut served = std::collections::BTreeMap::new();
    let mut rows = 0;
    for got in world.take() {
        let Got::Rows(frame) = got else { continue };
        rows += frame.len();
        let mut topics: Vec<u32> = frame.iter().map(|(topic, _)| *topic).collect();
        topics.dedup();
        for topic in topics {
            let helpings = served.entry(topic).or_insert(0);
            *helpings += 1;
            assert!(*helpings == 1 || served.len() == 600, "a second helping while others had none");
        }
    }
    assert_eq!(rows, 6 * 500 + 594);
}

#[test]
fn trap_12_fairness_is_judged_when_the_frame_is_sent() {
    let mut world = World::with(2, Limits::default());
    let (a, b) = two_partitions(&world);
    let ids: Vec<u64> = (0..100).map(|_| world.store(a)).collect();
    let other = world.store(b);
    world.update(1, &[(a, 0)], &[]);
    world.control();
    world.pull();
    assert_eq!(world.rows().len(), 64);
    let second = world.pulls.pop_front().unwrap();
    let page = world.answer_pull(&second);
    world.update(2, &[(b, 0)], &[]);
    world.control();
    let first_of_b = world.pulls.pop_front().unwrap();
    world.take();
    world.pull_reply(&second, Some(page));
    assert_eq!(world.take(), [], "dropped: the other topic has had nothing");
    assert!(world.pulls.is_empty(), "and not asked for again yet");
    let page = world.answer_pull(&first_of_b);
    world.pull_reply(&first_of_b, Some(page));
    assert_eq!(world.rows(), [(b, other)]);
    world.run();
    assert_eq!(world.rows(), ids[64..].iter().map(|id| (a, *id)).collect::<Vec<_>>());
    let counters = world.session.take_counters();
    assert_eq!(counters.pages_dropped, 1);
}

#[test]
fn rule_16_rows_above_the_target_are_free_of_fairness() {
    let mut world = World::with(2, Limits::default());
    let (a, b) = two_partitions(&world);
    world.update(1, &[(a, 0)], &[]);
    world.run();
    world.store(b);
    world.update(2, &[(b, 0)], &[]);
    world.control();
    world.take();
    let id = world.store(a);
    let hint = world.item(a, 1, id);
    world.push(vec![hint]);
    assert_eq!(world.pulls.len(), 2, "both are asked for");
    let pull = world.pulls.pop_back().unwrap();
    let page = world.answer_pull(&pull);
    world.pull_reply(&pull, Some(page));
    assert_eq!(world.rows(), [(a, id)], "though the other topic has had nothing");
    let live = world.publish(a, 1);
    assert_eq!(world.rows(), [(a, live)]);
}

/// Two topics that live on different ones of two partitions.
fn two_partitions(world: &World) -> (u32, u32) {
    let other = (2..100).find(|topic| world.partition(*topic) != world.partition(1)).unwrap();
    (1, other)
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

#[test]
fn a_push_of_several_topics_is_one_frame() {
    let mut world = World::open();
    world.update(1, &[(1, 0), (2, 0)], &[]);
    world.run();
    world.take();
    let ids = [world.store(1), world.store(2), world.store(1)];
    let items = vec![world.item(1, 1, 0), world.item(2, 1, 0)];
    world.push(items);
    assert_eq!(world.take(), [Got::Rows(vec![(1, ids[0]), (1, ids[2]), (2, ids[1])])]);
}
