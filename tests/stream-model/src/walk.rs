//! Random walks through worlds too large to exhaust: more Updates, more rows, more faults.
//!
//! A walk is made from its seed alone: the Updates, what is stored, the faults allowed and every step. The same seed
//! gives the same walk.

use fastrand::Rng;

use crate::action::Action;
use crate::check::{self, Violation};
use crate::mutation::Mutation;
use crate::names::Topic::{self, A, B};
use crate::scenario::{Faults, Scenario, Update, Variant};
use crate::world::World;

/// What a clean walk did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walked {
    /// Things that happened.
    pub steps: usize,
    /// States from which progress was tested.
    pub progress_tests: usize,
    /// Messages that were inert when they arrived, and changed nothing.
    pub inert: usize,
}

/// What went wrong in a walk.
#[derive(Debug)]
pub struct Lost {
    /// The world of the walk.
    pub scenario: Scenario,
    /// What broke; `None`: a message that was held to be inert changed something.
    pub violation: Option<Violation>,
    /// The walk.
    pub trace: Vec<Action>,
}

/// Takes the walk of a seed, with a rule broken or none.
pub fn walk(seed: u64, mutation: Option<Mutation>) -> Result<Walked, Box<Lost>> {
    let mut dice = Rng::with_seed(seed);
    let scenario = Scenario { mutation, ..scenario(&mut dice) };
    let haste = dice.usize(1..4);
    let mut world = World::start(&scenario);
    let mut trace = Vec::new();
    let mut walked = Walked::default();
    loop {
        let mut actions = Vec::new();
        world.actions(&scenario, &mut actions);
        let Some(action) = dice.choice(actions) else { break };
        if !is_taken(&mut dice, &action, haste) {
            continue;
        }
        trace.push(action);
        let lost = |violation, trace: &[Action]| {
            Err(Box::new(Lost { scenario: scenario.clone(), violation, trace: trace.to_vec() }))
        };
        if let Action::Deliver(message) = &action
            && scenario.mutation.is_none()
            && world.is_inert(&scenario, message)
        {
            walked.inert += 1;
            if !world.is_unmoved_by(&scenario, message) {
                return lost(None, &trace);
            }
        }
        world.perform(&scenario, &action);
        walked.steps += 1;
        let test_progress = dice.usize(..8) == 0;
        walked.progress_tests += usize::from(test_progress);
        let judged = Scenario { safety_only: !test_progress, ..scenario.clone() };
        if let Some(violation) = check::violation(&judged, &world) {
            return lost(Some(violation), &trace);
        }
    }
    Ok(walked)
}

/// Faults are rare, or nothing would ever be done; in haste, messages overtake each other less.
fn is_taken(dice: &mut Rng, action: &Action, haste: usize) -> bool {
    let one_in = match action {
        Action::LoseMemory => 40,
        Action::Crash(_) => 12,
        Action::PushTimesOut(_) | Action::PullTimesOut(_) | Action::ControlTimesOut(_) => 8,
        Action::Overflow(_) | Action::Repeat(_) | Action::Update | Action::Commit(_) => 6,
        Action::Hibernate => 3,
        Action::Deliver(_) => haste,
        _ => 1,
    };
    dice.usize(..one_in) == 0
}

/// A random world. In every other one inert messages stay under way, so that the walk meets them.
fn scenario(dice: &mut Rng) -> Scenario {
    let updates: Vec<_> = (0..dice.usize(2..7)).map(|_| update(dice)).collect();
    let topics = [A, B];
    let stored: Vec<_> = (0..dice.usize(..5)).filter_map(|_| dice.choice(topics)).collect();
    let mut scenario = Scenario::new("a walk", updates).stored(&stored).commits(dice.u8(2..9), &topics);
    scenario.partitions = dice.u8(1..3);
    scenario.variant = match dice.u8(..8) {
        0 => Some(Variant::NoRemoves),
        1 => Some(Variant::HintGrows),
        2..=4 => Some(Variant::NumberForgotten),
        _ => None,
    };
    scenario.keeps_inert = dice.bool();
    scenario.faults = Faults {
        repeats: dice.u8(..6),
        time_outs: dice.u8(..8),
        crashes: dice.u8(..5),
        overflows: dice.u8(..4),
        hibernations: dice.u8(..6),
        losses: dice.u8(..4) / 3,
    };
    scenario
}

/// Each topic is added, removed, or not named.
fn update(dice: &mut Rng) -> Update {
    let change = |update: Update, topic: Topic, dice: &mut Rng| match dice.u8(..6) {
        0..=2 => update.add(topic, dice.u8(..4)),
        3 | 4 => update.remove(topic),
        _ => update,
    };
    let update = change(Update::default(), A, dice);
    change(update, B, dice)
}
