//! Whose history comes first (rule 16, API-261).

use sealog_log::session::Limits;

use crate::support::{Got, World};

/// Two topics that live on different ones of two partitions.
fn two_partitions(world: &World) -> (u32, u32) {
    let other = (2..100).find(|topic| world.partition(*topic) != world.partition(1)).unwrap();
    (1, other)
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
