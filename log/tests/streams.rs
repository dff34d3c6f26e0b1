//! What a partition does for the streams that watch its topics: a step, its rows and its pushes are one event.

mod support;

use bytes::Bytes;
use sealog_log::participant::{self, Action, Machine};
use sealog_log::{SECOND, Sql, Txid};
use sealog_proto::internal::{
    ControlReply, ControlRequest, DecideRequest, NewEnvelope, PushReply, PushRequest, Share, StageRequest,
    Watch,
};
use support::{World, envelope, id, request, topic};

fn session(number: u8) -> Bytes {
    vec![number; 32].into()
}

/// A session watches groups.
fn watch(world: &mut World, number: u8, groups: &[u8]) -> ControlReply {
    let add = groups.iter().map(|group| Watch { topic: topic(*group), generation: 1 }).collect();
    let request = ControlRequest { session: session(number), number: 1, add, ..ControlRequest::default() };
    let World { partition, storage, now, .. } = world;
    partition.control(storage, *now, &request).unwrap().0
}

fn pushes(actions: &[Action]) -> Vec<PushRequest> {
    let push = |action: &Action| match action {
        Action::Push { request, .. } => Some(request.clone()),
        _ => None,
    };
    actions.iter().filter_map(push).collect()
}

fn alarms(actions: &[Action]) -> Vec<u64> {
    let after = |action: &Action| match action {
        Action::Alarm { after } => Some(*after),
        _ => None,
    };
    actions.iter().filter_map(after).collect()
}

/// What of each topic a push tells: the head before, and the ids.
fn told(push: &PushRequest) -> Vec<(u64, Vec<u64>)> {
    push.items
        .iter()
        .map(|item| (item.previous, item.rows.iter().map(|row| id(row.meta.as_ref().unwrap())).collect()))
        .collect()
}

/// Publishes, and returns what the step that stores it wants to be done.
fn step(world: &mut World, envelopes: Vec<NewEnvelope>) -> Vec<Action> {
    let (_, actions) = world.send(envelopes);
    let reply = world.ask(&request(&actions));
    let actions = world.receive(&reply);
    // The confirmation that follows, so that the next publish is asked for at once.
    world.now += SECOND;
    let confirm = world.partition.wake(world.now);
    world.run(confirm);
    actions
}

fn acknowledge(world: &mut World, push: &PushRequest) -> Vec<Action> {
    let reply = PushReply { incarnation: push.incarnation, number: push.number, ..PushReply::default() };
    let World { partition, storage, now, .. } = world;
    partition.pushed(storage, *now, &push.session, (push.incarnation, push.number), Some(&reply)).unwrap()
}

fn mark(world: &World) -> u64 {
    let row = world.storage.first("SELECT pushed_through FROM progress", &[]).unwrap().unwrap();
    row[0].uint8().unwrap()
}

#[test]
fn rule_7_rows_answers_pushes_and_the_alarm_are_one_event() {
    let mut world = World::new();
    assert_eq!(world.store(vec![envelope(1, "a")]).len(), 1);
    assert_eq!(watch(&mut world, 9, &[1, 2]).heads.iter().map(|head| head.head).collect::<Vec<_>>(), [1, 0]);
    let actions =
        step(&mut world, vec![envelope(2, "b"), envelope(1, "c"), envelope(3, "d"), envelope(1, "e")]);
    assert!(actions.iter().any(|action| matches!(action, Action::Answer { .. })), "nobody waits for it");
    let pushes = pushes(&actions);
    assert_eq!(pushes.len(), 1, "one for the session and the batch");
    assert_eq!(told(&pushes[0]), [(1, vec![3, 5]), (0, vec![2])]);
    let row = &pushes[0].items[0].rows[0];
    assert_eq!(row.envelope, envelope(1, "c").body);
    let meta = row.meta.as_ref().unwrap();
    assert!(meta.server_ns > 0 && meta.expiry_ns > meta.server_ns && meta.message_hash.is_some());
    assert_eq!(alarms(&actions), [2 * SECOND], "its waker");
}

#[test]
fn a_duplicate_is_not_pushed() {
    let mut world = World::new();
    watch(&mut world, 9, &[1]);
    step(&mut world, vec![envelope(1, "a")]);
    assert!(pushes(&step(&mut world, vec![envelope(1, "a")])).is_empty());
    let mut world = World::new();
    watch(&mut world, 9, &[1]);
    let actions = step(&mut world, vec![envelope(1, "b"), envelope(1, "b"), envelope(1, "c")]);
    assert_eq!(told(&pushes(&actions)[0]), [(0, vec![1, 3])]);
}

