//! The partition against its rules. "Trap n" is a hole that an earlier draft of the protocol had.

mod support;

use sealog_log::partition::{Action, Machine, Reply};
use sealog_log::{Fault, MILLISECOND, SECOND, Sql};
use sealog_proto::internal::{SettleRequest, StoreReply, failure::Kind, store_reply::Refusal};
use support::{World, envelope, envelope_on, has_request, id, request};

fn stored(answer: &Result<StoreReply, sealog_proto::internal::Failure>) -> Vec<u64> {
    answer.as_ref().expect("stored").metas.iter().map(id).collect()
}

#[test]
fn api_221_one_entry_per_envelope_in_order() {
    let mut world = World::new();
    let metas = world.store(vec![envelope(1, "a"), envelope(2, "b"), envelope(1, "a"), envelope(1, "c")]);
    assert_eq!(metas.iter().map(id).collect::<Vec<_>>(), [1, 2, 1, 4], "a duplicate leaves its id unused");
    assert!(metas.iter().all(|meta| meta.server_ns == world.now), "API-212: one time for one publish");
    assert!(metas.iter().all(|meta| meta.expiry_ns == world.now + 60 * SECOND));
}

#[test]
fn publishes_gather_behind_the_request_under_way() {
    let mut world = World::new();
    let (_, first) = world.send(vec![envelope(1, "a")]);
    let under_way = request(&first);
    for text in ["b", "c", "d"] {
        let (_, actions) = world.send(vec![envelope(1, text)]);
        assert!(actions.is_empty(), "one request counts at a time");
    }
    let reply = world.ask(&under_way);
    let actions = world.receive(&reply);
    let next = request(&actions);
    assert_eq!(next.count, 3, "the next batch asks for all of them");
    assert_eq!(next.applied, reply.first_id, "and says what is applied");
    let answers = world.run(actions);
    assert_eq!(answers.iter().map(|(_, answer)| stored(answer)).collect::<Vec<_>>(), [[1], [2], [3], [4]]);
}

#[test]
fn rule_3_only_the_reply_to_the_newest_request_counts() {
    let mut world = World::new();
    let (_, actions) = world.send(vec![envelope(1, "a")]);
    let first = request(&actions);
    let late = world.ask(&first);
    let actions = world.partition.reserve_failed(world.now, first.number);
    assert!(!has_request(&actions), "a pause first");
    world.now += SECOND;
    let second = request(&world.partition.wake(world.now));
    assert_eq!((second.incarnation, second.number), (first.incarnation, first.number + 1));
    assert!(world.receive(&late).is_empty(), "trap 4: the reply to an earlier attempt");
    let reply = world.ask(&second);
    assert!(world.receive(&reply).iter().any(|action| matches!(action, Action::Answer { .. })));
}

#[test]
fn rule_3_a_reply_to_a_dead_instance_does_not_count() {
    let mut world = World::new();
    let (_, actions) = world.send(vec![envelope(1, "a")]);
    let old = request(&actions);
    let late = world.ask(&old);
    world.restart_partition();
    let (_, actions) = world.send(vec![envelope(1, "b")]);
    let new = request(&actions);
    assert_eq!(new.number, old.number, "trap 6: numbers begin anew");
    assert_eq!(new.incarnation, old.incarnation + 1);
    assert!(world.receive(&late).is_empty());
}

#[test]
fn rule_3_a_reply_of_an_ended_epoch_is_void_and_asked_again_at_once() {
    let mut world = World::new();
    let (_, actions) = world.send(vec![envelope(1, "a")]);
    let late = world.ask(&request(&actions));
    world.restart_sequencer();
    let epoch = world.sequencer.epoch();
    assert!(epoch > late.epoch);
    let settle = SettleRequest { epoch };
    let (reply, _) = world.partition.settle(&world.storage, world.now, &settle).unwrap();
    assert_eq!(reply.epoch, epoch);
    // Trap 8: the sequencer counts this partition as settled; the old ids may not land any more.
    let actions = world.receive(&late);
    let again = request(&actions);
    assert_eq!((again.epoch_seen, again.count), (epoch, 1));
    let answers = world.run(actions);
    assert!(stored(&answers[0].1)[0] > epoch);
}

#[test]
fn rule_8_the_newest_epoch_outlives_the_instance() {
    let mut world = World::new();
    let (_, actions) = world.send(vec![envelope(1, "a")]);
    let late = world.ask(&request(&actions));
    world.restart_sequencer();
    let settle = SettleRequest { epoch: world.sequencer.epoch() };
    world.partition.settle(&world.storage, world.now, &settle).unwrap();
    world.restart_partition();
    let (_, actions) = world.send(vec![envelope(1, "a")]);
    assert_eq!(request(&actions).epoch_seen, settle.epoch, "trap 24");
    assert!(late.epoch < settle.epoch);
}

