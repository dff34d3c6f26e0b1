//! The world: all objects, the network, what the adversary may still do, and what the outside has seen.

use crate::action::Action;
use crate::effects::Effects;
use crate::invariants::{self, Before, Invariant};
use crate::message::{Destination, Message};
use crate::mutation::Mutation;
use crate::names::{Participant, PerParticipant, SequenceId, WorkerId};
use crate::network::Network;
use crate::partition::Partition;
use crate::scenario::{Faults, Gate, Scenario};
use crate::sequencer::{Decision, Sequencer};
use crate::worker::Worker;

/// One state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The running instance.
    pub sequencer: Sequencer,
    /// For [`Mutation::SupersededSequencerAnswers`] only: an instance that does not know that it is over.
    pub superseded: Option<Box<Sequencer>>,
    /// The running instance at each place.
    pub partitions: PerParticipant<Partition>,
    /// One for each publish.
    pub workers: Vec<Worker>,
    /// Messages under way.
    pub network: Network,
    /// What the adversary may still do.
    pub faults: Faults,
    /// What the outside has seen.
    pub record: Record,
}

/// What the outside has seen, for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    /// The highest boundary told.
    pub told: SequenceId,
    /// Every decision that became durable, by txid.
    pub decided: Vec<Decision>,
    /// The first invariant that broke.
    pub broken: Option<Invariant>,
}

impl World {
    /// The start: nothing stored, everybody in the first epoch.
    pub fn start(scenario: &Scenario) -> Self {
        let mut sequencer = Sequencer::default();
        sequencer.start(scenario);
        sequencer.heard_by_all();
        Self {
            sequencer,
            superseded: None,
            partitions: PerParticipant(Participant::ALL.map(Partition::new)),
            workers: scenario.workers().map(Worker::new).collect(),
            network: Network::default(),
            faults: scenario.faults,
            record: Record::default(),
        }
    }

    /// Lets one thing happen. What breaks is noted in [`Record::broken`].
    pub fn perform(&mut self, scenario: &Scenario, action: &Action) {
        let before = Before::of(self);
        match action {
            Action::Arrive(worker) => self.arrive(scenario, *worker),
            Action::Deliver(message) => {
                self.network.take(message);
                self.deliver(scenario, message);
            }
            Action::Repeat(message) => {
                self.faults.repeats -= 1;
                self.deliver(scenario, message);
            }
            Action::CrashSequencer => {
                self.faults.sequencer_crashes -= 1;
                self.crash_sequencer(scenario);
            }
            Action::CrashParticipant(at) => {
                self.faults.participant_crashes -= 1;
                self.partitions[*at].restart();
            }
            Action::TimeOut(at) => {
                self.faults.time_outs -= 1;
                self.partition_event(scenario, *at, |partition, effects| {
                    partition.time_out(scenario, effects);
                });
            }
            Action::Idle(at) => {
                self.partition_event(scenario, *at, |partition, effects| partition.idle(scenario, effects));
            }
            Action::Resolve(at, txid) => {
                self.faults.resolves -= 1;
                self.partition_event(scenario, *at, |partition, effects| partition.resolve(*txid, effects));
            }
            Action::DropStaged(at, txid) => {
                self.faults.resolves -= 1;
                self.partition_event(scenario, *at, |partition, _| {
                    partition.store.memory.end_without_rows(*txid);
                });
            }
            Action::Settle(to) => {
                self.faults.settles -= 1;
                let message = Message::Settle { to: *to, epoch: self.sequencer.epoch() };
                self.sequencer_event(scenario, |_, effects| effects.send(message));
            }
            Action::ExpireTombstone(txid) => {
                self.faults.resolves -= 1;
                self.sequencer_event(scenario, |sequencer, _| {
                    sequencer.store.memory.aborted.retain(|aborted| aborted != txid);
                });
            }
            Action::WorkerTimeOut(worker) => {
                self.faults.worker_time_outs -= 1;
                self.worker_event(*worker, |worker, out| worker.time_out(scenario, out));
            }
            Action::FlushSequencer => self.flush_sequencer(scenario),
            Action::FlushParticipant(at) => self.flush_partition(*at),
            Action::DeliverToSuperseded(message) => self.deliver_to_superseded(scenario, message),
        }
        self.forget_inert(scenario);
        let broken = invariants::check(scenario, &before, self);
        self.record.broken = self.record.broken.or(broken);
    }

