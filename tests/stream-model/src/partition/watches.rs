//! The watches of the session: stored and dropped by Controls in their order, and by the answers to pushes (rules 4, 5, 6
//! and 10).

use super::{Debts, Memory, Partition};
use crate::effects::Effects;
use crate::message::{Control, ControlReply, Message, PushName, PushReply};
use crate::mutation::Mutation;
use crate::names::PerTopic;
use crate::scenario::{Scenario, Variant};

impl Partition {
    /// A Control: watches stored, index changed, heads read, all in one event (rule 5).
    pub(super) fn control(&mut self, scenario: &Scenario, control: &Control, effects: &mut Effects) {
        self.load(scenario);
        let mut heads = PerTopic::default();
        for (topic, _) in control.add.iter() {
            heads[topic] = Some(self.stored.rows[topic].head());
        }
        let reply = ControlReply { from: self.id, number: control.number, heads };
        if scenario.breaks(Mutation::TargetBeforeWatch) && control.number > self.stored.last_number {
            effects.send(Message::StoreWatches(*control, reply));
        } else if self.apply(scenario, control, effects) {
            effects.send(Message::ControlReply(reply));
        }
    }

    /// Applies a Control in its order; false if it is late and must not be answered (rule 4).
    pub(super) fn apply(&mut self, scenario: &Scenario, control: &Control, effects: &mut Effects) -> bool {
        let unordered = scenario.breaks(Mutation::ControlUnordered);
        let stored = &mut self.stored;
        if control.number <= stored.last_number && !unordered {
            return control.number == stored.last_number;
        }
        stored.last_number = stored.last_number.max(control.number);
        for (topic, generation) in control.remove.iter() {
            if stored.watches[topic] == Some(*generation) || unordered {
                stored.watches[topic] = None;
            }
        }
        for (topic, generation) in control.add.iter() {
            if stored.watches[topic].is_none() || !scenario.breaks(Mutation::GenerationOfPushIgnored) {
                effects.assert(stored.watches[topic] <= Some(*generation), "P: a watch never goes back");
                stored.watches[topic] = Some(*generation);
            }
        }
        self.watches_changed(scenario);
        true
    }

    /// The index follows the stored watches; what no watch asks for is not owed.
    fn watches_changed(&mut self, scenario: &Scenario) {
        let watches = self.stored.watches;
        if scenario.is(Variant::NumberForgotten) && watches.is_empty() {
            self.stored.last_number = 0;
        }
        let Some(memory) = &mut self.memory else { return };
        memory.index = Some(watches);
        memory.owed.retain(|topic, item| watches[topic] == Some(item.generation));
    }

    /// The session's answer. Only the reply to the push that is in flight clears anything (rule 6).
    pub(super) fn push_reply(&mut self, scenario: &Scenario, reply: PushReply) {
        if !self.awaits(scenario, reply.name) {
            return;
        }
        let Some(memory) = &mut self.memory else { return };
        memory.in_flight = None;
        if reply.gone {
            return self.forget_session();
        }
        for (topic, generation) in reply.unwanted.iter() {
            let same = self.stored.watches[topic] == Some(*generation);
            if same || scenario.breaks(Mutation::UnwantedWithoutGeneration) {
                self.stored.watches[topic] = None;
            }
        }
        self.watches_changed(scenario);
    }

    /// Whether the answer to this push would clear what is in flight.
    pub fn awaits(&self, scenario: &Scenario, name: PushName) -> bool {
        let same_instance =
            name.incarnation == self.stored.incarnation || scenario.breaks(Mutation::AnswerByNumberAlone);
        let in_flight = |memory: Memory| memory.in_flight.is_some() && memory.pushes == name.number;
        same_instance && self.memory.is_some_and(in_flight)
    }

    /// The stream is over: no watch, no debt.
    pub(super) fn forget_session(&mut self) {
        self.stored.watches = PerTopic::default();
        if let Some(memory) = &mut self.memory {
            memory.index = Some(PerTopic::default());
            memory.owed = Debts::default();
        }
    }

    /// Whether a Control with this number is late: it would change nothing and get no reply.
    pub fn is_late(&self, number: u8) -> bool {
        number < self.stored.last_number
    }

    /// Whether a Control with this number was applied: it would only be answered again.
    pub fn is_applied(&self, number: u8) -> bool {
        number == self.stored.last_number
    }
}
