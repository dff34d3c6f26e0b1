//! The closed allocation boundary (API-203, API-291; rules 7, 8 and 19).

use super::Sequencer;
use crate::mutation::Mutation;
use crate::names::{Participant, SequenceId};
use crate::scenario::Scenario;

impl Sequencer {
    /// Computes the boundary, as eagerly as can be, and stores it (rule 7). It holds still until every log partition has
    /// said the epoch (rule 8).
    pub fn advance_boundary(&mut self, scenario: &Scenario) {
        let logs = Participant::LOGS.into_iter();
        let all_heard = logs.clone().all(|participant| self.desks[participant].heard);
        if all_heard {
            self.store.memory.boundary = self.boundary_now(scenario);
        }
        let clean = all_heard && self.store.memory.boundary == self.newest_id();
        if scenario.clean_mark && (clean || !scenario.breaks(Mutation::CleanNotCleared)) {
            self.store.memory.clean = clean;
        }
    }

    /// One below the lowest id that may still land. An unfinished transaction holds it as a whole (trap 16).
    fn boundary_now(&self, scenario: &Scenario) -> SequenceId {
        let open = Participant::ALL.into_iter().map(|participant| self.desks[participant].lowest_open);
        let open = open.filter(|first_id| *first_id > 0);
        let unfinished = self
            .store
            .memory
            .decisions
            .iter()
            .filter(|decision| !decision.finished && !scenario.breaks(Mutation::BoundaryIgnoresDecided));
        let held = unfinished.filter_map(|decision| {
            if scenario.breaks(Mutation::BoundaryByParticipant) {
                let confirmed = self.confirmations(decision.txid);
                let waiting = Participant::LOGS.into_iter().filter(|log| !confirmed.contains(*log));
                return waiting.map(|log| decision.ids[log]).filter(|id| *id > 0).min();
            }
            Some(decision.position())
        });
        open.chain(held).min().unwrap_or(self.next) - 1
    }
}
