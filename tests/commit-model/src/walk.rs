//! Random walks through worlds too large to exhaust: more publishes, more faults, more attempts.
//!
//! A walk is made from its seed alone: the publishes, the faults allowed, the gate and every step. The same seed gives the
//! same walk.

use crate::action::Action;
use crate::check::{self, Found};
use crate::mutation::Mutation;
use crate::names::Participant::{self, First, Second};
use crate::publish::Publish;
use crate::scenario::{Faults, Gate, Scenario};
use crate::world::World;

/// Steps of one walk.
const STEPS: usize = 600;
/// Ids are bytes: no walk goes on where they might run out.
const LAST_BLOCK_END: u8 = 180;

/// What a clean walk did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walked {
    /// Things that happened.
    pub steps: usize,
    /// States from which progress was tested.
    pub progress_tests: usize,
}

/// A violation, and the world in which it came up.
#[derive(Debug)]
pub struct Lost {
    /// The world of the walk.
    pub scenario: Scenario,
    /// What broke, and the walk.
    pub found: Found,
}

/// Takes the walk of a seed, with a rule broken or none.
pub fn walk(seed: u64, mutation: Option<Mutation>) -> Result<Walked, Box<Lost>> {
    let mut dice = Dice(seed);
    let scenario = Scenario { mutation, ..scenario(&mut dice) };
    let haste = dice.below(3);
    let mut world = World::start(&scenario);
    let mut trace = Vec::new();
    let mut walked = Walked::default();
    let mut actions = Vec::new();
    while walked.steps < STEPS && world.sequencer.store.memory.block_end <= LAST_BLOCK_END {
        actions.clear();
        world.actions(&scenario, &mut actions);
        if actions.is_empty() {
            break;
        }
        let action = actions[dice.below(actions.len())].clone();
        if !is_taken(&mut dice, &action, haste) {
            continue;
        }
        world.perform(&scenario, &action);
        trace.push(action);
        walked.steps += 1;
        let test_progress = dice.one_in(20);
        walked.progress_tests += usize::from(test_progress);
        judge(&scenario, &world, test_progress, &trace)?;
    }
    walked.progress_tests += 1;
    judge(&scenario, &world, true, &trace)?;
    Ok(walked)
}

fn judge(scenario: &Scenario, world: &World, progress: bool, trace: &[Action]) -> Result<(), Box<Lost>> {
    let scenario = Scenario { progress, ..scenario.clone() };
    match check::violation(&scenario, world) {
        None => Ok(()),
        Some(violation) => {
            Err(Box::new(Lost { scenario, found: Found { violation, trace: trace.to_vec() } }))
        }
    }
}

/// Faults are rare, or nothing would ever be done; in haste, messages overtake each other less.
fn is_taken(dice: &mut Dice, action: &Action, haste: usize) -> bool {
    match action {
        Action::CrashSequencer | Action::CrashParticipant(_) => dice.one_in(12),
        Action::WorkerTimeOut(_) | Action::TimeOut(_) | Action::Resolve(..) => dice.one_in(6),
        Action::Arrive(_) => dice.one_in(4),
        Action::Deliver(_) => dice.one_in(1 + haste),
        _ => true,
    }
}

/// A random world.
fn scenario(dice: &mut Dice) -> Scenario {
    let count = 5 + dice.below(4);
    let publishes: Vec<_> = (0..count).map(|_| publish(dice)).collect();
    let mut scenario = Scenario::new("a walk", publishes);
    scenario.faults = Faults {
        sequencer_crashes: dice.byte_below(5),
        participant_crashes: dice.byte_below(5),
        repeats: dice.byte_below(12),
        time_outs: dice.byte_below(10),
        resolves: dice.byte_below(10),
        settles: dice.byte_below(10),
        worker_time_outs: dice.byte_below(3),
    };
    scenario.attempts = 1 + dice.byte_below(4);
    scenario.block = 4 + dice.byte_below(6);
    scenario.gate = if dice.one_in(2) { Gate::Explicit } else { Gate::Atomic };
    scenario.list_limit = if dice.one_in(3) { 1 + dice.below(2) } else { usize::MAX };
    scenario.clean_mark = dice.one_in(3);
    scenario
}

/// Plain publishes, transactions and claims, of few different envelopes, so that they meet.
fn publish(dice: &mut Dice) -> Publish {
    let at = if dice.one_in(2) { First } else { Second };
    match dice.below(4) {
        0 | 1 => envelope(dice, Publish::default(), at),
        2 => {
            let part = envelope(dice, Publish::default(), First);
            part.message(Second, 1 + dice.byte_below(4))
        }
        _ => {
            let handle = dice.byte_below(2);
            Publish::default().identity(at, 20 + handle).claim(at, handle)
        }
    }
}

fn envelope(dice: &mut Dice, publish: Publish, at: Participant) -> Publish {
    let hash = 1 + dice.byte_below(4);
    if dice.one_in(3) { publish.identity(at, hash) } else { publish.message(at, hash) }
}

/// `SplitMix64`: small, seeded, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `bound` - 1.
    fn byte_below(&mut self, bound: u8) -> u8 {
        u8::try_from(self.next() % u64::from(bound.max(1))).unwrap_or_default()
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte_below(u8::try_from(bound).unwrap_or(u8::MAX)))
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}
