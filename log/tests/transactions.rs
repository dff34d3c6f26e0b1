//! The sequencer's decisions against their rules. "Trap n" is a hole that an earlier draft of the protocol had.

mod support;

use sealog_log::sequencer::Sequencer;
use sealog_log::{CommandError, Nanos, SECOND, Txid, participant};
use sealog_proto::internal::{
    DecideRequest, JoinRequest, ReserveReply, ReserveRequest, ResolveRequest, Share, failure::Kind,
};
use support::{NOON, Storage};

struct Bench {
    storage: Storage,
    sequencer: Sequencer,
    now: Nanos,
}

impl Bench {
    fn new() -> Self {
        let storage = Storage::default();
        let (mut sequencer, _) = Sequencer::load(&storage).unwrap();
        sequencer.join(&storage, &JoinRequest { log_partitions: 2, ..JoinRequest::default() }).unwrap();
        Self { storage, sequencer, now: NOON }
    }

    fn restart(&mut self) {
        (self.sequencer, _) = Sequencer::load(&self.storage).unwrap();
    }

    fn decide(&mut self, txid: Txid, shares: [u32; 2]) -> Result<bool, CommandError> {
        let share = |(index, count)| Share { participant: Some(participant::log(index)), count, bytes: 100 };
        let shares = (0..).zip(shares).map(share).collect();
        let request = DecideRequest { txid: txid.to_bytes(), shares };
        let (reply, _) = self.sequencer.decide(&self.storage, self.now, &request)?;
        Ok(reply.decided)
    }

    fn resolve(&mut self, txid: Txid) -> bool {
        let request = ResolveRequest { txid: txid.to_bytes() };
        self.sequencer.resolve(&self.storage, self.now, &request).unwrap().decided
    }

    fn reserve(&mut self, number: u64, count: u32, applied: u64) -> ReserveReply {
        let participant = Some(participant::log(0));
        let request = ReserveRequest { participant, incarnation: 1, number, epoch_seen: 0, count, applied };
        self.sequencer.reserve(&self.storage, self.now, &request).unwrap()
    }
}

fn txid(name: u16) -> Txid {
    let mut random = [0; 16];
    random[..2].copy_from_slice(&name.to_be_bytes());
    Txid::new(random, NOON + 60 * SECOND)
}

#[test]
fn rule_4_a_decision_is_listed_until_it_is_confirmed() {
    let mut bench = Bench::new();
    assert!(bench.decide(txid(1), [2, 3]).unwrap());
    let first = bench.reserve(1, 1, 0);
    assert_eq!(first.first_id, 6, "above every decision in the list");
    let decided = &first.decided[0];
    assert_eq!((decided.position, decided.first_id, decided.count), (1, 1, 2));
    let again = bench.reserve(2, 0, 0);
    assert_eq!(again.decided.len(), 1, "trap 1: another request confirms nothing");
    assert!(bench.reserve(3, 0, again.first_id).decided.is_empty());
}

#[test]
fn rule_5_a_long_list_is_cut_and_comes_without_ids() {
    let mut bench = Bench::new();
    for name in 0..300 {
        assert!(bench.decide(txid(name), [1, 1]).unwrap());
    }
    let cut = bench.reserve(1, 7, 0);
    assert_eq!((cut.decided.len(), cut.count, cut.more), (256, 0, true));
    assert_eq!(cut.first_id, 513, "the position of the first one left out (trap 13)");
    assert!(cut.decided.is_sorted_by(|one, next| one.position < next.position));
    let rest = bench.reserve(2, 7, cut.first_id);
    assert_eq!((rest.decided.len(), rest.count, rest.more), (44, 7, false));
    assert_eq!((rest.decided[0].position, rest.first_id), (513, 601));
}

