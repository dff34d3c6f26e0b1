//! Updates, one at a time, and the Controls that they need (rules 3 and 12).

use super::{Durable, Memory, Registered, Registration};
use crate::client::Frame;
use crate::effects::Effects;
use crate::message::{Control, ControlReply, Kind, Message};
use crate::mutation::Mutation;
use crate::names::{Generation, PartitionId, PerTopic, SequenceId, Topic};
use crate::scenario::{Change, Scenario, Variant};

/// The Update in work: taken up, not applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Work {
    ordinal: u8,
    /// Topics that it newly registers.
    heads: PerTopic<Option<Head>>,
}

/// The head of a topic that is registering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Head {
    /// Its partition has not answered.
    Awaited,
    /// The target to be.
    Read(SequenceId),
}

/// What a partition has still to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Changes {
    pub(super) add: PerTopic<Option<Generation>>,
    pub(super) remove: PerTopic<Option<Generation>>,
}

impl Changes {
    pub(super) fn is_empty(self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }
}

impl Work {
    /// All targets, once every head has come.
    fn targets(self) -> Option<PerTopic<Option<SequenceId>>> {
        let mut targets = PerTopic::default();
        for (topic, head) in self.heads.iter() {
            let Head::Read(head) = *head else { return None };
            targets[topic] = Some(head);
        }
        Some(targets)
    }
}

impl Memory {
    /// Finishes the Update in work if its heads are there, takes up the next, and so on.
    pub(super) fn take_up_updates(
        &mut self,
        scenario: &Scenario,
        durable: &mut Durable,
        effects: &mut Effects,
    ) {
        loop {
            if let Some(work) = self.work {
                let Some(targets) = work.targets() else { break };
                self.work = None;
                self.apply(scenario, durable, work.ordinal, targets, effects);
            }
            if self.waiting == 0 {
                break;
            }
            self.waiting -= 1;
            self.take_up(scenario, durable, effects);
        }
        self.send_controls(Kind::Update, durable, effects);
    }

    /// The next Update's turn: removes take effect, new topics are entered as registering.
    fn take_up(&mut self, scenario: &Scenario, durable: &mut Durable, effects: &mut Effects) {
        durable.taken_up += 1;
        let ordinal = durable.taken_up;
        let update = scenario.update(ordinal);
        let mut work = Work { ordinal, ..Work::default() };
        for topic in Topic::ALL {
            let registered =
                self.registrations[topic].is_some() && !scenario.breaks(Mutation::RegisteredAgain);
            match update.0[topic] {
                Some(Change::Remove) => self.remove(scenario, topic, durable, effects),
                Some(Change::Add(cursor)) if !registered => {
                    self.changes[scenario.partition(topic)].add[topic] = Some(ordinal);
                    durable.pulls[topic] = 0;
                    work.heads[topic] = Some(Head::Awaited);
                    self.registrations[topic] = Some(Registration::new(ordinal, cursor));
                    effects.frame(Frame::TakenUp(topic));
                }
                Some(Change::Add(_)) | None => {}
            }
        }
        self.work = Some(work);
    }

    /// A registration ends at once; its partition is told by the next Control.
    fn remove(&mut self, scenario: &Scenario, topic: Topic, durable: &mut Durable, effects: &mut Effects) {
        let Some(registration) = self.registrations[topic].take() else { return };
        durable.registrations[topic] = None;
        if !scenario.is(Variant::NoRemoves) {
            let waits = &mut self.changes[scenario.partition(topic)].remove[topic];
            effects.assert(waits.is_none(), "K: no remove waits behind a remove of the same topic");
            *waits = Some(registration.generation);
        }
    }

    /// All heads are there: registrations stored, Applied sent.
    fn apply(
        &mut self,
        scenario: &Scenario,
        durable: &mut Durable,
        ordinal: u8,
        targets: PerTopic<Option<SequenceId>>,
        effects: &mut Effects,
    ) {
        for (topic, target) in targets.iter() {
            let Some(registration) = &mut self.registrations[topic] else { continue };
            registration.target = Some(*target);
            if scenario.breaks(Mutation::KnownOverwrittenByTarget) {
                registration.known = *target;
            }
            registration.hear(*target);
            durable.registrations[topic] = Some(Registered {
                generation: registration.generation,
                cursor: registration.cursor,
                target: *target,
            });
        }
        effects.frame(Frame::Applied { ordinal, targets });
    }

    /// Sends what waits, to each partition that has no Control to answer.
    pub(super) fn send_controls(&mut self, kind: Kind, durable: &mut Durable, effects: &mut Effects) {
        for to in PartitionId::ALL {
            if self.controls[to].is_some() || self.changes[to].is_empty() {
                continue;
            }
            durable.last_number += 1;
            let Changes { add, remove } = std::mem::take(&mut self.changes[to]);
            let control = Control { to, number: durable.last_number, kind, add, remove };
            self.controls[to] = Some(control);
            effects.send(Message::Control(control));
        }
    }

    /// Heads. Only the reply to the current Control counts, once.
    pub(super) fn control_reply(&mut self, scenario: &Scenario, reply: ControlReply, effects: &mut Effects) {
        let Some(control) = self.controls[reply.from] else { return };
        let names_all = control.add.iter().all(|(topic, _)| reply.heads[topic].is_some());
        let taken_for_it = match control.kind {
            Kind::Update => names_all && scenario.breaks(Mutation::ReplyToOlderControl),
            Kind::Sync => scenario.breaks(Mutation::AnswerToOlderSync),
        };
        if control.number != reply.number && !taken_for_it {
            return;
        }
        effects.assert(names_all, "K: a heads reply names exactly the asked topics");
        self.controls[reply.from] = None;
        for (topic, head) in reply.heads.iter() {
            match (control.kind, &mut self.work) {
                (Kind::Sync, _) => self.synced(scenario, topic, *head),
                (Kind::Update, Some(work)) if work.heads[topic] == Some(Head::Awaited) => {
                    work.heads[topic] = Some(Head::Read(*head));
                }
                (Kind::Update, _) => {}
            }
        }
    }

    fn synced(&mut self, scenario: &Scenario, topic: Topic, head: SequenceId) {
        if let Some(registration) = &mut self.registrations[topic]
            && !scenario.breaks(Mutation::SyncWithoutHeads)
        {
            registration.hear(head);
        }
    }
}
