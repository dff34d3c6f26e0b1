//! Reads of identity logs: what admission folds, and what the repair walks.

mod support;

use bytes::Bytes;
use sealog_log::partition::{history, inboxes, known};
use sealog_proto::internal::{
    EnvelopeKey, HistoryRequest, InboxesRequest, KnownRequest, NewEnvelope, history_request,
};
use support::{World, envelope, update};

fn of(envelope: &NewEnvelope, after: u64) -> history_request::Inbox {
    history_request::Inbox { topic: envelope.topic.clone(), after, hash: envelope.hash.clone() }
}

/// An inbox whose updates came before facts were kept.
fn bare(inbox: u8, text: &str, head: u64) -> NewEnvelope {
    NewEnvelope { facts: None, ..update(inbox, text, head, Vec::new()) }
}

#[test]
fn api_232_a_history_is_told_with_its_head_its_length_and_its_facts() {
    let mut world = World::new();
    let [first, second] = [update(1, "a", 0, Vec::new()), bare(1, "b", 1)];
    world.store(vec![first.clone()]);
    world.store(vec![second.clone()]);
    let stranger = update(2, "x", 0, Vec::new());
    let request =
        HistoryRequest { inboxes: vec![of(&first, 0), of(&stranger, 0), of(&second, 1)], max_bytes: 1 << 20 };
    let reply = history(&world.storage, &request).unwrap();
    let [full, none, rest] = reply.inboxes.as_slice() else { panic!("one per inbox") };
    assert_eq!((full.head, full.count, full.stored, full.more), (2, 2, true, false));
    let [one, two] = full.entries.as_slice() else { panic!("both entries") };
    assert_eq!((one.sequence_id, one.server_ns), (1, world.now));
    assert_eq!((&one.facts, &one.body), (&first.facts, &None), "facts instead of the body");
    assert_eq!((&two.facts, &two.body), (&None, &Some(second.body.clone())), "the body of a row without");
    assert_eq!((none.head, none.count, none.stored, none.entries.len()), (0, 0, false, 0));
    assert_eq!((rest.head, rest.count, rest.entries.len()), (2, 2, 1), "above a position");
}

#[test]
fn a_long_history_comes_in_pages_and_each_has_at_least_one_entry() {
    let mut world = World::new();
    for number in 0..5_u64 {
        let facts = Some(Bytes::from(vec![7; 5_000]));
        world.store(vec![NewEnvelope { facts, ..update(1, &number.to_string(), number, Vec::new()) }]);
    }
    world.store(vec![update(2, "a", 0, Vec::new())]);
    let [first, other] = [update(1, "0", 0, Vec::new()), update(2, "a", 0, Vec::new())];
    let mut pages = Vec::new();
    let mut after = 0;
    loop {
        let request = HistoryRequest { inboxes: vec![of(&first, after), of(&other, 0)], max_bytes: 11_000 };
        let reply = history(&world.storage, &request).unwrap();
        let [page, second] = reply.inboxes.as_slice() else { panic!("one per inbox") };
        assert_eq!((page.head, page.count, second.head, second.count), (5, 5, 6, 1), "told on every page");
        pages.push((page.entries.len(), page.more, second.entries.len(), second.more));
        after = page.entries.last().unwrap().sequence_id;
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, [(2, true, 0, true), (2, true, 0, true), (1, false, 1, false)]);
    let tiny = HistoryRequest { inboxes: vec![of(&first, 0)], max_bytes: 0 };
    assert_eq!(history(&world.storage, &tiny).unwrap().inboxes[0].entries.len(), 1);
}

#[test]
fn api_222_known_says_which_envelopes_are_stored() {
    let mut world = World::new();
    world.store(vec![envelope(1, "a")]);
    let key = |envelope: NewEnvelope| EnvelopeKey { topic: envelope.topic, hash: envelope.hash };
    let envelopes = [envelope(1, "b"), envelope(1, "a"), envelope(2, "a")].map(key).to_vec();
    assert_eq!(known(&world.storage, &KnownRequest { envelopes }).unwrap().known, [false, true, false]);
}

#[test]
fn the_repair_walks_every_inbox_once() {
    let mut world = World::new();
    for inbox in 0..7 {
        world.store(vec![envelope(inbox, "group"), update(inbox, "a", 0, Vec::new())]);
    }
    let mut walked = Vec::new();
    loop {
        let after = walked.last().cloned().unwrap_or_default();
        let reply = inboxes(&world.storage, &InboxesRequest { after, limit: 3 }).unwrap();
        walked.extend(reply.topics.iter().cloned());
        if reply.topics.len() < 3 {
            break;
        }
    }
    let all: Vec<Bytes> = (0..7).map(|inbox| update(inbox, "a", 0, Vec::new()).topic).collect();
    assert_eq!(walked, all, "identity topics and no others");
}
