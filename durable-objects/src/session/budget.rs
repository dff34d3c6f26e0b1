//! How much one event of the platform may still do.

use std::cell::Cell;
use std::rc::Rc;

/// Calls to other objects that one event makes. The platform counts 1,000 for each event, and everything that an event
/// started and awaits counts as its own; half of it leaves room for what is not counted here (rule 17).
const CALLS: u32 = 500;

/// The allowance of one event, shared by all that it starts.
#[derive(Clone, Debug)]
pub(super) struct Budget(Rc<Cell<u32>>);

impl Budget {
    /// A new event.
    pub(super) fn new() -> Self {
        Self(Rc::new(Cell::new(CALLS)))
    }

    /// Takes one call. False: the event must make no more.
    pub(super) fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_event_started_shares_its_budget() {
        let event = Budget::new();
        let started = event.clone();
        assert_eq!((0..CALLS).filter(|_| started.take()).count(), CALLS as usize);
        assert!(!event.take() && !started.take());
        assert!(Budget::new().take());
    }
}
