//! The client's end of the stream: what it sent, what it got, and whether that keeps the contract.

use crate::invariants::Invariant;
use crate::names::{Generation, PerTopic, Rows, SequenceId, Topic};
use crate::scenario::{Change, Scenario};

/// What a session hands to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Not a frame: the session has taken up an Update and entered this topic as registering. The client cannot see
    /// this; the check of API-252 starts from it.
    TakenUp(Topic),
    /// The Update with this ordinal is applied; targets of the topics that it newly registered.
    Applied {
        /// Which Update.
        ordinal: u8,
        /// `added_targets`.
        targets: PerTopic<Option<SequenceId>>,
    },
    /// Envelopes of one topic. The real frame has no generation; the check of API-253 needs one.
    Messages {
        /// Whose.
        topic: Topic,
        /// Of the registration for which the session sent them.
        generation: Generation,
        /// Which.
        rows: Rows,
    },
}

/// What the client has sent and seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client {
    /// Updates sent.
    pub sent: u8,
    /// The last Update that was answered.
    pub applied: u8,
    /// The head of a topic when its registering began; 0 when nothing is registering.
    floor: PerTopic<SequenceId>,
    /// Registrations that were answered and not removed since.
    registered: PerTopic<Option<Seen>>,
}

/// One registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Seen {
    generation: Generation,
    /// Its catch-up target.
    target: SequenceId,
    /// The last envelope seen; at first, its cursor.
    last: SequenceId,
    /// It got a frame with envelopes at or below its target.
    served: bool,
}

impl Client {
    /// Takes a frame. `visible` are the rows that are stored.
    pub fn receive(
        &mut self,
        scenario: &Scenario,
        frame: Frame,
        visible: PerTopic<Rows>,
    ) -> Result<(), Invariant> {
        match frame {
            Frame::TakenUp(topic) => {
                self.floor[topic] = visible[topic].head();
                Ok(())
            }
            Frame::Applied { ordinal, targets } => self.applied(scenario, ordinal, targets, visible),
            Frame::Messages { topic, generation, rows } => self.messages(topic, generation, rows, visible),
        }
    }

    fn applied(
        &mut self,
        scenario: &Scenario,
        ordinal: u8,
        targets: PerTopic<Option<SequenceId>>,
        visible: PerTopic<Rows>,
    ) -> Result<(), Invariant> {
        if ordinal != self.applied + 1 || ordinal > self.sent {
            return Err(Invariant::Api252);
        }
        self.applied = ordinal;
        let update = scenario.update(ordinal);
        for topic in Topic::ALL {
            let floor = std::mem::take(&mut self.floor[topic]);
            match (update.0[topic], self.registered[topic], targets[topic]) {
                (None, _, None) | (Some(Change::Add(_)), Some(_), None) => {}
                (Some(Change::Remove), _, None) => self.registered[topic] = None,
                (Some(Change::Add(_)), Some(_), Some(_)) => return Err(Invariant::Api253),
                (Some(Change::Add(cursor)), None, Some(target))
                    if floor <= target && target <= visible[topic].head() =>
                {
                    let seen = Seen { generation: ordinal, target, last: cursor, served: false };
                    self.registered[topic] = Some(seen);
                }
                _ => return Err(Invariant::Api252),
            }
        }
        Ok(())
    }

    fn messages(
        &mut self,
        topic: Topic,
        generation: Generation,
        rows: Rows,
        visible: PerTopic<Rows>,
    ) -> Result<(), Invariant> {
        if generation > self.applied {
            return Err(Invariant::Api252);
        }
        let Some(mut seen) = self.registered[topic].filter(|seen| seen.generation == generation) else {
            return Err(Invariant::Api253);
        };
        let Some(first) = rows.first() else { return Ok(()) };
        if first <= seen.target {
            if seen.served && self.is_starved(topic, visible) {
                return Err(Invariant::Api261);
            }
            seen.served = true;
        }
        let missing = visible[topic].above(seen.last).below(rows.head() + 1);
        if rows != missing {
            return Err(Invariant::Api254);
        }
        seen.last = rows.head();
        self.registered[topic] = Some(seen);
        Ok(())
    }

    /// Whether another registration has envelopes at or below its target and got none of them yet.
    fn is_starved(&self, topic: Topic, visible: PerTopic<Rows>) -> bool {
        self.registered.iter().any(|(other, seen)| {
            other != topic
                && !seen.served
                && !visible[other].above(seen.last).below(seen.target + 1).is_empty()
        })
    }

    /// Whether every envelope above the cursors has come.
    pub fn has_all(&self, visible: PerTopic<Rows>) -> bool {
        self.registered.iter().all(|(topic, seen)| visible[topic].above(seen.last).is_empty())
    }
}
