//! The frame around every event: what is due goes out, what must survive is kept, what must hold is asserted.

use super::attachment::MAX_ATTACHMENT;
use super::moved::Moved;
use super::registry::Registry;
use super::turn::{Stop, Turn};
use super::{Action, Context, Kind, Phase, Session};
use crate::Fault;

impl Session {
    /// Runs one event to its end.
    pub(super) fn event(
        &mut self,
        ctx: &Context<'_>,
        body: impl FnOnce(&mut Self, &mut Turn<'_>) -> Result<(), Stop>,
    ) -> Vec<Action> {
        self.finish_event(Turn::new(ctx), body)
    }

    pub(super) fn finish_event(
        &mut self,
        mut turn: Turn<'_>,
        body: impl FnOnce(&mut Self, &mut Turn<'_>) -> Result<(), Stop>,
    ) -> Vec<Action> {
        let result = body(self, &mut turn).and_then(|()| self.settle(&mut turn));
        let result = result.and_then(|()| self.keep(&mut turn));
        if let Err(stop) = result {
            if self.phase == Phase::Over {
                // Telling the partitions failed: they find out by themselves (rule 10).
                if let Stop::Fault(fault) = stop {
                    turn.actions.push(Action::Report(fault));
                }
            } else {
                self.stop(&mut turn, stop);
                if let Err(Stop::Fault(fault)) = self.settle(&mut turn) {
                    turn.actions.push(Action::Report(fault));
                }
            }
            self.plan_wake(&mut turn);
        }
        turn.actions
    }

    /// Does what is due after any event.
    fn settle(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        if matches!(self.phase, Phase::Accepted | Phase::Open) {
            self.settle_updates(turn)?;
            self.checkpoint(turn)?;
        }
        self.send_controls(turn)?;
        self.send_pulls(turn)?;
        self.settle_over(turn);
        Ok(())
    }

    /// Stores all positions when that is due.
    fn checkpoint(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let due = self.moved.due().is_some_and(|at| at <= turn.now);
        if let Some(registry) = self.registry.as_ref().filter(|_| due) {
            self.store.checkpoint(turn.sql, registry)?;
            self.moved = Moved::default();
        }
        Ok(())
    }

    /// The end of an event (rule 19): what must survive is kept, and something is pending while memory alone knows
    /// anything.
    fn keep(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        self.plan_wake(turn);
        self.output.check(self.setup.limits.max_response_bytes as u64 + super::partial::HEADER as u64)?;
        if self.kind == Kind::Static || matches!(self.phase, Phase::Absent | Phase::Over) {
            return Ok(());
        }
        let alarm = turn.actions.iter().any(|action| matches!(action, Action::Alarm { .. }));
        if std::mem::take(&mut self.store.wrote) || alarm {
            self.syncs += 1;
            turn.actions.push(Action::Sync { number: self.syncs });
        }
        let busy = self.is_busy();
        let pending = self.channels.is_calling()
            || self.pulls.is_calling()
            || self.synced < self.syncs
            || self.next_wake.is_some();
        let knows = busy || self.moved.dirty_since.is_some();
        Fault::assert(!knows || pending, "something is pending while memory alone knows anything")?;
        let last = self.attachment(busy);
        Fault::assert(last.len() <= MAX_ATTACHMENT, "the attachment fits")?;
        // Were the instance to die between two frames of this event, the next must not take the stream for whole.
        if !busy && turn.actions.iter().any(|action| matches!(action, Action::Send(_))) {
            turn.actions.insert(0, Action::Attach(self.attachment(true)));
            turn.actions.push(Action::Attach(last));
        } else {
            turn.actions.insert(0, Action::Attach(last));
        }
        Ok(())
    }

    /// Whether memory alone knows anything, positions aside.
    pub(super) fn is_busy(&self) -> bool {
        !self.updates.is_idle()
            || self.updates.end.is_some()
            || !self.channels.is_empty()
            || self.pulls.is_calling()
            || self.synced < self.syncs
    }

    /// Asks to be woken for what is next, if no earlier waking is planned.
    fn plan_wake(&mut self, turn: &mut Turn<'_>) {
        let next = [
            self.channels.next_retry(),
            self.pulls.next_retry(turn.now),
            self.moved.due(),
            if self.kind == Kind::Static { self.next_beat() } else { None },
        ];
        let Some(next) = next.into_iter().flatten().min() else { return };
        if self.next_wake.is_none_or(|planned| next < planned) {
            self.next_wake = Some(next);
            turn.actions.push(Action::Wake { after: next.saturating_sub(turn.now).max(1) });
        }
    }

    /// The registrations, loaded by the first event that needs them (trap 39).
    pub(super) fn registry(&mut self, turn: &Turn<'_>) -> Result<&mut Registry, Fault> {
        if self.registry.is_none() {
            let (slots, positions) = self.moved.positions.iter().unzip();
            let later = sealog_proto::internal::StoredPositions { slots, positions };
            self.registry = Some(self.store.registry(turn.sql, &later)?);
        }
        self.registry.as_mut().ok_or(Fault::Invariant("the registrations were loaded"))
    }
}
