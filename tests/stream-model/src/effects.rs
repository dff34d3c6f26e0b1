//! What one event of a state machine does to the outside.
//!
//! An event, its writes and its messages are one step of the model: the platform's output gate holds every message and
//! frame until the writes of its event are durable, and a crash in between undoes all three.

use crate::client::Frame;
use crate::message::Message;

/// Messages and frames sent, and whether a run-time assertion failed.
#[derive(Debug, Default)]
pub struct Effects {
    /// To the other objects.
    pub messages: Vec<Message>,
    /// To the client, in this order, which the socket keeps.
    pub frames: Vec<Frame>,
    /// The first assertion that failed.
    pub failed: Option<&'static str>,
}

impl Effects {
    /// Sends to another object.
    pub fn send(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Sends to the client.
    pub fn frame(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    /// One of the assertions that the objects carry in release builds: none may fail while the rules are kept.
    pub fn assert(&mut self, holds: bool, assertion: &'static str) {
        if !holds && self.failed.is_none() {
            self.failed = Some(assertion);
        }
    }
}
