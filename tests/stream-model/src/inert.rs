//! Messages that can change nothing any more.

use crate::action::Action;
use crate::message::{Message, Page, Push};
use crate::scenario::{Scenario, Variant};
use crate::world::World;

impl World {
    /// Loses the messages whose arrival can change nothing any more, now or later. Many states become one by it.
    ///
    /// Arrival also starts a partition and wakes a session; but so may anything else, at any moment.
    pub fn forget_inert(&mut self, scenario: &Scenario) {
        // A broken rule may be one of those on which the reasons below rest.
        if scenario.mutation.is_none() && !scenario.keeps_inert {
            self.drop_inert(scenario);
        }
    }

    fn drop_inert(&mut self, scenario: &Scenario) {
        let mut network = std::mem::take(&mut self.network);
        network.retain(|message| !self.is_inert(scenario, message));
        self.network = network;
    }

    /// Whether the arrival of an inert message does change nothing, as it must: once its receiver runs, the world is
    /// the same with and without it, but for messages that are inert too.
    pub fn is_unmoved_by(&self, scenario: &Scenario, message: &Message) -> bool {
        let mut without = self.clone();
        without.network.take(message);
        match message.partition(scenario) {
            Some(at) => without.perform(scenario, &Action::Load(at)),
            None => without.perform(scenario, &Action::Wake),
        }
        let mut with = without.clone();
        with.deliver(scenario, message);
        without.drop_inert(scenario);
        with.drop_inert(scenario);
        with == without
    }

    /// Whether a message is inert.
    pub fn is_inert(&self, scenario: &Scenario, message: &Message) -> bool {
        match message {
            // Numbers rise: what is not awaited now never will be (rule 3). Late and without effect: rule 4.
            Message::ControlReply(reply) => self.session.awaited_number(reply.from) != Some(reply.number),
            Message::Control(control) => {
                let partition = &self.partitions[control.to];
                let unheard = partition.is_applied(control.number)
                    && self.session.awaited_number(control.to) != Some(control.number);
                !scenario.is(Variant::NumberForgotten) && (partition.is_late(control.number) || unheard)
            }
            // So do incarnations, and pushes within one (rule 6).
            Message::PushReply(reply) => !self.partitions[reply.name.from].awaits(scenario, reply.name),
            Message::Push(push) => self.is_push_inert(scenario, push),
            // A generation that is over does not come back; positions and heads never fall.
            Message::Pull(pull) => {
                self.session.registration(pull.topic).map(|(generation, _)| generation)
                    != Some(pull.generation)
            }
            Message::Page(page) => self.is_page_inert(*page),
            Message::StoreWatches(..) => false,
        }
    }

    fn is_push_inert(&self, scenario: &Scenario, push: &Push) -> bool {
        let mut items = push.items.iter();
        !self.partitions[push.name.from].awaits(scenario, push.name)
            && items.all(|(topic, item)| match self.session.registration(topic) {
                Some((generation, position)) => generation != item.generation || position >= item.head,
                None => true,
            })
    }

    fn is_page_inert(&self, page: Page) -> bool {
        let topic = page.pull.topic;
        match self.session.registration(topic) {
            Some((generation, position)) if generation == page.pull.generation => {
                position >= page.head && !self.session.awaits_page(topic, page.pull.number)
            }
            _ => true,
        }
    }
}
