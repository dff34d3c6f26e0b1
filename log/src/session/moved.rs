//! Positions that changed since they were last stored (rules 2, 19).

use std::collections::BTreeMap;

use crate::{Nanos, SECOND};

/// So many fit the attachment; with more, all positions are stored.
const MAX_POSITIONS: usize = 800;
/// How long they gather before that.
const PATIENCE: Nanos = 5 * SECOND;

/// What the attachment keeps of positions.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// By slot.
    pub(super) positions: BTreeMap<u32, u64>,
    /// Since when more changed than fit: memory alone knows them.
    pub(super) dirty_since: Option<Nanos>,
}

impl Moved {
    pub(super) fn note(&mut self, slot: u32, position: u64, now: Nanos) {
        if self.dirty_since.is_some() {
            return;
        }
        self.positions.insert(slot, position);
        if self.positions.len() > MAX_POSITIONS {
            self.positions.clear();
            self.dirty_since = Some(now);
        }
    }

    /// The registration is gone.
    pub(super) fn forget(&mut self, slot: u32) {
        self.positions.remove(&slot);
    }

    /// When all positions are to be stored.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.dirty_since.map(|since| since + PATIENCE)
    }
}
