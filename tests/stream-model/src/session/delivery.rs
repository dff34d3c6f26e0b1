//! Pushes, pulls and pages: what is sent to the client, and what only raises what is known (rules 13, 14 and 16).

use super::{Durable, Memory, Registration};
use crate::client::Frame;
use crate::effects::Effects;
use crate::message::{Item, Message, Page, Pull, Push, PushReply};
use crate::mutation::Mutation;
use crate::names::{PerTopic, Rows, SequenceId, Topic};
use crate::scenario::Scenario;

impl Memory {
    /// A push, answered at once (rule 11).
    pub(super) fn push(&mut self, scenario: &Scenario, push: &Push, effects: &mut Effects) {
        let mut unwanted = PerTopic::default();
        for (topic, item) in push.items.iter() {
            let registration = self.registrations[topic].as_mut();
            effects.assert(
                registration.as_ref().is_none_or(|registration| item.generation <= registration.generation),
                "K: the generation of a push is not above the registration's",
            );
            let wanted = registration.filter(|registration| {
                registration.generation == item.generation
                    || scenario.breaks(Mutation::GenerationOfPushIgnored)
            });
            match wanted {
                Some(registration)
                    if !registration.is_applied() && scenario.breaks(Mutation::RegisteringUnwanted) =>
                {
                    unwanted[topic] = Some(item.generation);
                }
                Some(registration) => pushed(scenario, topic, registration, *item, effects),
                None => unwanted[topic] = Some(item.generation),
            }
        }
        effects.send(Message::PushReply(PushReply { name: push.name, gone: false, unwanted }));
    }

    /// Whether a page may be asked for: something is missing, none is under way, and nobody unserved comes first.
    pub(super) fn may_pull(&self, scenario: &Scenario, topic: Topic) -> bool {
        let Some(registration) = self.registrations[topic] else { return false };
        registration.is_behind()
            && registration.pull.is_none()
            && !(registration.is_catching_up() && self.must_wait(scenario, topic, registration))
    }

    /// Asks for a page.
    pub(super) fn pull(&mut self, topic: Topic, durable: &mut Durable, effects: &mut Effects) {
        let Some(registration) = &mut self.registrations[topic] else { return };
        durable.pulls[topic] += 1;
        let number = durable.pulls[topic];
        registration.pull = Some(number);
        let generation = registration.generation;
        effects.send(Message::Pull(Pull { topic, generation, number, after: registration.position }));
    }

    /// A page: a fact about the log, whichever pull asked for it, if its registration is still there.
    pub(super) fn page(&mut self, scenario: &Scenario, page: Page, effects: &mut Effects) {
        let topic = page.pull.topic;
        let Some(mut registration) = self.registrations[topic] else { return };
        if registration.pull == Some(page.pull.number) && registration.generation == page.pull.generation {
            registration.pull = None;
        }
        let current =
            registration.generation == page.pull.generation && registration.position >= page.pull.after;
        if current || scenario.breaks(Mutation::PageOfEarlierRegistration) {
            effects.assert(registration.is_applied(), "K: no page before Applied");
            registration.hear(page.head);
            if scenario.breaks(Mutation::PageEndIsHead) {
                registration.known = page.head;
            }
            let history = page.rows.above(registration.position).first() <= registration.target;
            let news = !page.rows.above(registration.position).is_empty();
            let dropped = news && history && self.must_wait(scenario, topic, registration);
            if !dropped || scenario.breaks(Mutation::FairnessOnlyWhenPulling) {
                deliver(topic, &mut registration, page.rows, page.through, effects);
            } else if scenario.breaks(Mutation::DroppedPageForgotten) {
                registration.known = registration.position;
            }
        }
        self.registrations[topic] = Some(registration);
    }

    /// Fairness: a registration that has had history waits for those that have had none (rule 16).
    fn must_wait(&self, scenario: &Scenario, topic: Topic, registration: Registration) -> bool {
        let mut others = self.registrations.iter().filter(|(other, _)| *other != topic);
        registration.position != registration.cursor
            && others.any(|(_, other)| other.is_unserved())
            && !scenario.breaks(Mutation::NoFairness)
    }
}

/// One item of a push (rule 13).
fn pushed(
    scenario: &Scenario,
    topic: Topic,
    registration: &mut Registration,
    item: Item,
    effects: &mut Effects,
) {
    if !registration.is_applied() && !scenario.breaks(Mutation::PushDeliveredBeforeApplied) {
        if !scenario.breaks(Mutation::PushDroppedBeforeApplied) {
            registration.hear(item.head);
        }
        return;
    }
    if scenario.breaks(Mutation::NoPositionTest) {
        let Registration { generation, position, .. } = *registration;
        registration.position = position.max(item.head);
        return effects.frame(Frame::Messages { topic, generation, rows: item.rows });
    }
    let hint = item.rows.is_empty();
    let complete = hint && scenario.breaks(Mutation::HintTakenForRows);
    let into_history = registration.is_catching_up() && !scenario.breaks(Mutation::PushIntoHistory);
    if !complete && (into_history || registration.position < item.previous) {
        if !scenario.breaks(Mutation::BehindNotMarked) {
            registration.hear(item.head);
        }
        return;
    }
    if registration.position > item.previous && scenario.breaks(Mutation::OverlappingPushDropped) {
        return;
    }
    deliver(topic, registration, item.rows, item.head, effects);
}

/// Sends the rows above the position, which then is `through` at least.
fn deliver(
    topic: Topic,
    registration: &mut Registration,
    rows: Rows,
    through: SequenceId,
    effects: &mut Effects,
) {
    let rows = rows.above(registration.position);
    registration.position = registration.position.max(through);
    registration.hear(through);
    if !rows.is_empty() {
        effects.frame(Frame::Messages { topic, generation: registration.generation, rows });
    }
}
