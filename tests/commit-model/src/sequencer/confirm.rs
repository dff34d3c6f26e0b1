//! Who has applied what (rule 2), and when a transaction is finished (rule 7).

use super::{Decision, Sequencer};
use crate::message::{Listed, Reserve};
use crate::mutation::Mutation;
use crate::names::{Participant, Participants, RequestName, Txid};
use crate::scenario::Scenario;

impl Sequencer {
    /// Unfinished transactions that wait for `participant`.
    pub(super) fn unconfirmed_by(&self, participant: Participant) -> impl Iterator<Item = &Decision> {
        self.store.memory.decisions.iter().filter(move |decision| {
            !decision.finished
                && decision.participants.contains(participant)
                && !self.confirmations(decision.txid).contains(participant)
        })
    }

    pub(super) fn confirmations(&self, txid: Txid) -> Participants {
        self.confirmed.iter().find(|(known, _)| *known == txid).map(|(_, by)| *by).unwrap_or_default()
    }

    /// What has been applied is confirmed: a position, for participants with and without ids alike, and never a
    /// request (rule 2, traps 1 and 14).
    pub(super) fn confirm(&mut self, scenario: &Scenario, request: &Reserve) {
        let by_request = scenario.breaks(Mutation::ConfirmationByRequest);
        let by_own_id = scenario.breaks(Mutation::ParticipantWithoutIds);
        let confirmed: Vec<Txid> = self
            .unconfirmed_by(request.from)
            .filter(|decision| {
                let place = if by_own_id { decision.ids[request.from] } else { decision.position() };
                let told_before = |(to, name, txid): &(Participant, RequestName, Txid)| {
                    *to == request.from
                        && name.incarnation == request.name.incarnation
                        && *name < request.name
                        && *txid == decision.txid
                };
                place < request.applied || by_request && self.told.iter().any(told_before)
            })
            .map(|decision| decision.txid)
            .collect();
        self.note_confirmed(&confirmed, request.from);
        self.finish(scenario);
    }

    fn note_confirmed(&mut self, txids: &[Txid], by: Participant) {
        for txid in txids {
            let place = self.confirmed.partition_point(|(known, _)| known < txid);
            if self.confirmed.get(place).is_none_or(|(known, _)| known != txid) {
                self.confirmed.insert(place, (*txid, Participants::default()));
            }
            self.confirmed[place].1.insert(by);
        }
    }

    /// Marks what every participant has confirmed; stored with the boundary that relies on it (rule 7).
    fn finish(&mut self, scenario: &Scenario) {
        for index in 0..self.store.memory.decisions.len() {
            let decision = self.store.memory.decisions[index];
            let done = self.confirmations(decision.txid).contains_all(decision.participants);
            if done && !decision.finished {
                self.store.memory.decisions[index].finished = true;
                self.confirmed.retain(|(txid, _)| *txid != decision.txid);
                self.told.retain(|(_, _, txid)| *txid != decision.txid);
            }
        }
        if scenario.breaks(Mutation::DecisionForgotten) {
            self.store.memory.decisions.retain(|decision| !decision.finished);
        }
    }

    /// What two mutations need to remember of a reply.
    pub(super) fn note_told(&mut self, scenario: &Scenario, request: &Reserve, decided: &[Listed]) {
        if scenario.breaks(Mutation::LostConfirmationCounts) {
            let txids: Vec<Txid> = decided.iter().map(|listed| listed.txid).collect();
            self.note_confirmed(&txids, request.from);
            self.finish(scenario);
        }
        if scenario.breaks(Mutation::ConfirmationByRequest) {
            self.told.extend(decided.iter().map(|listed| (request.from, request.name, listed.txid)));
            self.told.sort_unstable();
            self.told.dedup();
        }
    }
}
