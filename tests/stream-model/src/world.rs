//! The world: the client, its session, the partitions, the network, and what the adversary may still do.

use crate::action::Action;
use crate::client::Client;
use crate::effects::Effects;
use crate::invariants::Invariant;
use crate::message::Message;
use crate::names::{PartitionId, PerPartition, PerTopic, Rows, SequenceId, Topic};
use crate::network::Network;
use crate::partition::Partition;
use crate::scenario::{Faults, Scenario};
use crate::session::Session;

/// One state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// Who reads.
    pub client: Client,
    /// Its stream.
    pub session: Session,
    /// Who holds the topics.
    pub partitions: PerPartition<Partition>,
    /// Messages under way.
    pub network: Network,
    /// The newest id given out.
    pub newest: SequenceId,
    /// What the adversary may still do.
    pub faults: Faults,
    /// The first invariant that broke.
    pub broken: Option<Invariant>,
}

impl World {
    /// The start: the stream is open and has no topics.
    pub fn start(scenario: &Scenario) -> Self {
        let stored = scenario.stored_at_start();
        let mut world = Self {
            client: Client::default(),
            session: Session::default(),
            partitions: PerPartition(PartitionId::ALL.map(|id| Partition::new(id, stored[id]))),
            network: Network::default(),
            newest: scenario.last_id() - scenario.commits,
            faults: scenario.faults,
            broken: None,
        };
        world.session_event(scenario, |session, effects| session.alarm(scenario, effects));
        world
    }

    /// The rows that a reader of the log would see.
    pub fn visible(&self, scenario: &Scenario) -> PerTopic<Rows> {
        PerTopic(Topic::ALL.map(|topic| self.partitions[scenario.partition(topic)].stored.rows[topic]))
    }

    /// Lets one thing happen. What breaks is noted in [`World::broken`].
    pub fn perform(&mut self, scenario: &Scenario, action: &Action) {
        match action {
            Action::Update => {
                self.client.sent += 1;
                self.session_event(scenario, |session, effects| session.update(scenario, effects));
            }
            Action::Commit(topic) => {
                self.newest += 1;
                let id = self.newest;
                self.partition_event(scenario, scenario.partition(*topic), |partition, effects| {
                    partition.commit(scenario, *topic, id, effects);
                });
            }
            Action::Deliver(message) => {
                self.network.take(message);
                self.deliver(scenario, message);
            }
            Action::Repeat(message) => {
                self.faults.repeats -= 1;
                self.deliver(scenario, message);
            }
            Action::Crash(at) => {
                self.faults.crashes -= 1;
                self.partitions[*at].crash();
            }
            Action::Start(at) => {
                self.partitions[*at].start(scenario);
            }
            Action::Load(at) => self.partitions[*at].load(scenario),
            Action::Alarm(at) => {
                self.partition_event(scenario, *at, |partition, effects| partition.alarm(scenario, effects));
            }
            Action::Overflow(at) => {
                self.faults.overflows -= 1;
                self.partitions[*at].overflow();
            }
            Action::Push(from) => {
                self.partition_event(scenario, *from, Partition::push);
            }
            Action::PushTimesOut(from) => {
                self.faults.time_outs -= 1;
                self.partitions[*from].push_times_out(scenario);
            }
            Action::Pull(topic) => {
                self.session_event(scenario, |session, effects| session.pull(scenario, *topic, effects));
            }
            Action::PullTimesOut(topic) => {
                self.faults.time_outs -= 1;
                self.session_event(scenario, |session, effects| {
                    session.pull_times_out(scenario, *topic, effects);
                });
            }
            Action::ControlTimesOut(to) => {
                self.faults.time_outs -= 1;
                self.session_event(scenario, |session, effects| session.control_times_out(*to, effects));
            }
            Action::Hibernate => {
                self.faults.hibernations -= 1;
                self.session.lose_memory();
            }
            Action::LoseMemory => {
                self.faults.losses -= 1;
                self.session.lose_memory();
            }
            Action::Wake => {
                self.session_event(scenario, |session, effects| session.alarm(scenario, effects));
            }
        }
        self.forget_inert(scenario);
    }

    /// A message arrives, whether or not it stays under way.
    pub fn deliver(&mut self, scenario: &Scenario, message: &Message) {
        match message.partition(scenario) {
            Some(at) => self.partition_event(scenario, at, |partition, effects| {
                partition.handle(scenario, message, effects);
            }),
            None => self.session_event(scenario, |session, effects| {
                session.handle(scenario, message, effects);
            }),
        }
    }

    fn session_event(&mut self, scenario: &Scenario, event: impl FnOnce(&mut Session, &mut Effects)) {
        let mut effects = Effects::default();
        event(&mut self.session, &mut effects);
        self.take_effect(scenario, effects);
    }

    fn partition_event(
        &mut self,
        scenario: &Scenario,
        at: PartitionId,
        event: impl FnOnce(&mut Partition, &mut Effects),
    ) {
        let mut effects = Effects::default();
        event(&mut self.partitions[at], &mut effects);
        self.take_effect(scenario, effects);
    }

    fn take_effect(&mut self, scenario: &Scenario, effects: Effects) {
        for message in effects.messages {
            self.network.send(message);
        }
        if !effects.frames.is_empty() {
            let visible = self.visible(scenario);
            for frame in effects.frames {
                let verdict = self.client.receive(scenario, frame, visible);
                self.broken = self.broken.or(verdict.err());
            }
        }
        // With a rule broken the question is what the client suffers, not which assertion would have stopped it.
        if scenario.mutation.is_none() {
            self.broken = self.broken.or(effects.failed.map(Invariant::Assertion));
        }
    }
}
