//! The sequencer against its rules. "Trap n" is a hole that an earlier draft of the protocol had.

mod support;

use sealog_log::participant;
use sealog_log::sequencer::Sequencer;
use sealog_log::{CommandError, Fault, SECOND};
use sealog_proto::internal::{JoinReply, JoinRequest, ReserveReply, ReserveRequest, failure::Kind};
use support::{NOON, Storage};

struct Bench {
    storage: Storage,
    sequencer: Sequencer,
    now: u64,
}

impl Bench {
    fn new(partitions: u32) -> Self {
        let storage = Storage::default();
        let (mut sequencer, _) = Sequencer::load(&storage).unwrap();
        sequencer
            .join(&storage, &JoinRequest { log_partitions: partitions, ..JoinRequest::default() })
            .unwrap();
        Self { storage, sequencer, now: NOON }
    }

    fn restart(&mut self) {
        (self.sequencer, _) = Sequencer::load(&self.storage).unwrap();
    }

    fn reserve(&mut self, request: ReserveRequest) -> ReserveReply {
        self.sequencer.reserve(&self.storage, self.now, &request).unwrap()
    }

    fn boundary(&mut self) -> u64 {
        self.sequencer.boundary(&self.storage).unwrap()
    }
}

fn ask(number: u64, count: u32) -> ReserveRequest {
    ReserveRequest { participant: support::log(), incarnation: 1, number, epoch_seen: 0, count, applied: 0 }
}

#[test]
fn api_286_ids_start_at_1_and_follow_each_other() {
    let mut bench = Bench::new(1);
    assert_eq!(bench.reserve(ask(1, 3)).first_id, 1);
    assert_eq!(bench.reserve(ask(2, 0)).first_id, 4, "no ids: the next one not given out");
    assert_eq!(bench.reserve(ask(3, 1)).first_id, 4);
}

#[test]
fn api_287_a_restart_never_gives_an_id_twice() {
    let mut bench = Bench::new(1);
    let mut highest = 0;
    for (restart, count) in [1, 4_095, 4_096, 4_097, 2_048, 9_000, 1].into_iter().enumerate() {
        let reply = bench.reserve(ask(1, count));
        assert!(reply.first_id > highest, "restart {restart}");
        highest = reply.first_id + u64::from(count) - 1;
        bench.restart();
    }
}

#[test]
fn rule_7_writes_once_per_block() {
    let mut bench = Bench::new(1);
    bench.reserve(ask(1, 1));
    let before = bench.storage.writes.get();
    for number in 2..=4_096 {
        bench.reserve(ask(number, 1));
    }
    assert_eq!(bench.storage.writes.get(), before, "the block has 4,096 ids");
    bench.reserve(ask(4_097, 1));
    assert_eq!(bench.storage.writes.get(), before + 1);
}

#[test]
fn rule_4_a_repeat_gets_fresh_ids_and_keeps_every_reservation_open() {
    let mut bench = Bench::new(1);
    let first = bench.reserve(ask(1, 1));
    let repeat = bench.reserve(ask(1, 1));
    assert!(repeat.first_id > first.first_id, "trap 3: never the same ids again");
    assert_eq!(bench.boundary(), 0, "trap 2: the partition may take either reply");
}

#[test]
fn rule_4_a_newer_request_closes_older_reservations() {
    let mut bench = Bench::new(1);
    bench.reserve(ask(1, 5));
    assert_eq!(bench.boundary(), 0);
    bench.reserve(ask(2, 0));
    assert_eq!(bench.boundary(), 5);
}

#[test]
fn rule_4_an_older_request_opens_nothing() {
    let mut bench = Bench::new(1);
    bench.reserve(ReserveRequest { incarnation: 2, ..ask(1, 1) });
    let late = bench.reserve(ask(7, 9));
    assert!(late.superseded, "trap 5: an older incarnation is older, whatever its number");
    assert_eq!(bench.reserve(ReserveRequest { incarnation: 2, ..ask(2, 0) }).first_id, 2);
}

#[test]
fn api_203_the_boundary_stays_below_every_open_reservation() {
    let mut bench = Bench::new(2);
    let other =
        |number, count| ReserveRequest { participant: Some(participant::log(1)), ..ask(number, count) };
    bench.reserve(ask(1, 2)); // 1, 2
    bench.reserve(other(1, 3)); // 3 to 5
    assert_eq!(bench.boundary(), 0);
    bench.reserve(ask(2, 1)); // 6
    assert_eq!(bench.boundary(), 2);
    bench.reserve(other(2, 0));
    assert_eq!(bench.boundary(), 5);
    bench.reserve(ask(3, 0));
    assert_eq!(bench.boundary(), 6);
}

