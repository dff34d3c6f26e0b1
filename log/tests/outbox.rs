//! What stored identity updates owe to the Directories (API-270), and how it reaches them.

mod support;

use sealog_log::participant::{self, Action, Machine};
use sealog_log::{SECOND, Sql, Txid};
use sealog_proto::internal::{
    AssociateRequest, DecideRequest, HistoryRequest, NewEnvelope, Share, StageRequest, history_request,
    stage_reply::Verdict,
};
use support::{World, change, id, request, update};

/// Deliveries among actions: to whom, of which updates.
fn deliveries(actions: &[Action]) -> Vec<(u32, Vec<u64>)> {
    let updates = |request: &AssociateRequest| request.associations.iter().map(|it| it.sequence_id).collect();
    let delivery = |action: &Action| match action {
        Action::Associate { directory, request, .. } => Some((*directory, updates(request))),
        _ => None,
    };
    actions.iter().filter_map(delivery).collect()
}

fn alarms(actions: &[Action]) -> Vec<u64> {
    let after = |action: &Action| match action {
        Action::Alarm { after } => Some(after / SECOND),
        _ => None,
    };
    actions.iter().filter_map(after).collect()
}

fn owed(world: &World) -> i64 {
    let row = world.storage.first("SELECT count(*) FROM outbox", &[]).unwrap().unwrap();
    row[0].integer().unwrap()
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

fn associated(world: &mut World, directory: u32, through: u64, delivered: bool) -> Vec<Action> {
    let World { partition, storage, now, .. } = world;
    partition.associated(storage, *now, directory, through, delivered).unwrap()
}

#[test]
fn api_270_a_stored_update_is_told_to_each_directory_that_it_concerns() {
    let mut world = World::new();
    let envelope = update(7, "a", 0, vec![change(2, 1, true), change(0, 2, false), change(2, 3, true)]);
    let actions = step(&mut world, vec![envelope]);
    assert!(actions.iter().any(|action| matches!(action, Action::Answer { .. })), "nobody waits for it");
    assert_eq!(deliveries(&actions), [(0, vec![1]), (2, vec![1, 1])]);
    assert_eq!((owed(&world), alarms(&actions)), (2, vec![5]), "a waker in the write of the rows");
    let Some(Action::Associate { request, through, .. }) =
        actions.iter().find(|action| matches!(action, Action::Associate { directory: 2, .. }))
    else {
        panic!("a delivery")
    };
    let first = &request.associations[0];
    assert_eq!((first.key.clone(), first.live), (change(2, 1, true).key, true));
    assert_eq!(first.inbox_id, update(7, "a", 0, Vec::new()).topic.slice(1..));
    let through = *through;
    for directory in [2, 0] {
        assert!(deliveries(&associated(&mut world, directory, through, true)).is_empty());
    }
    assert_eq!(owed(&world), 0, "told, and forgotten");
    world.now += 5 * SECOND;
    let rest = world.partition.alarm(&world.storage, world.now).unwrap();
    assert!(alarms(&rest).is_empty() && deliveries(&rest).is_empty(), "nothing is owed, nothing rings");
}

#[test]
fn only_rows_that_were_stored_are_told() {
    let mut world = World::new();
    let first = update(1, "a", 0, vec![change(0, 1, true)]);
    step(&mut world, vec![first.clone(), first.clone()]);
    assert_eq!(owed(&world), 1, "a duplicate in the same publish");
    step(&mut world, vec![first]);
    step(&mut world, vec![update(1, "b", 0, vec![change(0, 2, true)])]);
    assert_eq!(owed(&world), 1, "API-222: a duplicate, API-232: a refused update");
}

#[test]
fn rule_6_a_step_that_fails_owes_nothing() {
    // The row, its head, its facts, the outbox, the progress of the partition: each may be the write that fails.
    for fail_at in 1..=5 {
        let mut world = World::new();
        let (_, actions) = world.send(vec![update(1, "a", 0, vec![change(0, 1, true)])]);
        let reply = world.ask(&request(&actions));
        world.storage.fail_at.set(fail_at);
        world.partition.reserved(&world.storage, world.now, &reply).unwrap_err();
        assert_eq!(owed(&world), 0, "write {fail_at}");
        let actions = world.restart_partition();
        assert!(deliveries(&actions).is_empty() && alarms(&actions).is_empty(), "write {fail_at}");
    }
}

#[test]
fn one_delivery_at_a_time_to_each_directory_and_in_order() {
    let mut world = World::new();
    let actions = step(&mut world, vec![update(1, "a", 0, vec![change(0, 1, true)])]);
    assert_eq!(deliveries(&actions), [(0, vec![1])]);
    for inbox in 2..4 {
        let actions = step(&mut world, vec![update(inbox, "a", 0, vec![change(0, 1, true)])]);
        assert!(deliveries(&actions).is_empty(), "one is under way");
    }
    assert_eq!(deliveries(&associated(&mut world, 0, 1, true)), [(0, vec![2, 3])]);
    assert_eq!(owed(&world), 2);
}

#[test]
fn directories_that_hang_leave_connections_for_the_sequencer() {
    let mut world = World::new();
    let changes = (0..5).map(|directory| change(directory, 1, true)).collect();
    let actions = step(&mut world, vec![update(1, "a", 0, changes)]);
    assert_eq!(deliveries(&actions), [(0, vec![1]), (1, vec![1])]);
    assert_eq!(deliveries(&associated(&mut world, 1, 1, false)), [(2, vec![1])], "who failed waits");
    assert_eq!(deliveries(&associated(&mut world, 0, 1, true)), [(3, vec![1])]);
}

#[test]
fn a_delivery_that_fails_is_repeated_by_the_alarm_ever_more_slowly() {
    let mut world = World::new();
    step(&mut world, vec![update(1, "a", 0, vec![change(0, 1, true)])]);
    let mut pauses = Vec::new();
    for _ in 0..6 {
        assert!(deliveries(&associated(&mut world, 0, 1, false)).is_empty(), "not at once");
        let begun = world.now;
        loop {
            world.now += SECOND;
            let actions = world.partition.alarm(&world.storage, world.now).unwrap();
            assert_eq!(alarms(&actions).len(), 1, "it rings on while anything is owed");
            if !deliveries(&actions).is_empty() {
                break;
            }
        }
        pauses.push((world.now - begun) / SECOND);
    }
    assert_eq!(pauses, [4, 10, 20, 40, 60, 60]);
    assert!(deliveries(&associated(&mut world, 0, 1, true)).is_empty());
    assert_eq!(owed(&world), 0);
    let (_, actions) = world.send(vec![update(2, "a", 0, vec![change(0, 1, true)])]);
    let reply = world.ask(&request(&actions));
    assert_eq!(
        deliveries(&world.receive(&reply)),
        [(0, vec![2])],
        "a Directory that is back is told at once"
    );
}

#[test]
fn what_is_owed_outlives_the_instance() {
    let mut world = World::new();
    step(&mut world, vec![update(1, "a", 0, vec![change(0, 1, true), change(4, 1, true)])]);
    let actions = world.restart_partition();
    assert_eq!(deliveries(&actions), [(0, vec![1]), (4, vec![1])]);
    assert_eq!(alarms(&actions), [5]);
    // The answer to the instance before: it is true that the Directory took it.
    associated(&mut world, 0, 1, true);
    assert_eq!(owed(&world), 1);
}

#[test]
fn a_clock_that_jumps_back_holds_up_no_delivery() {
    let mut world = World::new();
    step(&mut world, vec![update(1, "a", 0, vec![change(0, 1, true)])]);
    associated(&mut world, 0, 1, false);
    world.now -= 3_600 * SECOND;
    let actions = world.partition.alarm(&world.storage, world.now).unwrap();
    assert_eq!(deliveries(&actions), [(0, vec![1])]);
}

#[test]
fn a_delivery_is_bounded_in_bytes() {
    let mut world = World::new();
    step(&mut world, vec![update(0, "a", 0, vec![change(0, 1, true)])]);
    for inbox in 1..4 {
        let changes = (0..250).map(|key| change(0, key, true)).collect();
        step(&mut world, vec![update(inbox, "a", 0, changes)]);
    }
    let batch = deliveries(&associated(&mut world, 0, 1, true));
    let updates = |ids: &[u64]| ids.first().copied().zip(ids.last().copied());
    assert_eq!(updates(&batch[0].1), Some((2, 3)), "two fit, the third has to wait");
    let rest = deliveries(&associated(&mut world, 0, 3, true));
    assert_eq!(updates(&rest[0].1), Some((4, 4)));
}

#[test]
fn a_staged_update_keeps_its_facts_and_its_changes() {
    let mut world = World::new();
    let txid = Txid::new([1; 16], world.now + 60 * SECOND);
    let envelope = update(1, "a", 0, vec![change(3, 1, true)]);
    let stage =
        StageRequest { txid: txid.to_bytes(), envelopes: vec![envelope.clone()], ..Default::default() };
    let World { partition, storage, now, .. } = &mut world;
    let (reply, _) = partition.stage(storage, *now, &stage).unwrap();
    assert_eq!((reply.verdict(), reply.count), (Verdict::Staged, 1));
    assert_eq!(partition.stage(storage, *now, &stage).unwrap().0, reply, "a repeat is answered alike");
    world.restart_partition();

    let share = Share { participant: Some(participant::log(0)), count: 1, bytes: reply.bytes };
    let decide = DecideRequest { txid: txid.to_bytes(), shares: vec![share] };
    let (decided, _) = world.sequencer.decide(&world.sequencer_storage, world.now, &decide).unwrap();
    assert!(decided.decided);
    world.now += SECOND;
    let actions = world.restart_partition();
    let reply = world.ask(&request(&actions));
    assert_eq!(deliveries(&world.receive(&reply)), [(3, vec![1])]);
    let inbox =
        history_request::Inbox { topic: envelope.topic.clone(), hash: envelope.hash.clone(), after: 0 };
    let history = HistoryRequest { inboxes: vec![inbox], max_bytes: 1_000 };
    let history = sealog_log::partition::history(&world.storage, &history).unwrap();
    assert!(history.inboxes[0].stored);
    assert_eq!(history.inboxes[0].entries[0].facts, envelope.facts);
}

#[test]
fn envelopes_without_changes_owe_nothing() {
    let mut world = World::new();
    let metas = world.store(vec![support::envelope(1, "a"), update(1, "a", 0, Vec::new())]);
    assert_eq!(metas.iter().map(id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(owed(&world), 0);
}
