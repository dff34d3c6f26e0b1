//! What a seed asks of the deployment, and what it does to it.

use sealog_log::directory::partition_of;
use sealog_log::{MILLISECOND, Nanos, SECOND};
use sealog_proto::internal::{AssociationChange, Claim, LookupKey, NewEnvelope};

use crate::context::Faults;
use crate::identifiers::{address, handle, inbox_of};
use crate::random::Random;

/// An envelope to be published. Its text is its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) topic: usize,
    pub(crate) text: String,
    /// To be stored only on the head that its publisher has read (API-232).
    pub(crate) identity: bool,
    /// Addresses that the update associates with its inbox, or takes away from it.
    pub(crate) changes: Vec<(u8, bool)>,
}

/// A publish of a client, with its repeats.
#[derive(Clone, Debug)]
pub(crate) struct Publish {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) claims: Vec<Claim>,
    /// How often it is sent again when its outcome is unknown.
    pub(crate) retries: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Work {
    Publish(Publish),
    /// Of a topic, from the beginning or from somewhere above it.
    Read(usize),
    Lookup(LookupKey),
    Boundary,
}

/// Everything that a seed fixes before the run.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) partitions: u32,
    pub(crate) directories: u32,
    pub(crate) faults: Faults,
    /// When the last fault strikes.
    pub(crate) calm_at: Nanos,
    /// Whether the workers die when the faults stop.
    pub(crate) workers_die: bool,
    /// Publishes over all partitions, one every few seconds, after the faults.
    pub(crate) steady: Vec<Publish>,
    /// With the time at which each begins.
    pub(crate) work: Vec<(Nanos, Work)>,
}

const TOPICS: usize = 5;
const INBOXES: usize = 2;
const HANDLES: u64 = 2;
const ADDRESSES: u8 = 3;
/// Steady publishes of a run that has them.
const STEADY: u64 = 30;

impl Shape {
    pub(crate) fn new(random: &mut Random) -> Self {
        let partitions = random.small(1, 4);
        let directories = random.small(0, 3);
        let mut faults = Faults {
            gate: random.chance(650),
            active: true,
            statement: 0,
            drop: 0,
            duplicate: 0,
            late: 0,
            crash: 0,
            jump: 0,
            death: 0,
            way: random.between(3, 30) * MILLISECOND,
            flush: 15 * MILLISECOND,
        };
        // One seed in eight is calm; the others get each fault or not, more or less of it.
        if !random.chance(125) {
            for (rate, most) in [
                (&mut faults.statement, 40),
                (&mut faults.drop, 120),
                (&mut faults.duplicate, 150),
                (&mut faults.late, 40),
                (&mut faults.crash, 60),
                (&mut faults.jump, 20),
                (&mut faults.death, 30),
            ] {
                if random.chance(600) {
                    *rate = random.between(1, most);
                }
            }
            if random.chance(300) {
                faults.way = random.between(50, 1_500) * MILLISECOND;
            }
            if random.chance(200) {
                faults.flush = random.between(50, 2_000) * MILLISECOND;
            }
        }
        let mut span = random.between(1, 20_000) * MILLISECOND;
        let mut followed = if random.chance(300) { random.between(5, 60) } else { 0 };
        // A storm around the channel: slow messages that overtake each other, while the boundary is watched.
        let storm = random.chance(250);
        if storm {
            span = random.between(2_000, 8_000) * MILLISECOND;
            followed = random.between(50, 300);
            faults.way = random.between(300, 2_000) * MILLISECOND;
            faults.duplicate = random.between(100, 400);
            faults.crash = random.between(20, 150);
            (faults.drop, faults.late, faults.death) = (0, 0, 0);
        }
        // Some deployments are busy with identities: updates race for inboxes, claims for handles.
        let identities = if random.chance(250) { 900 } else { 300 };
        let mut work = Vec::new();
        for number in 0..random.between(4, 22) {
            let at = random.below(span);
            one(random, number, at, Mix { directories, identities }, &mut work);
        }
        for _ in 0..followed {
            work.push((random.below(span), Work::Boundary));
        }
        let calm_at = span + random.between(0, 15) * SECOND;
        let steady = if random.chance(120) { steady() } else { Vec::new() };
        Self { partitions, directories, faults, calm_at, workers_die: random.chance(350), steady, work }
    }
}

fn steady() -> Vec<Publish> {
    let draft = |number, topic| Draft::message(topic, format!("steady{number}.{topic}"));
    let publish = |number| {
        let drafts = (0..TOPICS).map(|topic| draft(number, topic)).collect();
        Publish { drafts, claims: Vec::new(), retries: 0 }
    };
    (0..STEADY).map(publish).collect()
}

