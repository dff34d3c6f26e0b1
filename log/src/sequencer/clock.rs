//! Time that never goes back, across instances and machines (rule 13).

use crate::{Nanos, SECOND};

/// How far ahead of its clock an instance stores the limit of the times it may hand out. A restart starts there, so
/// `server_ns` may run this far ahead of the wall clock for as long; a smaller value would cost more flushes.
const AHEAD: Nanos = 2 * SECOND;

#[derive(Debug)]
pub(super) struct Clock {
    /// The last time handed out.
    floor: Nanos,
}

impl Clock {
    /// A new instance starts at the limit of the last one: nothing above it was ever handed out.
    pub(super) fn start(limit: Nanos) -> Self {
        Self { floor: limit }
    }

    /// The time, given what the system says it is.
    pub(super) fn read(&mut self, now: Nanos) -> Nanos {
        self.floor = self.floor.max(now);
        self.floor
    }

    /// The last time handed out.
    pub(super) fn last(&self) -> Nanos {
        self.floor
    }

    /// Whether a time beyond `limit` was read: it may not leave before a new limit is stored.
    pub(super) fn is_past(&self, limit: Nanos) -> bool {
        self.floor > limit
    }

    /// The limit to store next.
    pub(super) fn next_limit(&self) -> Nanos {
        self.floor + AHEAD
    }
}