    /// A publish arrives: its worker reads what admission needs, in one snapshot, and sends the first attempt off.
    fn arrive(&mut self, scenario: &Scenario, worker: WorkerId) {
        let publish = scenario.publish(worker);
        let stores = self.partitions.0.each_ref().map(|partition| &partition.store.durable);
        let visible = stores.iter().flat_map(|store| &store.rows).map(|row| row.id).max().unwrap_or(0);
        let mut expected_heads = PerParticipant::default();
        for log in Participant::LOGS {
            expected_heads[log] = publish.envelopes[log]
                .and_then(|envelope| envelope.expected_head(stores[log as usize].head(envelope.topic)));
        }
        self.worker_event(worker, |worker, out| {
            worker.visible_at_arrival = visible;
            worker.expected_heads = expected_heads;
            worker.start_attempt(scenario, out);
        });
    }

    fn deliver(&mut self, scenario: &Scenario, message: &Message) {
        match message.destination() {
            Destination::Sequencer => {
                self.sequencer_event(scenario, |sequencer, effects| {
                    sequencer.handle(scenario, message, effects);
                });
            }
            Destination::Partition(at) => self.partition_event(scenario, at, |partition, effects| {
                partition.handle(scenario, message, effects);
            }),
            Destination::Worker(id) => {
                self.worker_event(id, |worker, out| worker.handle(scenario, message, out));
            }
        }
    }

    /// Runs one event of the sequencer, and computes the boundary after it.
    fn sequencer_event(&mut self, scenario: &Scenario, event: impl FnOnce(&mut Sequencer, &mut Effects)) {
        let mut effects = Effects::default();
        event(&mut self.sequencer, &mut effects);
        self.sequencer.advance_boundary(scenario);
        let held = self.release_ungated(scenario, effects);
        self.sequencer.store.hold(held);
        if scenario.breaks(Mutation::BoundaryToldBeforeStored) {
            self.record.told = self.record.told.max(self.sequencer.store.memory.boundary);
        }
        if scenario.gate == Gate::Atomic || self.sequencer.store.is_flushed() {
            self.flush_sequencer(scenario);
        }
    }

    /// Runs one event of a partition.
    pub fn partition_event(
        &mut self,
        scenario: &Scenario,
        at: Participant,
        event: impl FnOnce(&mut Partition, &mut Effects),
    ) {
        let mut effects = Effects::default();
        event(&mut self.partitions[at], &mut effects);
        let held = self.release_ungated(scenario, effects);
        self.partitions[at].store.hold(held);
        if scenario.gate == Gate::Atomic || self.partitions[at].store.is_flushed() {
            self.flush_partition(at);
        }
    }

    /// Runs one event of a worker. It stores nothing, so its messages wait for nothing.
    pub fn worker_event(&mut self, id: WorkerId, event: impl FnOnce(&mut Worker, &mut Vec<Message>)) {
        let mut messages = Vec::new();
        event(&mut self.workers[id.index()], &mut messages);
        self.network.send_all(messages);
    }

    /// Notes a failed assertion, sends what a mutation lets past the gate, and returns what the gate holds.
    fn release_ungated(&mut self, scenario: &Scenario, effects: Effects) -> Vec<Message> {
        let Some(mutation) = scenario.mutation else {
            self.record.broken = self.record.broken.or(effects.failed.map(Invariant::Assertion));
            return effects.messages;
        };
        // With a rule broken the question is what the contract suffers, not which assertion would have stopped it.
        let (past, held) = effects.messages.into_iter().partition(|message| mutation.bypasses_gate(message));
        let past: Vec<Message> = past;
        self.network.send_all(past);
        held
    }

    /// Makes the sequencer's writes durable; what waited for them leaves, and the stored boundary may be told.
    fn flush_sequencer(&mut self, scenario: &Scenario) {
        let store = &mut self.sequencer.store;
        let stored_end = store.durable.block_end;
        let released = store.flush();
        if scenario.breaks(Mutation::BlockEndNotStored) {
            store.durable.block_end = stored_end;
        }
        self.record.told = self.record.told.max(store.durable.boundary);
        for decision in &store.durable.decisions {
            let decision = Decision { finished: false, ..*decision };
            if let Err(place) = self.record.decided.binary_search(&decision) {
                self.record.decided.insert(place, decision);
            }
        }
        self.network.send_all(released);
    }

    fn flush_partition(&mut self, at: Participant) {
        let released = self.partitions[at].store.flush();
        self.network.send_all(released);
    }

    fn crash_sequencer(&mut self, scenario: &Scenario) {
        if scenario.breaks(Mutation::SupersededSequencerAnswers) {
            self.superseded = Some(Box::new(self.sequencer.clone()));
        }
        self.sequencer.start(scenario);
        self.sequencer_event(scenario, |_, _| {});
    }

    /// The superseded instance starts one event. Nothing that it writes reaches storage.
    fn deliver_to_superseded(&mut self, scenario: &Scenario, message: &Message) {
        let Some(mut sequencer) = self.superseded.take() else { return };
        self.network.take(message);
        let mut effects = Effects::default();
        sequencer.handle(scenario, message, &mut effects);
        self.network.send_all(effects.messages);
    }
}