/// What publishes are about.
#[derive(Clone, Copy, Debug)]
struct Mix {
    /// Without any there are no claims and no lookups.
    directories: u32,
    /// Of a thousand publishes, those that update an identity.
    identities: u64,
}

/// One publish, perhaps with rivals that send the same bytes or half of them, and what goes with it.
fn one(random: &mut Random, number: u64, at: Nanos, mix: Mix, work: &mut Vec<(Nanos, Work)>) {
    match random.below(10) {
        0 => return work.push((at, Work::Boundary)),
        1 => return work.push((at, Work::Read(random.index(TOPICS + INBOXES)))),
        _ => {}
    }
    let mut drafts = Vec::new();
    let count = if random.chance(400) { 1 } else { random.between(2, 5) };
    for part in 0..count {
        let topic = random.index(TOPICS);
        drafts.push(Draft::message(topic, format!("{number}.{part}")));
    }
    // The same envelope twice in one publish.
    if random.chance(80) {
        drafts.push(drafts[0].clone());
    }
    let mut claims = Vec::new();
    if random.chance(mix.identities) {
        let inbox = random.index(INBOXES);
        let topic_index = TOPICS + inbox;
        drafts.truncate(random.index(3));
        let changes = if mix.directories > 0 { changes(random) } else { Vec::new() };
        drafts.push(Draft { topic: topic_index, text: format!("{number}.id"), identity: true, changes });
        if mix.directories > 0 && random.chance(600) {
            for _ in 0..random.between(1, 2) {
                let handle = format!("handle{}", random.below(HANDLES));
                if claims.iter().all(|claim: &Claim| claim.handle != handle) {
                    claims.push(Claim { handle, inbox_id: inbox_of(&topic(TOPICS + inbox).into()) });
                }
            }
        }
    }
    let publish = Publish { drafts, claims, retries: random.small(0, 3) };
    for _ in 0..random.below(3) {
        let mut rival = publish.clone();
        // A half that carries a claimed update takes its claim along, as every publish of those bytes does.
        if random.chance(500) && rival.drafts.len() > 1 && publish.claims.is_empty() {
            let from = random.index(rival.drafts.len() - 1);
            rival.drafts.drain(..=from);
        }
        let late = if random.chance(700) { 50 } else { 30_000 };
        work.push((at + random.below(late * MILLISECOND), Work::Publish(rival)));
    }
    for draft in &publish.drafts {
        if random.chance(300) {
            work.push((at + random.below(500) * MILLISECOND, Work::Read(draft.topic)));
        }
    }
    if random.chance(300) {
        work.push((at + random.below(200) * MILLISECOND, Work::Boundary));
    }
    if mix.directories > 0 {
        look_up(random, at, work);
    }
    work.push((at, Work::Publish(publish)));
}

/// What an update does to addresses, which all inboxes share.
fn changes(random: &mut Random) -> Vec<(u8, bool)> {
    let mut changes = Vec::new();
    for address in 0..ADDRESSES {
        if random.chance(500) {
            changes.push((address, random.chance(600)));
        }
    }
    changes
}

/// Lookups around a publish and long after it.
fn look_up(random: &mut Random, at: Nanos, work: &mut Vec<(Nanos, Work)>) {
    for _ in 0..random.below(3) {
        let key = if random.chance(300) {
            handle(&format!("handle{}", random.below(HANDLES)))
        } else {
            address(u8::try_from(random.below(ADDRESSES.into())).expect("few addresses"))
        };
        let after = if random.chance(700) { 1_000 } else { 40_000 };
        work.push((at + random.below(after) * MILLISECOND, Work::Lookup(key)));
    }
}

impl Draft {
    fn message(topic: usize, text: String) -> Self {
        Self { topic, text, identity: false, changes: Vec::new() }
    }

    pub(crate) fn envelope(&self, expected_head: Option<u64>, directories: u32) -> NewEnvelope {
        let change = |&(number, live): &(u8, bool)| {
            let key = address(number);
            AssociationChange { directory: partition_of(&key, directories), key: Some(key), live }
        };
        let mut hash = vec![0; 32];
        hash[..self.text.len()].copy_from_slice(self.text.as_bytes());
        NewEnvelope {
            topic: topic(self.topic).into(),
            hash: hash.into(),
            body: self.text.clone().into_bytes().into(),
            is_commit_or_proposal: false,
            retention_seconds: 0,
            expected_head,
            facts: self.identity.then(|| format!("facts of {}", self.text).into()),
            changes: self.changes.iter().map(change).collect(),
        }
    }
}

/// The bytes of a topic.
pub(crate) fn topic(index: usize) -> Vec<u8> {
    let mut topic = vec![0; 17];
    topic[16] = u8::try_from(index).expect("few topics");
    topic
}