#[test]
fn api_288_rule_11_a_repeated_decision_is_the_same_decision() {
    let mut bench = Bench::new();
    assert!(bench.decide(txid(1), [1, 1]).unwrap());
    let reply = bench.reserve(1, 0, 0);
    bench.reserve(2, 0, reply.first_id);
    bench.restart(); // trap 9: late, after a restart, it must not commit at new ids
    assert!(bench.decide(txid(1), [1, 1]).unwrap());
    let participant = Some(participant::log(0));
    let request = ReserveRequest { participant, incarnation: 2, number: 1, ..Default::default() };
    let listed = bench.sequencer.reserve(&bench.storage, bench.now, &request).unwrap();
    assert_eq!(listed.decided[0].position, 1);
    let Err(CommandError::Refused(failure)) = bench.decide(txid(1), [1, 2]) else { panic!("refused") };
    assert_eq!(failure.kind(), Kind::Invariant, "one txid, one transaction");
}

#[test]
fn api_220_rule_12_what_was_asked_about_first_is_never_decided() {
    let mut bench = Bench::new();
    assert!(!bench.resolve(txid(1)));
    bench.restart();
    assert!(!bench.decide(txid(1), [1, 1]).unwrap(), "trap 10");
    assert!(bench.decide(txid(2), [1, 1]).unwrap());
    bench.restart();
    assert!(bench.resolve(txid(2)), "decided stays decided");
}

#[test]
fn rule_12_a_txid_outside_its_time_is_not_decided() {
    let mut bench = Bench::new();
    let late = Txid::new([1; 16], NOON - 1);
    let far = Txid::new([2; 16], NOON + 121 * SECOND);
    let last = Txid::new([3; 16], NOON + 120 * SECOND);
    assert_eq!([late, far, last].map(|txid| bench.decide(txid, [1, 1]).unwrap()), [false, false, true]);
    // Another machine, whose clock is behind: what was too old stays too old.
    bench.now = NOON + 61 * SECOND;
    bench.reserve(1, 1, 0);
    bench.restart();
    bench.now = NOON;
    assert!(!bench.decide(txid(4), [1, 1]).unwrap());
}

#[test]
fn api_203_the_boundary_waits_for_every_participant_of_a_transaction() {
    let mut bench = Bench::new();
    bench.decide(txid(1), [1, 1]).unwrap();
    let (reply, epoch) = (bench.reserve(1, 0, 0), bench.sequencer.epoch());
    bench.reserve(2, 0, reply.first_id);
    bench.sequencer.settled(1, epoch);
    assert_eq!(bench.sequencer.boundary(&bench.storage).unwrap(), 0, "partition 1 has not applied it");
    let other = Some(participant::log(1));
    let request =
        ReserveRequest { participant: other, incarnation: 1, number: 1, applied: 3, ..Default::default() };
    bench.sequencer.reserve(&bench.storage, bench.now, &request).unwrap();
    assert_eq!(bench.sequencer.boundary(&bench.storage).unwrap(), 2);
    bench.restart(); // trap 16: the confirmations are forgotten, the stored boundary is not
    assert_eq!(bench.sequencer.boundary(&bench.storage).unwrap(), bench.sequencer.epoch(), "clean: rule 19");
}

#[test]
fn a_transaction_names_each_participant_once_and_takes_an_id() {
    let mut bench = Bench::new();
    for shares in [
        vec![Share { participant: Some(participant::log(0)), count: 0, bytes: 0 }],
        vec![Share { participant: Some(participant::log(0)), count: 1, bytes: 0 }; 2],
        vec![Share { participant: None, count: 1, bytes: 0 }],
        vec![Share { participant: Some(participant::log(9)), count: 1, bytes: 0 }],
    ] {
        let request = DecideRequest { txid: txid(1).to_bytes(), shares };
        let refused = bench.sequencer.decide(&bench.storage, NOON, &request);
        assert!(matches!(refused, Err(CommandError::Refused(_))), "{request:?}");
    }
    assert_eq!(bench.reserve(1, 0, 0).first_id, 1, "nothing was spent");
}
