//! What the client does in the tests, each named for it.

use crate::names::Topic::{self, A, B};
use crate::scenario::{Scenario, Update};

fn add(topic: Topic, cursor: u8) -> Update {
    Update::default().add(topic, cursor)
}

/// One topic, from its beginning.
pub fn one_topic() -> Scenario {
    Scenario::new("one topic", [add(A, 0)])
}

/// A topic is added, removed, and added again from the same cursor.
pub fn added_again() -> Scenario {
    Scenario::new("added again", [add(A, 0), Update::default().remove(A), add(A, 0)])
}

/// A topic is added, removed, and added again from a later cursor.
pub fn added_again_further_on() -> Scenario {
    Scenario::new("added again further on", [add(A, 0), Update::default().remove(A), add(A, 1)])
}

/// A cursor above the head; the topic is removed while another is added, and added again.
pub fn cursor_above_the_head() -> Scenario {
    Scenario::new("cursor above the head", [add(A, 3), add(B, 0).remove(A), add(A, 0)])
}

/// Two topics in one Update.
pub fn two_topics() -> Scenario {
    Scenario::new("two topics", [add(A, 0).add(B, 0)])
}

/// A second topic by a later Update, which also adds the first once more: that changes nothing (API-253).
pub fn second_topic_later() -> Scenario {
    Scenario::new("second topic later", [add(A, 0), add(B, 0).add(A, 1)])
}
