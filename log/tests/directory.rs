//! A Directory partition: associations (API-270) and claims (API-296, API-299).

mod support;

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use sealog_log::directory::{Directory, Machine, lookup, partition_of};
use sealog_log::{CommandError, SECOND, Sql, Txid};
use sealog_proto::associations::IdentifierKind;
use sealog_proto::internal::{
    AssociateRequest, Claim, LookupKey, LookupRequest, StageRequest, associate_request::Association,
    failure::Kind, stage_reply::Verdict,
};
use support::{NOON, Storage};

struct Bench {
    storage: Storage,
    directory: Directory,
}

impl Bench {
    fn new() -> Self {
        let storage = Storage::default();
        let (directory, _) = Directory::load(&storage, NOON, 0).unwrap();
        Self { storage, directory }
    }

    fn associate(&self, associations: Vec<Association>) {
        let request = AssociateRequest { associations, claims: Vec::new() };
        self.directory.associate(&self.storage, &request).unwrap();
    }

    /// What the repair says of one claim.
    fn repair(&self, handle: &str, inbox: u8) -> Result<(), CommandError> {
        let associations = vec![association(9, inbox, 1, true)];
        let request = AssociateRequest { associations, claims: vec![claim(handle, inbox)] };
        self.directory.associate(&self.storage, &request).map(drop)
    }

    fn stage(&mut self, name: u8, handle: &str, inbox: u8) -> Verdict {
        let txid = Txid::new([name; 16], NOON + 60 * SECOND).to_bytes();
        let request = StageRequest { txid, claims: vec![claim(handle, inbox)], ..StageRequest::default() };
        self.directory.stage(&self.storage, NOON, &request).unwrap().0.verdict()
    }

    fn find(&self, keys: &[LookupKey]) -> Vec<Option<u8>> {
        let request = LookupRequest { keys: keys.to_vec() };
        let reply = lookup(&self.storage, &request).unwrap();
        reply.results.into_iter().map(|result| result.inbox_id.map(|inbox| inbox[0])).collect()
    }
}

fn key(kind: IdentifierKind, key: &str) -> LookupKey {
    LookupKey { kind: kind.into(), key: Bytes::copy_from_slice(key.as_bytes()) }
}

fn address(number: u8) -> LookupKey {
    key(IdentifierKind::Ethereum, &format!("0x{number:040x}"))
}

fn handle(text: &str) -> LookupKey {
    key(IdentifierKind::Handle, text)
}

fn inbox_id(inbox: u8) -> Bytes {
    vec![inbox; 32].into()
}

fn claim(handle: &str, inbox: u8) -> Claim {
    Claim { handle: handle.to_owned(), inbox_id: inbox_id(inbox) }
}

fn association(number: u8, inbox: u8, sequence_id: u64, live: bool) -> Association {
    Association { key: Some(address(number)), inbox_id: inbox_id(inbox), sequence_id, live }
}

#[test]
fn the_place_of_a_key_never_changes() {
    let passkey = LookupKey { kind: IdentifierKind::Passkey.into(), key: Bytes::from(vec![2; 33]) };
    let places = |directories| {
        [address(1), address(2), handle("alice"), passkey.clone()].map(|key| partition_of(&key, directories))
    };
    assert_eq!(places(1), [0, 0, 0, 0]);
    assert_eq!(places(16), PLACES);
    let as_handle = LookupKey { kind: IdentifierKind::Handle.into(), ..address(1) };
    assert_ne!(partition_of(&as_handle, 1_000_000), partition_of(&address(1), 1_000_000), "the kind counts");
    let spread: std::collections::BTreeSet<u32> =
        (0..=255).map(|number| partition_of(&address(number), 16)).collect();
    assert_eq!(spread.len(), 16);
}

/// Of `SHA-256(kind byte ‖ key)`, the first 8 bytes modulo 16: computed by other means.
const PLACES: [u32; 4] = [1, 1, 2, 9];

