//! Whatever has happened: once faults stop, everything arrives.
//!
//! Tested from a state by running one fair schedule to its end: every message arrives, then everything that a timer
//! would do is done, until nothing changes. Twice: with the messages under way, and with all of them lost.

use crate::action::Action;
use crate::invariants::Invariant;
use crate::names::{PartitionId, Topic};
use crate::partition::Partition;
use crate::scenario::{Faults, Scenario};
use crate::world::World;

/// What does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stuck {
    /// An Update has no Applied.
    Unapplied,
    /// A visible envelope above the cursor never comes.
    Undelivered,
    /// A partition still owes what the session knows, or what nobody wants.
    Owed,
    /// The session believes to be behind.
    Behind,
    /// Messages beget messages.
    Endless,
    /// An invariant broke on the way.
    Broken(Invariant),
}

/// Rounds of timers until everything must have come to rest.
const ROUNDS: usize = 40;
/// Messages between two rounds of timers.
const MESSAGES: usize = 200;
/// No bound on what a fair schedule may give up and try again.
const TIMERS: Faults =
    Faults { repeats: 0, time_outs: u8::MAX, crashes: 0, overflows: 0, hibernations: 0, losses: 0 };

/// Tests progress from `world`.
pub fn check(scenario: &Scenario, world: &World) -> Result<(), Stuck> {
    run_to_rest(scenario, world.clone())?;
    if world.network.first().is_some() {
        let mut lost = world.clone();
        lost.network.clear();
        run_to_rest(scenario, lost)?;
    }
    Ok(())
}

/// Runs the fair schedule, and judges where it ends.
fn run_to_rest(scenario: &Scenario, mut world: World) -> Result<(), Stuck> {
    for _ in 0..ROUNDS {
        world.faults = TIMERS;
        deliver_all(scenario, &mut world)?;
        fire_timers(scenario, &mut world);
        if world.network.first().is_none() {
            return judge(scenario, &world);
        }
    }
    judge(scenario, &world).and(Err(Stuck::Endless))
}

fn deliver_all(scenario: &Scenario, world: &mut World) -> Result<(), Stuck> {
    for _ in 0..MESSAGES {
        let Some(message) = world.network.first() else { return Ok(()) };
        world.perform(scenario, &Action::Deliver(message));
        if let Some(broken) = world.broken {
            return Err(Stuck::Broken(broken));
        }
    }
    judge(scenario, world).and(Err(Stuck::Endless))
}

/// Everything that an alarm, a deadline or a free slot would bring about.
fn fire_timers(scenario: &Scenario, world: &mut World) {
    let fire = |world: &mut World, due: bool, action| {
        if due {
            world.perform(scenario, &action);
        }
    };
    let asleep = world.session.memory.is_none() && !world.session.over;
    fire(world, asleep, Action::Wake);
    for at in PartitionId::ALL.into_iter().filter(|at| scenario.uses(*at)) {
        fire(world, world.partitions[at].may_load(), Action::Load(at));
        fire(world, world.partitions[at].stored.alarm, Action::Alarm(at));
        fire(world, world.partitions[at].is_pushing(), Action::PushTimesOut(at));
        fire(world, world.partitions[at].may_push(), Action::Push(at));
        fire(world, world.session.awaited_number(at).is_some(), Action::ControlTimesOut(at));
    }
    for topic in Topic::ALL {
        fire(world, world.session.is_pulling(topic), Action::PullTimesOut(topic));
        fire(world, world.session.may_pull(scenario, topic), Action::Pull(topic));
    }
}

fn judge(scenario: &Scenario, world: &World) -> Result<(), Stuck> {
    if world.partitions.0.iter().any(Partition::owes_anything) {
        return Err(Stuck::Owed);
    }
    if world.session.over {
        return Ok(());
    }
    if world.client.applied != world.client.sent {
        return Err(Stuck::Unapplied);
    }
    if !world.client.has_all(world.visible(scenario)) {
        return Err(Stuck::Undelivered);
    }
    if world.session.is_behind() { Err(Stuck::Behind) } else { Ok(()) }
}
