//! Whatever has happened: once faults stop, everything ends.
//!
//! Tested from a state by running one fair schedule to its end: every message arrives, then everything that a timer
//! would do is done, until nothing changes. Three times: with the workers alive, with all of them dead, and with all of
//! them dead and every message under way lost.

use crate::action::Action;
use crate::invariants::Invariant;
use crate::message::Message;
use crate::mutation::Mutation;
use crate::names::WorkerId;
use crate::partition::Partition;
use crate::scenario::{Faults, Gate, Scenario};
use crate::worker::{Phase, Worker};
use crate::world::World;

/// What does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stuck {
    /// A staged transaction.
    Staged,
    /// A queued publish.
    Queued,
    /// The boundary stays below the newest id.
    Boundary,
    /// A decided transaction is not applied everywhere.
    NotApplied,
    /// A live worker has no answer.
    Unanswered,
    /// Messages beget messages.
    Endless,
    /// An invariant broke on the way.
    Broken(Invariant),
}

/// Rounds of timers until everything must have come to rest.
const ROUNDS: usize = 40;
/// Messages between two rounds of timers.
const MESSAGES: usize = 400;
/// No bound on what a fair schedule may do.
const TIMERS: Faults = Faults {
    sequencer_crashes: 0,
    participant_crashes: 0,
    repeats: 0,
    time_outs: u8::MAX,
    resolves: u8::MAX,
    settles: u8::MAX,
    worker_time_outs: u8::MAX,
};

/// Tests progress from `world`.
pub fn check(scenario: &Scenario, world: &World) -> Result<(), Stuck> {
    let mut alive = world.clone();
    run_to_rest(scenario, &mut alive)?;
    let unanswered = |worker: &Worker| !worker.is_over() && worker.phase != Phase::NotArrived;
    if alive.workers.iter().any(unanswered) {
        return Err(Stuck::Unanswered);
    }
    let mut dead = world.clone();
    for worker in &mut dead.workers {
        if !worker.is_over() {
            worker.phase = Phase::Dead;
        }
    }
    dead.forget_inert(scenario);
    let mut lost = dead.clone();
    run_to_rest(scenario, &mut dead)?;
    if lost.network.first().is_some() {
        lost.network.clear();
        run_to_rest(scenario, &mut lost)?;
    }
    Ok(())
}

/// Runs the fair schedule, and judges where it ends.
fn run_to_rest(scenario: &Scenario, world: &mut World) -> Result<(), Stuck> {
    world.superseded = None;
    for _ in 0..ROUNDS {
        world.faults = TIMERS;
        deliver_all(scenario, world)?;
        let before = world.clone();
        fire_timers(scenario, world);
        if *world == before {
            return judge(world);
        }
    }
    judge(world).and(Err(Stuck::Endless))
}

fn deliver_all(scenario: &Scenario, world: &mut World) -> Result<(), Stuck> {
    for _ in 0..MESSAGES {
        flush(scenario, world);
        let Some(message) = world.network.first().cloned() else { return Ok(()) };
        world.perform(scenario, &Action::Deliver(message));
        if let Some(broken) = world.record.broken {
            return Err(Stuck::Broken(broken));
        }
    }
    judge(world).and(Err(Stuck::Endless))
}

fn flush(scenario: &Scenario, world: &mut World) {
    if scenario.gate == Gate::Explicit {
        world.perform(scenario, &Action::FlushSequencer);
        for participant in scenario.participants.iter() {
            world.perform(scenario, &Action::FlushParticipant(participant));
        }
    }
}

/// Everything that an alarm, a deadline or an operator's patience would bring about.
fn fire_timers(scenario: &Scenario, world: &mut World) {
    for worker in scenario.workers() {
        fire_worker(scenario, world, worker);
    }
    for participant in scenario.participants.iter() {
        let partition = &world.partitions[participant];
        if partition.is_asking() {
            world.perform(scenario, &Action::TimeOut(participant));
        } else if partition.owes_round() && !scenario.breaks(Mutation::NoTrailingRound) {
            world.perform(scenario, &Action::Idle(participant));
        }
        if !scenario.breaks(Mutation::NoAlarm) {
            let staged = world.partitions[participant].store.memory.staged.clone();
            for part in staged {
                world.perform(scenario, &Action::Resolve(participant, part.txid));
            }
        }
        if world.sequencer.waits_for(participant) && !scenario.breaks(Mutation::NoTrailingRound) {
            world.perform(scenario, &Action::Settle(participant));
        }
    }
}

/// A live worker repeats what is safe to repeat, and gives up where it may.
fn fire_worker(scenario: &Scenario, world: &mut World, id: WorkerId) {
    match world.workers[id.index()].phase {
        Phase::Publishing | Phase::Staging(_) => {
            world.perform(scenario, &Action::WorkerTimeOut(id));
        }
        Phase::Deciding { .. } | Phase::Applying { .. } => {
            world.worker_event(id, |worker, out: &mut Vec<Message>| worker.retry(scenario, out));
        }
        Phase::NotArrived | Phase::Answered(_) | Phase::Dead => {}
    }
}

fn judge(world: &World) -> Result<(), Stuck> {
    let partitions = &world.partitions.0;
    if partitions.iter().any(|partition| !partition.store.memory.staged.is_empty()) {
        return Err(Stuck::Staged);
    }
    if partitions.iter().any(Partition::has_queue) {
        return Err(Stuck::Queued);
    }
    if world.sequencer.store.durable.boundary != world.sequencer.newest_id() {
        return Err(Stuck::Boundary);
    }
    let applied_everywhere = world.record.decided.iter().all(|decision| {
        let mut participants = decision.participants.iter();
        participants.all(|participant| world.partitions[participant].store.durable.is_applied(decision.txid))
    });
    if applied_everywhere { Ok(()) } else { Err(Stuck::NotApplied) }
}
