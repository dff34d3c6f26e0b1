//! The sequencer: the only source of ids and the only judge of transactions.

mod boundary;
mod confirm;
mod reserve;
mod store;

use crate::effects::Effects;
use crate::gate::Gated;
use crate::message::Message;
use crate::mutation::Mutation;
use crate::names::{Epoch, Participant, Participants, PerParticipant, RequestName, SequenceId, Txid};
use crate::scenario::Scenario;

pub use store::{Decision, SequencerStore};

/// One running instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequencer {
    /// Its tables, behind the output gate.
    pub store: Gated<SequencerStore>,
    epoch: Epoch,
    next: SequenceId,
    desks: PerParticipant<Desk>,
    /// Who has confirmed which unfinished transaction, by txid.
    confirmed: Vec<(Txid, Participants)>,
    /// For [`Mutation::ConfirmationByRequest`] only: what the reply to which request listed.
    told: Vec<(Participant, RequestName, Txid)>,
}

/// What an instance remembers of one participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Desk {
    /// The highest request name seen (rule 4).
    latest: RequestName,
    /// The lowest id of the reservations whose reply may still be used; 0 when there are none.
    lowest_open: SequenceId,
    /// It has said this instance's epoch (rule 8).
    heard: bool,
}

impl Sequencer {
    /// Starts the next instance on what is durable: at the stored block end, with a new block behind it.
    pub fn start(&mut self, scenario: &Scenario) {
        let stored_end = self.store.durable.block_end;
        self.store.write_at_start(|store| store.block_end = stored_end + scenario.block);
        if scenario.breaks(Mutation::BlockEndNotStored) {
            self.store.durable.block_end = stored_end;
        }
        self.next = stored_end + 1;
        if scenario.breaks(Mutation::BlockGivenOutAgain) {
            self.next = stored_end.saturating_sub(scenario.block) + 1;
        }
        self.epoch = stored_end;
        // A start from `clean` need hear nobody: no reservation can be open (rule 19).
        let desk = Desk { heard: self.store.memory.clean, ..Desk::default() };
        self.desks = PerParticipant([desk; 3]);
        self.confirmed.clear();
        self.told.clear();
    }

    /// The first instance of a deployment that has been running quietly: everybody knows its epoch.
    pub fn heard_by_all(&mut self) {
        for participant in Participant::ALL {
            self.desks[participant].heard = true;
        }
    }

    /// The block end at which this instance started.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The newest id given out.
    pub fn newest_id(&self) -> SequenceId {
        self.next - 1
    }

    /// Whether asking `participant` would help the boundary on: it has not said the epoch, or holds a reservation, or
    /// has not confirmed a transaction.
    pub fn waits_for(&self, participant: Participant) -> bool {
        let desk = &self.desks[participant];
        participant.is_log() && !desk.heard
            || desk.lowest_open > 0
            || self.unconfirmed_by(participant).next().is_some()
    }

    /// Handles one message.
    pub fn handle(&mut self, scenario: &Scenario, message: &Message, effects: &mut Effects) {
        match message {
            Message::Reserve(request) => self.reserve(scenario, request, effects),
            Message::Settled { from, epoch } => self.desks[*from].heard |= *epoch == self.epoch,
            Message::Decide { txid, participants } => {
                let ids = self.decide(scenario, *txid, *participants, effects);
                effects.send(Message::DecideReply { txid: *txid, ids });
            }
            Message::Resolve { from, txid } => {
                let aborted = self.resolve(scenario, *txid, effects);
                effects.send(Message::Resolved { to: *from, txid: *txid, aborted });
            }
            _ => {}
        }
    }

    /// This one write is the commit. A repeat gets the same answer (rule 11), an aborted transaction none (rule 12).
    fn decide(
        &mut self,
        scenario: &Scenario,
        txid: Txid,
        participants: Participants,
        effects: &mut Effects,
    ) -> Option<PerParticipant<SequenceId>> {
        if let Some(known) = self.decision(txid) {
            effects.assert(
                known.participants == participants,
                "S: a repeated decide names the same participants",
            );
            return Some(known.ids);
        }
        if self.store.memory.aborted.contains(&txid) {
            return None;
        }
        let mut ids = PerParticipant::default();
        for participant in participants.iter().filter(|participant| participant.is_log()) {
            ids[participant] = self.allocate(scenario, 1);
        }
        let decision = Decision { txid, participants, ids, finished: false };
        effects.assert(
            decision.position() > self.store.memory.boundary,
            "S(d): a decided transaction lies above the boundary",
        );
        let decisions = &mut self.store.memory.decisions;
        decisions.insert(decisions.partition_point(|known| known.txid < txid), decision);
        Some(ids)
    }

    /// Undecided means aborted; the tombstone is in the write that the answer waits for (rule 12).
    fn resolve(&mut self, scenario: &Scenario, txid: Txid, effects: &mut Effects) -> bool {
        let aborted = &mut self.store.memory.aborted;
        if self.store.memory.decisions.iter().any(|decision| decision.txid == txid) {
            effects.assert(!aborted.contains(&txid), "S(e): a transaction is never both decided and aborted");
            return false;
        }
        if !aborted.contains(&txid) && !scenario.breaks(Mutation::AbortNotRecorded) {
            aborted.insert(aborted.partition_point(|known| *known < txid), txid);
        }
        true
    }

    /// A block extension covers the request (rule 7, trap 23).
    fn allocate(&mut self, scenario: &Scenario, count: u8) -> SequenceId {
        let first_id = self.next;
        self.next += count;
        while self.newest_id() > self.store.memory.block_end {
            self.store.memory.block_end += scenario.block;
        }
        first_id
    }

    fn decision(&self, txid: Txid) -> Option<&Decision> {
        self.store.memory.decisions.iter().find(|decision| decision.txid == txid)
    }
}
