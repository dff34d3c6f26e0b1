//! What may happen next. `stateright` tries all of it in every state.

use stateright::{Model, Property};

use crate::check;
use crate::message::Message;
use crate::mutation::Mutation;
use crate::names::{Participant, Txid, WorkerId};
use crate::scenario::{Gate, Scenario};
use crate::worker::Phase;
use crate::world::World;

/// One event, or one act of the adversary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A publish arrives.
    Arrive(WorkerId),
    /// A message arrives.
    Deliver(Message),
    /// A message arrives, and will once more.
    Repeat(Message),
    /// The sequencer's memory is lost; the next instance starts.
    CrashSequencer,
    /// A participant's memory is lost; the next instance starts.
    CrashParticipant(Participant),
    /// A partition gives up a request.
    TimeOut(Participant),
    /// A partition has been quiet for 50 ms and still owes a round.
    Idle(Participant),
    /// A participant asks what became of a staged transaction.
    Resolve(Participant, Txid),
    /// The sequencer asks a participant for its epoch and its progress.
    Settle(Participant),
    /// A worker gives up.
    WorkerTimeOut(WorkerId),
    /// The sequencer's writes become durable ([`Gate::Explicit`]).
    FlushSequencer,
    /// A participant's writes become durable ([`Gate::Explicit`]).
    FlushParticipant(Participant),

    /// Only under [`Mutation::StageDroppedAtDeadline`].
    DropStaged(Participant, Txid),
    /// Only under [`Mutation::TombstoneExpires`].
    ExpireTombstone(Txid),
    /// Only under [`Mutation::SupersededSequencerAnswers`].
    DeliverToSuperseded(Message),
}

impl World {
    /// Everything that may happen.
    pub fn actions(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        for message in self.network.messages() {
            actions.push(Action::Deliver(message.clone()));
            if self.faults.repeats > 0 {
                actions.push(Action::Repeat(message.clone()));
            }
            if self.superseded.is_some() && matches!(message, Message::Reserve(_)) {
                actions.push(Action::DeliverToSuperseded(message.clone()));
            }
        }
        self.worker_actions(scenario, actions);
        self.sequencer_actions(scenario, actions);
        for participant in scenario.participants.iter() {
            self.participant_actions(scenario, participant, actions);
        }
    }

    fn worker_actions(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        for worker in &self.workers {
            if worker.phase == Phase::NotArrived {
                actions.push(Action::Arrive(worker.id));
            } else if self.faults.worker_time_outs > 0 && worker.may_withdraw(scenario) {
                actions.push(Action::WorkerTimeOut(worker.id));
            }
        }
    }

    fn sequencer_actions(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        if self.faults.sequencer_crashes > 0 {
            actions.push(Action::CrashSequencer);
        }
        if scenario.gate == Gate::Explicit && !self.sequencer.store.is_flushed() {
            actions.push(Action::FlushSequencer);
        }
        if scenario.breaks(Mutation::TombstoneExpires) && self.faults.resolves > 0 {
            let aborted = &self.sequencer.store.memory.aborted;
            actions.extend(aborted.iter().copied().map(Action::ExpireTombstone));
        }
    }

    fn participant_actions(&self, scenario: &Scenario, at: Participant, actions: &mut Vec<Action>) {
        let partition = &self.partitions[at];
        if self.faults.participant_crashes > 0 {
            actions.push(Action::CrashParticipant(at));
        }
        if self.faults.time_outs > 0 && partition.is_asking() {
            actions.push(Action::TimeOut(at));
        }
        if partition.owes_round() {
            actions.push(Action::Idle(at));
        }
        if scenario.gate == Gate::Explicit && !partition.store.is_flushed() {
            actions.push(Action::FlushParticipant(at));
        }
        if self.faults.resolves > 0 {
            for staged in &partition.store.memory.staged {
                let question = Message::Resolve { from: at, txid: staged.txid };
                if !self.network.contains(&question) {
                    actions.push(Action::Resolve(at, staged.txid));
                }
                if scenario.breaks(Mutation::StageDroppedAtDeadline) {
                    actions.push(Action::DropStaged(at, staged.txid));
                }
            }
        }
        let settle = Message::Settle { to: at, epoch: self.sequencer.epoch() };
        if self.faults.settles > 0 && self.sequencer.waits_for(at) && !self.network.contains(&settle) {
            actions.push(Action::Settle(at));
        }
    }
}

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::start(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // What comes after a violation is of no interest.
        if world.record.broken.is_none() {
            world.actions(self, actions);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut next = last.clone();
        next.perform(self, &action);
        (next != *last).then_some(next)
    }

    /// One property, so that the search ends at the first state, and so with a shortest trace.
    /// [`check::violation`] says what broke in it.
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("nothing breaks, and everything ends", |scenario, world| {
            check::violation(scenario, world).is_none()
        })]
    }
}
