//! The object's one alarm: whatever is owed durably has a waker that outlives the instance (rule 17).

use super::Action;
use crate::Nanos;

#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// When the alarm rings, as far as this instance has set it.
    rings_at: Option<Nanos>,
}

impl Alarm {
    /// Sees to it that the alarm rings after so long at the latest. One that rings sooner stays: setting it anew with
    /// each write would put it off for as long as others come.
    pub(crate) fn arm(&mut self, now: Nanos, after: Nanos) -> Option<Action> {
        let at = now.saturating_add(after);
        if self.rings_at.is_some_and(|rings_at| rings_at <= at) {
            return None;
        }
        self.rings_at = Some(at);
        Some(Action::Alarm { after })
    }

    /// It rang: none is set.
    pub(crate) fn rang(&mut self) {
        self.rings_at = None;
    }
}
