//! The network: a set of messages under way.
//!
//! Any of them may arrive next, or never; a repeat is an act of the adversary. Equal messages under way count as one.

use crate::message::Message;

/// Messages under way, sorted, so that equal sets are equal states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Network(Vec<Message>);

impl Network {
    /// Sends.
    pub fn send(&mut self, message: Message) {
        if let Err(place) = self.0.binary_search(&message) {
            self.0.insert(place, message);
        }
    }

    /// Takes a message out, if it is under way.
    pub fn take(&mut self, message: &Message) {
        if let Ok(place) = self.0.binary_search(message) {
            self.0.remove(place);
        }
    }

    /// All of them.
    pub fn messages(&self) -> &[Message] {
        &self.0
    }

    /// The one that a fair schedule delivers next.
    pub fn first(&self) -> Option<Message> {
        self.0.first().copied()
    }

    /// Loses every message for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&Message) -> bool) {
        self.0.retain(keep);
    }

    /// Loses everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
