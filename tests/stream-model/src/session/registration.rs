//! One registration of a topic, and where it stands.
//!
//! Registering, until the heads have come and Applied has left; then catching up, while the position is below the target;
//! then current.

use crate::names::{Generation, SequenceId};

/// A topic on this stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Registration {
    pub(super) generation: Generation,
    pub(super) cursor: SequenceId,
    /// Every visible row in (cursor, position] has been handed to the socket.
    pub(super) position: SequenceId,
    /// The highest head heard of. Behind: known > position.
    pub(super) known: SequenceId,
    /// The catch-up target; `None` while registering.
    pub(super) target: Option<SequenceId>,
    /// The pull that is with the partition, by its number.
    pub(super) pull: Option<u8>,
}

impl Registration {
    /// An Update has added the topic; the heads are not known yet. `known` begins at the cursor, where 0 would do: only
    /// what is above the position counts, and equal meaning should be equal state.
    pub(super) fn new(generation: Generation, cursor: SequenceId) -> Self {
        Self { generation, cursor, position: cursor, known: cursor, target: None, pull: None }
    }

    /// Its Applied has left.
    pub(super) fn is_applied(self) -> bool {
        self.target.is_some()
    }

    /// Rows are there that have not been sent.
    pub(super) fn is_behind(self) -> bool {
        self.is_applied() && self.known > self.position
    }

    /// History has still to be sent.
    pub(super) fn is_catching_up(self) -> bool {
        self.target.is_some_and(|target| self.position < target)
    }

    /// No history has been sent yet, and there is some (rule 16).
    pub(super) fn is_unserved(self) -> bool {
        self.position == self.cursor && self.is_catching_up()
    }

    /// Hears of a head. Known is a maximum, never an assignment.
    pub(super) fn hear(&mut self, head: SequenceId) {
        self.known = self.known.max(head);
    }
}
