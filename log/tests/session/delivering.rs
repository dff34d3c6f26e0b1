//! Pushes, beside pages (rules 11, 13; API-252, 254).

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