#[test]
fn rule_1_time_limits_and_pauses_grow() {
    let mut world = World::new();
    let (_, mut actions) = world.send(vec![envelope(1, "a")]);
    let mut deadlines = Vec::new();
    for _ in 0..5 {
        let Some(Action::Reserve { request, deadline }) = actions.pop() else { panic!("a request") };
        deadlines.push(deadline / SECOND);
        world.partition.reserve_failed(world.now, request.number);
        world.now += SECOND;
        actions = world.partition.wake(world.now);
    }
    assert_eq!(deadlines, [1, 2, 4, 8, 8]);
    let answers = world.run(actions);
    assert_eq!(stored(&answers[0].1), [1], "nothing is lost on the way");
}

#[test]
fn a_publish_that_waited_too_long_is_told_so() {
    let mut world = World::new();
    let (_, actions) = world.send(vec![envelope(1, "a")]);
    let number = request(&actions).number;
    world.now += 13 * SECOND;
    let actions = world.partition.reserve_failed(world.now, number);
    let Some(Action::Answer { reply: Err(failure), .. }) = actions.first() else { panic!("an answer") };
    assert_eq!(failure.kind(), Kind::Deadline);
}

#[test]
fn api_222_duplicates_of_a_stored_a_waiting_and_the_same_publish() {
    let mut world = World::new();
    let first = world.store(vec![envelope(1, "a")]);
    world.now += SECOND;
    assert_eq!(world.store(vec![envelope(1, "a")]), first, "id and time of the row");
    let (_, actions) = world.send(vec![envelope(1, "b")]);
    let (_, _) = world.send(vec![envelope(1, "b"), envelope(1, "c")]);
    let answers = world.run(actions);
    assert_eq!(stored(&answers[0].1)[0], stored(&answers[1].1)[0], "both in flight");
    let other = world.store(vec![envelope(2, "a")]);
    assert_ne!(id(&other[0]), id(&first[0]), "the same bytes on another topic are another envelope");
}

#[test]
fn api_222_a_duplicate_writes_nothing() {
    let mut world = World::new();
    world.store(vec![envelope(1, "a")]);
    let before = world.storage.writes.get();
    world.store(vec![envelope(1, "a"), envelope(1, "a")]);
    assert_eq!(count(&world), 1);
    let tried = world.storage.writes.get() - before;
    assert_eq!(tried, 2, "inserts that found rows; no head, no progress");
}

fn count(world: &World) -> i64 {
    world.storage.first("SELECT count(*) FROM envelopes", &[]).unwrap().unwrap()[0].integer().unwrap()
}

#[test]
fn api_232_one_update_per_head_also_inside_a_batch() {
    let mut world = World::new();
    let (_, actions) = world.send(vec![envelope(9, "z")]);
    world.send(vec![envelope_on(1, "a", 0)]);
    world.send(vec![envelope_on(1, "b", 0)]); // trap 17: checked against the head that "a" leaves
    world.send(vec![envelope_on(1, "a", 0)]); // trap 18: stored by now, whatever the head is
    let answers = world.run(actions);
    assert_eq!(stored(&answers[1].1), stored(&answers[3].1));
    let refused = answers[2].1.as_ref().unwrap();
    assert_eq!(refused.refusal(), Refusal::HeadMoved);
    assert!(refused.metas.is_empty());
}

#[test]
fn api_220_a_refused_publish_leaves_no_row() {
    let mut world = World::new();
    world.store(vec![envelope(1, "a")]);
    let (_, actions) = world.send(vec![envelope(2, "b"), envelope_on(1, "c", 0)]);
    let (_, _) = world.send(vec![envelope(2, "d")]);
    let answers = world.run(actions);
    assert_eq!(answers[0].1.as_ref().unwrap().refusal(), Refusal::HeadMoved);
    assert_eq!(count(&world), 2, "\"a\" and \"d\"; nothing of the refused publish");
    assert_eq!(stored(&answers[1].1).len(), 1, "the rest of the batch goes on");
}

