//! Running a scenario to exhaustion, or to the first violation.

use stateright::{Checker, HasDiscoveries, Model};

use crate::action::Action;
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

/// A violation, and a shortest way to it.
#[derive(Clone, Debug)]
pub struct Found {
    /// What broke.
    pub violation: Violation,
    /// From the start.
    pub trace: Vec<Action>,
}

/// What breaks in `world`, if anything.
pub fn violation(scenario: &Scenario, world: &World) -> Option<Violation> {
    if let Some(invariant) = world.record.broken {
        return Some(Violation::Broken(invariant));
    }
    let stuck = if scenario.progress { progress::check(scenario, world).err() } else { None };
    stuck.map(Violation::Stuck)
}

/// Visits the states of a scenario breadth first, on one thread, until one violates something.
///
/// Returns the number of distinct states visited, and the violation.
pub fn exhaust(scenario: &Scenario) -> (usize, Option<Found>) {
    let checker = scenario.clone().checker().threads(1).finish_when(HasDiscoveries::Any).spawn_bfs().join();
    let found = checker.discoveries().into_values().next().map(|path| Found {
        violation: violation(scenario, path.last_state()).unwrap_or(Violation::Stuck(Stuck::Endless)),
        trace: path.into_actions(),
    });
    (checker.unique_state_count(), found)
}
