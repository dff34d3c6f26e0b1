//! The session of one stream: what it keeps where, how it wakes, and how each of its events ends (rules 2, 19 and 20).

mod delivery;
mod registration;
mod updates;

use crate::effects::Effects;
use crate::message::{Control, Kind, Message, Push, PushReply};
use crate::mutation::Mutation;
use crate::names::{Generation, PartitionId, PerPartition, PerTopic, SequenceId, Topic};
use crate::scenario::Scenario;
use registration::Registration;
use updates::{Changes, Work};

/// One stream's object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Session {
    /// The stream has failed with UNAVAILABLE.
    pub over: bool,
    /// What survives the loss of memory.
    pub durable: Durable,
    /// `None`: not in memory. Any event wakes it.
    pub memory: Option<Memory>,
}

/// Storage and the socket's attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Durable {
    /// Attachment: something was going on that memory alone knows.
    busy: bool,
    /// Attachment: some registration was behind.
    behind: bool,
    /// Attachment: the last Update taken up.
    taken_up: u8,
    /// Attachment: the number of the last Control.
    last_number: u8,
    /// Attachment: how far each registration has got.
    positions: PerTopic<SequenceId>,
    /// Storage: registrations whose Applied has left.
    registrations: PerTopic<Option<Registered>>,
    /// Pulls made by each registration. Not kept by the real object, for which the platform pairs replies with calls.
    pulls: PerTopic<u8>,
}

/// A registration as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Registered {
    generation: Generation,
    cursor: SequenceId,
    target: SequenceId,
}

/// What hibernation takes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// By topic.
    registrations: PerTopic<Option<Registration>>,
    /// The Update in work (rule 12).
    work: Option<Work>,
    /// Updates that wait behind it.
    waiting: u8,
    /// The Control that is with each partition; at most one (rule 3).
    controls: PerPartition<Option<Control>>,
    /// What the next Control to each partition will say.
    changes: PerPartition<Changes>,
}

impl Session {
    /// Runs one event: wakes if need be, handles it, takes up Updates, and writes the attachment.
    fn event(
        &mut self,
        scenario: &Scenario,
        effects: &mut Effects,
        handle: impl FnOnce(&mut Memory, &mut Durable, &mut Effects),
    ) {
        self.wake(scenario, effects);
        let Some(memory) = &mut self.memory else { return };
        handle(memory, &mut self.durable, effects);
        memory.take_up_updates(scenario, &mut self.durable, effects);
        self.durable.keep(scenario, memory);
    }

    /// The constructor. It reads the attachment only; a stream that was busy is failed, not resumed (rule 19).
    fn wake(&mut self, scenario: &Scenario, effects: &mut Effects) {
        if self.memory.is_some() || self.over {
            return;
        }
        if self.durable.busy && !scenario.breaks(Mutation::ResumedWhileBusy) {
            *self = Self { over: true, ..Self::default() };
            return;
        }
        if scenario.breaks(Mutation::ControlNumbersRestart) {
            self.durable.last_number = 0;
        }
        let mut memory = Memory::default();
        for (topic, stored) in self.durable.registrations.iter() {
            let position = self.durable.positions[topic];
            let fresh = Registration::new(stored.generation, stored.cursor);
            let target = Some(stored.target);
            memory.registrations[topic] = Some(Registration { position, known: position, target, ..fresh });
        }
        if self.durable.behind {
            memory.sync(scenario, &mut self.durable, effects);
        }
        self.memory = Some(memory);
    }

    /// Its alarm.
    pub fn alarm(&mut self, scenario: &Scenario, effects: &mut Effects) {
        self.event(scenario, effects, |_, _, _| {});
    }

    /// The client's next Update arrives.
    pub fn update(&mut self, scenario: &Scenario, effects: &mut Effects) {
        self.event(scenario, effects, |memory, _, _| memory.waiting += 1);
    }

    /// Handles one message.
    pub fn handle(&mut self, scenario: &Scenario, message: &Message, effects: &mut Effects) {
        self.event(scenario, effects, |memory, _, effects| match message {
            Message::ControlReply(reply) => memory.control_reply(scenario, *reply, effects),
            Message::Push(push) => memory.push(scenario, push, effects),
            Message::Page(page) => memory.page(scenario, *page, effects),
            _ => {}
        });
        // Storage shows that the stream is over (rule 11).
        if let Message::Push(Push { name, .. }) = message
            && self.over
        {
            let reply = PushReply { name: *name, gone: true, unwanted: PerTopic::default() };
            effects.send(Message::PushReply(reply));
        }
    }

