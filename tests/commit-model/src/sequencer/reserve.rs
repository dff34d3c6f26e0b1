//! Reserving: ids for a partition, and the list of what was decided (rules 2, 4 and 5).

use std::cmp::Ordering;

use super::Sequencer;
use crate::effects::Effects;
use crate::message::{Listed, Message, Reserve, Reserved};
use crate::mutation::Mutation;
use crate::names::SequenceId;
use crate::scenario::Scenario;

impl Sequencer {
    /// Rules 2, 4, 5 and 8: the whole answer is computed in one event.
    pub(super) fn reserve(&mut self, scenario: &Scenario, request: &Reserve, effects: &mut Effects) {
        if request.epoch_seen > self.epoch {
            return; // A successor exists: stop (rule 8).
        }
        effects.assert(request.applied <= self.next, "S(f): no participant has applied an id not given out");
        let Some(turn) = self.take_turn(scenario, request) else { return };
        self.confirm(scenario, request);
        let heard = request.epoch_seen == self.epoch || scenario.breaks(Mutation::HeardOnAnyRequest);
        self.desks[request.from].heard |= heard;

        let mut decided: Vec<Listed> = self
            .unconfirmed_by(request.from)
            .map(|decision| Listed {
                position: decision.position(),
                txid: decision.txid,
                id: decision.ids[request.from],
            })
            .collect();
        decided.sort_unstable();
        // A cut list goes with no ids: what was left out would be skipped by them (rule 5, trap 13).
        let left_out = decided.get(scenario.list_limit).map(|listed| listed.position);
        decided.truncate(scenario.list_limit);
        let cut = left_out.filter(|_| !scenario.breaks(Mutation::CutListWithIds));
        let (first_id, count) = match cut {
            Some(position) => (position, 0),
            None => (self.open(scenario, request, turn), request.count),
        };
        effects.assert(
            decided.iter().all(|listed| listed.position < first_id),
            "S: every listed transaction is below first_id",
        );
        self.note_told(scenario, request, &decided);
        effects.send(Message::Reserved(Reserved {
            to: request.from,
            name: request.name,
            epoch: self.epoch,
            decided,
            more: left_out.is_some(),
            first_id,
            count,
        }));
    }

    /// Places a request in its participant's order (rule 4). Older than another: nothing is opened for it. Newer: the
    /// participant has given up all earlier ones, and their reservations close. A repeat: all stay open, because any
    /// of the replies may be the one it takes (trap 2).
    fn take_turn(&mut self, scenario: &Scenario, request: &Reserve) -> Option<Ordering> {
        let desk = &mut self.desks[request.from];
        let mut turn = request.name.cmp(&desk.latest);
        if scenario.breaks(Mutation::UnorderedInstances)
            && request.name.incarnation != desk.latest.incarnation
        {
            turn = Ordering::Greater;
        }
        if turn == Ordering::Less && !scenario.breaks(Mutation::TwoRequestsInFlight) {
            return None;
        }
        let closes = match turn {
            _ if scenario.breaks(Mutation::TwoRequestsInFlight) => false,
            Ordering::Equal => scenario.breaks(Mutation::RepeatReplacesReservation),
            _ => true,
        };
        if closes {
            desk.lowest_open = 0;
        }
        desk.latest = request.name;
        Some(turn)
    }

    /// Gives out ids, fresh ones even to a repeat (rule 4). With `count` 0 this is the next id not given out, and
    /// nothing opens.
    fn open(&mut self, scenario: &Scenario, request: &Reserve, turn: Ordering) -> SequenceId {
        let lowest_open = self.desks[request.from].lowest_open;
        if scenario.breaks(Mutation::RepeatReusesIds) && turn == Ordering::Equal && lowest_open > 0 {
            return lowest_open;
        }
        let first_id = self.allocate(scenario, request.count);
        if request.count > 0 && lowest_open == 0 {
            self.desks[request.from].lowest_open = first_id;
        }
        first_id
    }
}