#[test]
fn rule_6_a_step_is_all_or_nothing() {
    // Three rows in statements of one row, three heads likewise, and the progress.
    for failing_write in 1..=7 {
        let mut world = World::new();
        let (_, actions) = world.send(vec![envelope(9, "z")]);
        let first = request(&actions);
        world.send(vec![envelope(1, "a"), envelope(2, "b")]);
        world.send(vec![envelope(1, "c")]);
        let reply = world.ask(&first);
        let actions = world.receive(&reply);
        let reply = world.ask(&request(&actions));
        let before = count(&world);
        world.storage.fail_at.set(failing_write);
        let fault = world.partition.reserved(&world.storage, world.now, &reply).unwrap_err();
        assert!(matches!(fault, Fault::Sql(_)));
        assert_eq!(count(&world), before, "write {failing_write}");
        // The shell ends the instance; nobody is left without an answer, and a retry stores each once.
        world.storage.fail_at.set(0);
        world.restart_partition();
        world.store(vec![envelope(1, "a"), envelope(2, "b")]);
        world.store(vec![envelope(1, "c")]);
        assert_eq!(count(&world), before + 3);
    }
}

#[test]
fn an_ended_instance_answers_every_publish() {
    let mut world = World::new();
    world.send(vec![envelope(1, "a")]);
    world.send(vec![envelope(1, "b")]);
    let machine = world.partition;
    let answers = machine.abandon();
    assert_eq!(answers.len(), 2);
    for answer in answers {
        let Action::Answer { reply: Err(failure), .. } = answer else { panic!("an answer") };
        assert_eq!(failure.kind(), Kind::Unavailable);
    }
}

#[test]
fn rule_16_the_last_batch_is_confirmed_and_then_it_rests() {
    let mut world = World::new();
    let (_, actions) = world.send(vec![envelope(1, "a")]);
    let reply = world.ask(&request(&actions));
    let actions = world.receive(&reply);
    assert!(actions.contains(&Action::Wake { after: 50 * MILLISECOND }), "trap 25");
    world.now += 50 * MILLISECOND;
    let trailing = request(&world.partition.wake(world.now));
    assert_eq!((trailing.count, trailing.applied), (0, reply.first_id));
    let writes = (world.storage.writes.get(), world.sequencer_storage.writes.get());
    let reply = world.ask(&trailing);
    assert!(world.receive(&reply).is_empty(), "after an empty round it rests");
    assert!(world.partition.wake(world.now).is_empty());
    assert_eq!((world.storage.writes.get(), world.sequencer_storage.writes.get()), writes, "for free");
    assert_eq!(world.sequencer.boundary(&world.sequencer_storage).unwrap(), 1);
}

#[test]
fn rule_16_ids_that_nobody_used_are_given_back() {
    let mut world = World::new();
    world.store(vec![envelope(1, "a")]);
    let trailing = request(&world.partition.wake(world.now));
    let reply = world.ask(&trailing);
    world.receive(&reply);
    let (_, actions) = world.send(vec![envelope(1, "a")]); // a duplicate: takes an id, stores nothing
    let reply = world.ask(&request(&actions));
    let actions = world.receive(&reply);
    assert!(actions.contains(&Action::Wake { after: 50 * MILLISECOND }));
    let trailing = request(&world.partition.wake(world.now));
    world.ask(&trailing);
    assert_eq!(world.sequencer.boundary(&world.sequencer_storage).unwrap(), 2, "or the boundary would wait");
}

#[test]
fn a_full_queue_refuses_at_once() {
    let mut world = World::new();
    world.send(vec![envelope(1, "a")]);
    let mut refused = None;
    for n in 0..5_000 {
        let (_, actions) = world.send(vec![envelope(1, &n.to_string())]);
        if let [Action::Answer { reply: Ok(Reply::Store(reply)), .. }] = actions.as_slice() {
            refused = Some(reply.refusal());
            break;
        }
    }
    assert_eq!(refused, Some(Refusal::Busy));
}

#[test]
fn rule_5_a_batch_is_bounded_and_nothing_is_left_behind() {
    let mut world = World::new();
    let (_, actions) = world.send(vec![envelope(9, "z")]);
    for n in 0..1_200 {
        world.send(vec![envelope(1, &n.to_string())]);
    }
    let reply = world.ask(&request(&actions));
    let actions = world.receive(&reply);
    assert_eq!(request(&actions).count, 512);
    assert_eq!(world.run(actions).len(), 1_201);
}

#[test]
fn assertions_stop_an_instance_that_is_told_the_impossible() {
    let mut world = World::new();
    world.store(vec![envelope(1, "a")]);
    let (_, actions) = world.send(vec![envelope(1, "b")]);
    let good = world.ask(&request(&actions));
    let mut low = good.clone();
    low.first_id = 1;
    let fault = world.partition.reserved(&world.storage, world.now, &low).unwrap_err();
    assert!(matches!(fault, Fault::Invariant(_)), "an id below a stored one");
}

#[test]
fn an_empty_publish_is_answered_at_once() {
    let mut world = World::new();
    let (call, actions) = world.send(vec![]);
    assert_eq!(actions, [Action::Answer { call, reply: Ok(Reply::Store(StoreReply::default())) }]);
}
