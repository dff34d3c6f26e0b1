//! The output gate: a write is durable some time after its event, and no later message leaves before it.
//!
//! One flush makes all writes so far durable and releases all messages held. That is enough to cover gates that flush
//! write by write: a crash between two flushes loses the later event whole, its messages included, which is the same
//! as its input never having arrived.

use crate::message::Message;

/// An object's storage behind its gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gated<T> {
    /// What a crash leaves.
    pub durable: T,
    /// What the running instance reads and writes.
    pub memory: T,
    held: Vec<Message>,
}

impl<T: Clone + PartialEq> Gated<T> {
    /// Whether everything written is durable.
    pub fn is_flushed(&self) -> bool {
        self.memory == self.durable
    }

    /// Keeps messages until the next flush.
    pub fn hold(&mut self, messages: Vec<Message>) {
        self.held.extend(messages);
    }

    /// Makes all writes durable; returns the messages that waited for it.
    pub fn flush(&mut self) -> Vec<Message> {
        if !self.is_flushed() {
            self.durable = self.memory.clone();
        }
        std::mem::take(&mut self.held)
    }

    /// Writes before the first message of an instance: the instance does not count as started until it is durable, so
    /// a crash in between is one that comes before the start.
    pub fn write_at_start(&mut self, write: impl FnOnce(&mut T)) {
        write(&mut self.durable);
        self.memory = self.durable.clone();
        self.held.clear();
    }
}
