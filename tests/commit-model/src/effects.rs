//! What one event of a state machine does to the outside.

use crate::message::Message;

/// Messages to send once the event's writes are durable, and whether a run-time assertion failed.
#[derive(Debug, Default)]
pub struct Effects {
    /// In the order in which they were sent; the network does not keep it.
    pub messages: Vec<Message>,
    /// The first assertion that failed.
    pub failed: Option<&'static str>,
}

impl Effects {
    /// Sends.
    pub fn send(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// One of the assertions that the objects carry in release builds: none may fail while the rules are kept.
    pub fn assert(&mut self, holds: bool, assertion: &'static str) {
        if !holds && self.failed.is_none() {
            self.failed = Some(assertion);
        }
    }
}