#[test]
fn api_270_the_newest_live_association_over_all_inboxes() {
    let bench = Bench::new();
    assert_eq!(bench.find(&[address(1)]), [None]);
    bench.associate(vec![association(1, 7, 10, true), association(1, 8, 20, true)]);
    assert_eq!(bench.find(&[address(1), address(2)]), [Some(8), None]);
    bench.associate(vec![association(1, 8, 30, false)]);
    assert_eq!(bench.find(&[address(1)]), [Some(7)], "a revocation brings the older one back");
    bench.associate(vec![association(1, 7, 40, false)]);
    assert_eq!(bench.find(&[address(1)]), [None]);
    bench.associate(vec![association(1, 7, 50, true)]);
    assert_eq!(bench.find(&[address(1)]), [Some(7)]);
}

#[test]
fn sec_023_kinds_are_apart() {
    let bench = Bench::new();
    bench.associate(vec![association(1, 7, 10, true)]);
    let same_key = |kind: IdentifierKind| LookupKey { kind: kind.into(), ..address(1) };
    assert_eq!(
        bench.find(&[same_key(IdentifierKind::Passkey), same_key(IdentifierKind::Handle)]),
        [None, None]
    );
}

#[test]
fn an_old_copy_never_brings_back_what_was_revoked() {
    let bench = Bench::new();
    let [added, revoked] = [association(1, 7, 10, true), association(1, 7, 20, false)];
    bench.associate(vec![added.clone()]);
    bench.associate(vec![revoked]);
    bench.associate(vec![added]);
    assert_eq!(bench.find(&[address(1)]), [None]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is lost and sent again, late or twice: in the end the newest change of each inbox counts.
    #[test]
    fn associate_takes_changes_in_any_order_and_any_number_of_times(
        changes in prop::collection::vec((0..3_u8, 0..3_u8, any::<bool>()), 1..12),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let all: Vec<Association> = (1..)
            .zip(&changes)
            .map(|(sequence_id, (number, inbox, live))| association(*number, *inbox, sequence_id, *live))
            .collect();
        let bench = Bench::new();
        for index in order {
            bench.associate(vec![index.get(&all).clone()]);
        }
        bench.associate(all.iter().rev().cloned().collect());

        for number in 0..3 {
            let mut last: BTreeMap<u8, &Association> = BTreeMap::new();
            for change in all.iter().filter(|change| change.key == Some(address(number))) {
                last.insert(change.inbox_id[0], change);
            }
            let newest = last.values().filter(|change| change.live).max_by_key(|change| change.sequence_id);
            prop_assert_eq!(bench.find(&[address(number)]), [newest.map(|change| change.inbox_id[0])]);
        }
    }
}

#[test]
fn api_299_handles_are_found_by_the_claims_that_stand() {
    let mut bench = Bench::new();
    bench.repair("alice", 7).unwrap();
    assert_eq!(bench.stage(1, "bob", 8), Verdict::Staged);
    assert_eq!(bench.find(&[handle("alice"), handle("bob")]), [Some(7), None], "staged is not claimed");
    // Case 63: who claims another handle is found by the old one, too.
    bench.repair("alicia", 7).unwrap();
    assert_eq!(bench.find(&[handle("alice"), handle("alicia")]), [Some(7), Some(7)]);
}

#[test]
fn api_296_the_repair_never_gives_a_handle_to_a_second_inbox() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.repair("alice", 7).unwrap();
    }
    let Err(CommandError::Refused(failure)) = bench.repair("alice", 8) else { panic!("refused") };
    assert_eq!(failure.kind(), Kind::Invariant);
    assert!(!failure.message.contains("alice"), "SEC-051");
    assert_eq!(bench.find(&[handle("alice"), address(9)]), [Some(7), Some(7)], "nothing of it was written");
    assert_eq!(bench.stage(1, "alice", 8), Verdict::Taken);

    assert_eq!(bench.stage(2, "bob", 7), Verdict::Staged);
    let Err(CommandError::Refused(failure)) = bench.repair("bob", 8) else { panic!("refused") };
    assert_eq!(failure.kind(), Kind::Unavailable, "not while it is being claimed");
    let claims = bench.storage.first("SELECT count(*) FROM claims", &[]).unwrap().unwrap();
    assert_eq!(claims[0].integer().unwrap(), 1);
}
