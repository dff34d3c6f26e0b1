//! Reads against a plain model of the log.

mod support;

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use sealog_log::partition::{newest, read};
use sealog_proto::internal::{NewestRequest, ReadPosition, ReadRequest};
use support::{World, envelope, id, topic};

fn position(group: u8, after: u64) -> ReadPosition {
    ReadPosition { topic: topic(group), after }
}

fn request(positions: Vec<ReadPosition>, limit: u32) -> ReadRequest {
    ReadRequest { positions, limit, max_bytes: 1 << 20 }
}

#[test]
fn api_240_rows_above_the_position_in_order_and_none_left_out() {
    let mut world = World::new();
    for n in 0..10 {
        world.store(vec![envelope(n % 2, &n.to_string())]);
    }
    let reply =
        read(&world.storage, &request(vec![position(0, 3), position(1, 0), position(7, 0)], 6)).unwrap();
    let ids: Vec<u64> = reply.envelopes.iter().map(|row| id(row.meta.as_ref().unwrap())).collect();
    assert_eq!(ids, [5, 7, 9, 2, 4, 6]);
    assert!(reply.more && !reply.cut);
    let all = read(&world.storage, &request(vec![position(0, 3), position(1, 0)], 8)).unwrap();
    assert_eq!((all.envelopes.len(), all.more), (8, false), "exactly the limit is not more");
}

#[test]
fn a_read_is_cut_by_bytes_but_never_to_nothing() {
    let mut world = World::new();
    for text in ["a", "b"] {
        let mut large = envelope(1, text);
        large.body = Bytes::from(vec![7; 10_000]);
        world.store(vec![large]);
    }
    let small = ReadRequest { max_bytes: 100, ..request(vec![position(1, 0)], 10) };
    let reply = read(&world.storage, &small).unwrap();
    assert_eq!(reply.envelopes.len(), 1, "the first row always fits");
    assert!(reply.more && reply.cut);
}

#[test]
fn api_244_the_newest_row_of_each_topic_that_has_one() {
    let mut world = World::new();
    for n in 0..200_u8 {
        world.store(vec![envelope(n, "old")]);
        world.store(vec![envelope(n, "new")]);
    }
    let topics: Vec<Bytes> = (0..=255).map(topic).collect();
    let ask =
        |include_envelope| NewestRequest { topics: topics.clone(), include_envelope, max_bytes: 1 << 20 };
    let full = newest(&world.storage, &ask(true)).unwrap();
    assert_eq!(full.results.len(), 200);
    for result in &full.results {
        assert_eq!(result.envelope.as_deref(), Some(&b"new"[..]));
        assert_eq!(result.topic, result.meta.as_ref().unwrap().topic);
        assert_eq!(id(result.meta.as_ref().unwrap()) % 2, 0);
    }
    let bare = newest(&world.storage, &ask(false)).unwrap();
    assert!(bare.results.iter().all(|result| result.envelope.is_none()));
}

#[test]
fn newest_says_when_it_is_cut() {
    let mut world = World::new();
    world.store(vec![envelope(1, "a"), envelope(2, "b")]);
    let ask = NewestRequest { topics: vec![topic(1), topic(2)], include_envelope: true, max_bytes: 300 };
    assert!(newest(&world.storage, &ask).unwrap().cut);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is stored and asked, a page is what the model says: per topic the lowest ids above the position, none
    /// omitted, topics in request order, and `more` exactly when something was left.
    #[test]
    fn api_240_pages_equal_the_model(
        writes in prop::collection::vec(0..12_u8, 0..60),
        asks in prop::collection::btree_map(0..16_u8, 0..70_u64, 0..16),
        limit in 1..40_u32,
    ) {
        let mut world = World::new();
        let mut model: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        for (n, group) in writes.iter().enumerate() {
            let metas = world.store(vec![envelope(*group, &n.to_string())]);
            model.entry(*group).or_default().push(id(&metas[0]));
        }
        let positions = asks.iter().map(|(group, after)| position(*group, *after)).collect();
        let reply = read(&world.storage, &request(positions, limit)).unwrap();
        let eligible: Vec<u64> = asks
            .iter()
            .flat_map(|(group, after)| model.get(group).into_iter().flatten().filter(move |id| *id > after))
            .copied()
            .collect();
        let ids: Vec<u64> = reply.envelopes.iter().map(|row| id(row.meta.as_ref().unwrap())).collect();
        let expected: Vec<u64> = eligible.iter().take(limit as usize).copied().collect();
        prop_assert_eq!(ids, expected);
        prop_assert_eq!(reply.more, eligible.len() > limit as usize);
        prop_assert!(!reply.cut);
    }
}