#[test]
fn what_a_transaction_brings_is_pushed_when_it_is_applied() {
    let mut world = World::new();
    watch(&mut world, 9, &[1, 2]);
    let txid = Txid::new([1; 16], world.now + 60 * SECOND);
    let part = StageRequest {
        txid: txid.to_bytes(),
        envelopes: vec![envelope(1, "a"), envelope(2, "b")],
        ..StageRequest::default()
    };
    let World { partition, storage, now, .. } = &mut world;
    let (_, staged) = partition.stage(storage, *now, &part).unwrap();
    assert!(pushes(&staged).is_empty(), "invisible");
    let share = Share { participant: Some(participant::log(0)), count: 2, bytes: 2 };
    let decide = DecideRequest { txid: txid.to_bytes(), shares: vec![share] };
    world.sequencer.decide(&world.sequencer_storage, world.now, &decide).unwrap();
    // With a publish on the same topic, in the same step.
    let (_, actions) = world.send(vec![envelope(1, "c")]);
    let reply = world.ask(&request(&actions));
    let actions = world.receive(&reply);
    assert_eq!(told(&pushes(&actions)[0]), [(0, vec![1, 3]), (0, vec![2])]);
}

#[test]
fn rule_7_another_alarm_does_not_put_it_off() {
    let mut world = World::new();
    watch(&mut world, 9, &[1]);
    world.partition.alarm(&world.storage, world.now).unwrap();
    let txid = Txid::new([1; 16], world.now + 60 * SECOND);
    let part =
        StageRequest { txid: txid.to_bytes(), envelopes: vec![envelope(5, "z")], ..StageRequest::default() };
    let World { partition, storage, now, .. } = &mut world;
    let (_, staged) = partition.stage(storage, *now, &part).unwrap();
    assert_eq!(alarms(&staged), [10 * SECOND]);
    let actions = step(&mut world, vec![envelope(1, "a")]);
    assert_eq!(alarms(&actions), [2 * SECOND], "sooner");
    let other = Txid::new([2; 16], world.now + 60 * SECOND);
    let part = StageRequest { txid: other.to_bytes(), envelopes: vec![envelope(5, "y")], ..part };
    let World { partition, storage, now, .. } = &mut world;
    assert!(alarms(&partition.stage(storage, *now, &part).unwrap().1).is_empty(), "it stays");
}

#[test]
fn rule_8_the_mark_is_written_with_the_rows() {
    let mut world = World::new();
    watch(&mut world, 9, &[1]);
    let writes = world.storage.writes.get();
    let actions = step(&mut world, vec![envelope(1, "a")]);
    assert_eq!(
        world.storage.writes.get() - writes,
        3,
        "a row, its head, the progress; nothing for the watcher"
    );
    assert_eq!(mark(&world), 0);
    acknowledge(&mut world, &pushes(&actions)[0]);
    step(&mut world, vec![envelope(2, "b")]);
    assert_eq!(mark(&world), 2);
    assert!(pushes(&world.restart_partition()).is_empty(), "nothing is told again");

    step(&mut world, vec![envelope(1, "c")]);
    step(&mut world, vec![envelope(2, "d")]);
    assert_eq!(mark(&world), 2, "not acknowledged");
    let first = world.restart_partition();
    assert_eq!(told(&pushes(&first)[0]), [(3, vec![])], "trap 22: the head only");
    assert_eq!(alarms(&first), [2 * SECOND]);
    assert_eq!(pushes(&first)[0].incarnation, 3);
}

#[test]
fn rule_8_the_mark_is_written_with_the_alarm_when_nothing_is_owed() {
    let mut world = World::new();
    watch(&mut world, 9, &[1]);
    let actions = step(&mut world, vec![envelope(1, "a")]);
    acknowledge(&mut world, &pushes(&actions)[0]);
    let writes = world.storage.writes.get();
    let World { partition, storage, now, .. } = &mut world;
    *now += 2 * SECOND;
    assert_eq!(alarms(&partition.alarm(storage, *now).unwrap()), [3_600 * SECOND], "a write in any case");
    assert_eq!(mark(&world), 1);
    assert_eq!(world.storage.writes.get() - writes, 1);
    assert!(pushes(&world.restart_partition()).is_empty(), "nothing is told again");
    assert_eq!(world.storage.writes.get() - writes, 2, "the incarnation");
}

#[test]
fn nobody_watches_and_nothing_is_different() {
    let mut world = World::new();
    let actions = step(&mut world, vec![envelope(1, "a"), envelope(2, "b")]);
    assert!(pushes(&actions).is_empty());
    assert!(alarms(&actions).is_empty(), "no alarm, no row of one");
    let first = world.restart_partition();
    assert!(pushes(&first).is_empty() && alarms(&first).is_empty());
    assert_eq!(mark(&world), 2);
}

#[test]
fn a_failed_step_leaves_nothing_owed_that_is_not_stored() {
    let mut world = World::new();
    watch(&mut world, 9, &[1]);
    let (_, actions) = world.send(vec![envelope(1, "a"), envelope(1, "b")]);
    let reply = world.ask(&request(&actions));
    world.storage.fail_at.set(2);
    world.partition.reserved(&world.storage, world.now, &reply).unwrap_err();
    let first = world.restart_partition();
    assert!(pushes(&first).is_empty());
    let actions = step(&mut world, vec![envelope(1, "b")]);
    assert_eq!(told(&pushes(&actions)[0])[0].0, 0);
}
