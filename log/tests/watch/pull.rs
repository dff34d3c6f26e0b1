//! Pages: rules 14 and 15.

use bytes::Bytes;
use sealog_log::Sql;
use sealog_log::partition::watch::pull;
use sealog_proto::internal::{PullReply, PullRequest, pull_reply::Item, pull_request::Position};

use crate::support::{World, topic};

const ROOM: u64 = 2 << 20;

fn ask(world: &World, budget: u64, positions: &[(Bytes, u64)]) -> PullReply {
    let positions = positions
        .iter()
        .map(|(topic, after)| Position { topic: topic.clone(), generation: 7, after: *after })
        .collect();
    let writes = world.storage.writes.get();
    let page = pull(&world.storage, &PullRequest { number: 3, budget, positions }).unwrap();
    assert_eq!(world.storage.writes.get(), writes);
    assert_eq!(page.number, 3);
    page
}

fn ids(item: &Item) -> Vec<u64> {
    item.rows.iter().map(|row| row.meta.as_ref().unwrap().cursor.unwrap().sequence_id).collect()
}

#[test]
fn rule_14_a_complete_page_goes_through_to_the_head() {
    let mut world = World::new();
    world.commit(&[(topic(1), 10), (topic(2), 10), (topic(1), 10)]);
    let page = ask(&world, ROOM, &[(topic(1), 1), (topic(2), 0), (topic(3), 0)]);
    let told: Vec<_> = page.items.iter().map(|item| (ids(item), item.through, item.head)).collect();
    assert_eq!(told, [(vec![3], 3, 3), (vec![2], 2, 2), (vec![], 0, 0)]);
    assert!(page.items.iter().all(|item| item.generation == 7));
    assert_eq!((page.items[0].after, page.untouched.len()), (1, 0));
    assert_eq!(page.items[0].rows[0].envelope.len(), 10, "as it is stored");
}

#[test]
fn rule_14_a_cursor_above_the_head_reads_nothing() {
    let mut world = World::new();
    world.publish(&topic(1));
    let page = ask(&world, ROOM, &[(topic(1), 99)]);
    assert_eq!((ids(&page.items[0]), page.items[0].head), (vec![], 1));
}

#[test]
fn rule_14_what_has_expired_is_passed_over() {
    let mut world = World::new();
    world.commit(&vec![(topic(1), 10); 3]);
    world.storage.run("DELETE FROM envelopes WHERE sequence_id > x'0000000000000001'", &[]).unwrap();
    let page = ask(&world, ROOM, &[(topic(1), 1)]);
    assert_eq!((ids(&page.items[0]), page.items[0].through), (vec![], 3), "complete, up to the head");
}

#[test]
fn rule_15_64_rows_of_a_topic() {
    let mut world = World::new();
    world.commit(&vec![(topic(1), 10); 100]);
    let page = ask(&world, ROOM, &[(topic(1), 10)]);
    assert_eq!((ids(&page.items[0]), page.items[0].through), ((11..=74).collect(), 74));
    let page = ask(&world, ROOM, &[(topic(1), 36)]);
    assert_eq!((page.items[0].rows.len(), page.items[0].through), (64, 100));
}

#[test]
fn rule_15_256_topics_of_a_page() {
    let mut world = World::new();
    let all: Vec<_> = (0..300).map(|n| (topic(n), 0)).collect();
    world.commit(&all.iter().map(|(topic, _)| (topic.clone(), 10)).collect::<Vec<_>>());
    let page = ask(&world, ROOM, &all);
    assert_eq!((page.items.len(), page.untouched.len()), (256, 44));
    assert_eq!(page.untouched[0], topic(256));
}

#[test]
fn rule_15_the_budget_is_kept_and_the_first_row_always_fits() {
    let mut world = World::new();
    world.commit(&[(topic(1), 5_000), (topic(1), 10), (topic(2), 10), (topic(3), 10)]);
    let page = ask(&world, 100, &[(topic(1), 0), (topic(2), 0), (topic(9), 0), (topic(3), 0)]);
    assert_eq!((ids(&page.items[0]), page.items[0].through, page.items[0].head), (vec![1], 1, 2));
    assert_eq!(page.untouched, [topic(2), topic(3)], "a topic without news needs no room");
    assert_eq!(page.items[1].topic, topic(9));
    // 256 bytes are counted for the metadata of each row.
    let page = ask(&world, 5_256 + 266, &[(topic(1), 0), (topic(2), 0)]);
    assert_eq!((ids(&page.items[0]), page.items[0].through), (vec![1, 2], 2));
    assert_eq!(page.untouched, [topic(2)]);
}

#[test]
fn rule_15_a_page_in_which_the_budget_ends_between_two_topics() {
    let mut world = World::new();
    world.commit(&[(topic(1), 10), (topic(2), 10)]);
    let page = ask(&world, 300, &[(topic(1), 0), (topic(2), 0)]);
    assert_eq!((page.items.len(), page.items[0].through, page.untouched.len()), (1, 1, 1));
}
