//! Running a model to exhaustion, or to the first violation.

use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

use crate::invariants::Invariant;
use crate::progress::{self, Stuck};
use crate::scenario::Scenario;
use crate::world::World;

/// How a run can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Something bad happened.
    Broken(Invariant),
    /// Something good never will.
    Stuck(Stuck),
}

/// What breaks in `world`, if anything.
pub fn violation(scenario: &Scenario, world: &World) -> Option<Violation> {
    match world.broken {
        Some(invariant) => Some(Violation::Broken(invariant)),
        None if scenario.safety_only => None,
        None => progress::check(scenario, world).err().map(Violation::Stuck),
    }
}

/// A violation, and a shortest way to it.
#[derive(Clone, Debug)]
pub struct Found<State, Action> {
    /// Where it came up.
    pub state: State,
    /// From the start.
    pub trace: Vec<Action>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Searched<State, Action> {
    /// Distinct states visited.
    pub states: usize,
    /// The first violation.
    pub found: Option<Found<State, Action>>,
}

/// Visits the states of a model breadth first, on one thread, until one violates its property.
pub fn exhaust<M>(model: &M) -> Searched<M::State, M::Action>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + std::fmt::Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: std::fmt::Debug + Clone + PartialEq,
{
    let checker = model.clone().checker().threads(1).finish_when(HasDiscoveries::Any).spawn_bfs().join();
    let found = checker.discoveries().into_values().next();
    let found = found.map(|path| Found { state: path.last_state().clone(), trace: path.into_actions() });
    Searched { states: checker.unique_state_count(), found }
}