    /// Sends the Control that is with a partition once more: same number, same content (rule 3).
    pub fn control_times_out(&self, to: PartitionId, effects: &mut Effects) {
        if let Some(control) = self.memory.as_ref().and_then(|memory| memory.controls[to]) {
            effects.send(Message::Control(control));
        }
    }

    /// Gives up a pull; another may follow.
    pub fn pull_times_out(&mut self, scenario: &Scenario, topic: Topic, effects: &mut Effects) {
        self.event(scenario, effects, |memory, _, _| {
            if let Some(registration) = &mut memory.registrations[topic] {
                registration.pull = None;
            }
        });
    }

    /// Asks for the next page of a topic.
    pub fn pull(&mut self, scenario: &Scenario, topic: Topic, effects: &mut Effects) {
        self.event(scenario, effects, |memory, durable, effects| memory.pull(topic, durable, effects));
    }

    /// Whether a page of the topic may be asked for.
    pub fn may_pull(&self, scenario: &Scenario, topic: Topic) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.may_pull(scenario, topic))
    }

    /// Whether a page of the topic is awaited.
    pub fn is_pulling(&self, topic: Topic) -> bool {
        let registration = self.memory.as_ref().and_then(|memory| memory.registrations[topic]);
        registration.is_some_and(|registration| registration.pull.is_some())
    }

    /// The number of the Control that is with a partition.
    pub fn awaited_number(&self, from: PartitionId) -> Option<u8> {
        self.memory.as_ref().and_then(|memory| memory.controls[from]).map(|control| control.number)
    }

    /// Whether the object is in memory, and the platform may hibernate it: nothing is pending.
    pub fn may_hibernate(&self) -> bool {
        self.memory.is_some() && !self.durable.busy
    }

    /// Whether the loss of its memory would lose something.
    pub fn is_busy(&self) -> bool {
        self.memory.is_some() && self.durable.busy
    }

    /// Memory goes; storage, attachment and socket stay.
    pub fn lose_memory(&mut self) {
        self.memory = None;
    }

    /// Whether it has heard of rows that it has not sent.
    pub fn is_behind(&self) -> bool {
        self.durable.behind
    }

    /// The generation that a topic has now, and its position.
    pub fn registration(&self, topic: Topic) -> Option<(Generation, SequenceId)> {
        match &self.memory {
            Some(memory) => memory.registrations[topic].map(|here| (here.generation, here.position)),
            None => self.durable.registrations[topic]
                .map(|stored| (stored.generation, self.durable.positions[topic])),
        }
    }

    /// Whether a page with this number ends the topic's pull.
    pub fn awaits_page(&self, topic: Topic, number: u8) -> bool {
        let registration = self.memory.as_ref().and_then(|memory| memory.registrations[topic]);
        registration.is_some_and(|registration| registration.pull == Some(number))
    }
}

impl Memory {
    /// After waking behind: asks each partition concerned for the heads of all its topics (rule 20).
    fn sync(&mut self, scenario: &Scenario, durable: &mut Durable, effects: &mut Effects) {
        for (topic, registration) in self.registrations.iter() {
            self.changes[scenario.partition(topic)].add[topic] = Some(registration.generation);
        }
        self.send_controls(Kind::Sync, durable, effects);
    }

    /// Anything that memory alone knows.
    fn is_busy(&self) -> bool {
        self.work.is_some()
            || self.waiting > 0
            || self.controls.0.iter().any(Option::is_some)
            || self.changes.0.iter().any(|changes| !changes.is_empty())
            || self.registrations.iter().any(|(_, registration)| registration.pull.is_some())
    }

    fn awaits_sync(&self) -> bool {
        self.controls.0.iter().flatten().any(|control| control.kind == Kind::Sync)
    }
}

impl Durable {
    /// The end of every event: the attachment says what memory would lose (rule 19).
    fn keep(&mut self, scenario: &Scenario, memory: &Memory) {
        self.busy = memory.is_busy();
        let behind = memory.registrations.iter().any(|(_, registration)| registration.is_behind());
        let behind = behind || memory.awaits_sync();
        self.behind = behind && !scenario.breaks(Mutation::BehindLost);
        if behind && scenario.breaks(Mutation::PositionsLost) {
            return;
        }
        for topic in Topic::ALL {
            self.positions[topic] =
                memory.registrations[topic].map_or(0, |registration| registration.position);
        }
    }
}