#[test]
fn api_291_the_boundary_survives_a_restart_and_waits_for_every_partition() {
    let mut bench = Bench::new(2);
    bench.reserve(ask(1, 2));
    bench.reserve(ReserveRequest { participant: Some(participant::log(1)), ..ask(1, 0) });
    bench.reserve(ask(2, 0));
    assert_eq!(bench.boundary(), 2);
    bench.reserve(ask(3, 1)); // 3 is open when the instance dies
    bench.restart();
    assert_eq!(bench.boundary(), 2);
    let epoch = bench.sequencer.epoch();
    // Trap 7: a request arrived, but it does not say the new epoch. Id 3 may still land.
    bench.reserve(ask(4, 0));
    bench.reserve(ReserveRequest { participant: Some(participant::log(1)), ..ask(2, 0) });
    assert_eq!(bench.boundary(), 2);
    bench.reserve(ReserveRequest { epoch_seen: epoch, ..ask(5, 0) });
    assert_eq!(bench.boundary(), 2, "the other partition has not said it");
    bench.reserve(ReserveRequest { participant: Some(participant::log(1)), epoch_seen: epoch, ..ask(3, 0) });
    assert_eq!(bench.boundary(), epoch, "what the old instance did not give out is settled too");
}

#[test]
fn rule_7_the_boundary_is_stored_before_it_is_told() {
    let mut bench = Bench::new(1);
    bench.reserve(ask(1, 2));
    bench.reserve(ask(2, 0));
    bench.storage.fail_at.set(1);
    assert!(bench.sequencer.boundary(&bench.storage).is_err(), "not stored, not told");
}

#[test]
fn rule_13_time_never_goes_back() {
    let mut bench = Bench::new(1);
    let first = bench.reserve(ask(1, 1)).server_ns;
    assert_eq!(first, NOON);
    bench.now = NOON - SECOND;
    assert_eq!(bench.reserve(ask(2, 1)).server_ns, NOON, "a clock that jumps back");
    bench.now = NOON + SECOND;
    let last = bench.reserve(ask(3, 1)).server_ns;
    assert_eq!(last, NOON + SECOND);
    bench.restart();
    bench.now = NOON - 3_600 * SECOND;
    assert!(bench.reserve(ask(4, 1)).server_ns >= last, "another machine with a slower clock");
}

#[test]
fn rule_13_no_time_is_handed_out_above_the_stored_limit() {
    let mut bench = Bench::new(1);
    for number in 1..50 {
        bench.now += SECOND / 3;
        let told = bench.reserve(ask(number, 1)).server_ns;
        bench.restart(); // what is stored now bounds what was told
        let after = bench.reserve(ReserveRequest { incarnation: 2, ..ask(number, 0) }).server_ns;
        assert!(after >= told);
        bench.now = bench.now.max(after);
    }
}

fn shape(log_partitions: u32, directory_partitions: u32) -> JoinRequest {
    JoinRequest { log_partitions, directory_partitions }
}

#[test]
fn join_fixes_the_number_of_partitions_for_ever() {
    let mut bench = Bench::new(8);
    bench.restart();
    let reply = bench.sequencer.join(&bench.storage, &shape(1, 4)).unwrap();
    assert_eq!((reply.log_partitions, reply.directory_partitions), (8, 4), "the first number heard of each");
    bench.restart();
    let reply = bench.sequencer.join(&bench.storage, &shape(8, 2)).unwrap();
    assert_eq!((reply.log_partitions, reply.directory_partitions), (8, 4));
    for (stranger, setting) in
        [(participant::log(8), "LOG_PARTITIONS"), (participant::directory(4), "DIRECTORY_PARTITIONS")]
    {
        let request = ReserveRequest { participant: Some(stranger), ..ask(1, 0) };
        let refused = bench.sequencer.reserve(&bench.storage, NOON, &request);
        let Err(CommandError::Refused(failure)) = refused else { panic!("{stranger:?} does not exist") };
        assert_eq!(failure.kind(), Kind::Configuration);
        assert!(failure.message.contains(setting), "{}", failure.message);
    }
}

#[test]
fn join_of_a_worker_older_than_the_directories_fixes_none() {
    let mut bench = Bench::new(1);
    let writes = bench.storage.writes.get();
    let reply = bench.sequencer.join(&bench.storage, &shape(1, 0)).unwrap();
    assert_eq!((reply.directory_partitions, bench.storage.writes.get()), (0, writes));
    let request = ReserveRequest { participant: Some(participant::directory(7)), ..ask(1, 0) };
    assert!(
        bench.sequencer.reserve(&bench.storage, NOON, &request).is_ok(),
        "nothing says how many there are"
    );
}

#[test]
fn join_without_a_number_asks_and_fixes_nothing() {
    let storage = Storage::default();
    let (mut sequencer, _) = Sequencer::load(&storage).unwrap();
    let writes = storage.writes.get();
    assert_eq!(
        sequencer.join(&storage, &shape(0, 5)).unwrap(),
        JoinReply::default(),
        "nobody has said a number"
    );
    assert_eq!(storage.writes.get(), writes);
    let fixed = sequencer.join(&storage, &shape(3, 2)).unwrap();
    assert_eq!((fixed.log_partitions, fixed.directory_partitions), (3, 2));
    let writes = storage.writes.get();
    assert_eq!(sequencer.join(&storage, &shape(0, 5)).unwrap(), fixed);
    assert_eq!(storage.writes.get(), writes);
}

#[test]
fn an_overtaken_instance_stops() {
    let mut bench = Bench::new(1);
    for seen in [ReserveRequest { epoch_seen: 1, ..ask(1, 1) }, ReserveRequest { applied: 2, ..ask(1, 1) }] {
        let outcome = bench.sequencer.reserve(&bench.storage, NOON, &seen);
        assert!(matches!(outcome, Err(CommandError::Fault(Fault::Invariant(_)))), "{seen:?}");
    }
}
