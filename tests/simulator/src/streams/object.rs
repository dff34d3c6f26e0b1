//! An object: a machine on its storage, behind its output gate.

use std::collections::VecDeque;

use sealog_log::Nanos;

use super::run::Run;
use crate::storage::{FailAt, Storage};

/// `M` is the machine, `O` what it sends.
#[derive(Debug)]
pub(super) struct Object<M, O> {
    pub(super) storage: Storage,
    pub(super) machine: Option<M>,
    /// Which instance this is: what was asked or timed by an earlier one comes to nothing.
    pub(super) instance: u64,
    /// Its clock against true time.
    pub(super) skew: i64,
    /// What waits for a write to become durable.
    held: VecDeque<(u64, O)>,
    /// The alarm, as each write left it; the last stands.
    alarms: Vec<(u64, Option<Nanos>)>,
}

impl<M, O> Object<M, O> {
    pub(super) fn new(skew: i64) -> Self {
        Self {
            storage: Storage::new(),
            machine: None,
            instance: 1,
            skew,
            held: VecDeque::new(),
            alarms: Vec::new(),
        }
    }

    /// An event begins, in which a statement may fail.
    pub(super) fn begin(&self, run: &mut Run) {
        self.storage.begin();
        if run.happens(run.faults.statement) {
            let nth = run.random.small(1, 3);
            let before = run.random.chance(500);
            self.storage.fail_at(if before { FailAt::Before(nth) } else { FailAt::After(nth) });
        }
    }

    /// Sets the alarm as a part of the event under way.
    pub(super) fn set_alarm(&mut self, at: Option<Nanos>) {
        self.storage.touch();
        self.alarms.push((self.storage.next_write(), at));
    }

    pub(super) fn alarm(&self) -> Option<Nanos> {
        self.alarms.last().and_then(|(_, at)| *at)
    }

    /// The alarm rings. It is gone when the event is over, and durably so with what the event writes: an instance that
    /// dies meanwhile hears it again.
    pub(super) fn ring(&mut self) {
        self.alarms.push((self.storage.written() + 1, None));
    }

    /// The event ends; what it sends waits for all writes so far. Returns the write that is to be flushed, if the event
    /// wrote.
    pub(super) fn end(&mut self) -> Option<u64> {
        let wrote = self.storage.end();
        let written = self.storage.written();
        if let Some((number, _)) = self.alarms.last_mut() {
            *number = (*number).min(written);
        }
        wrote.then_some(written)
    }

    /// The event is undone: an assertion or a statement of it failed.
    pub(super) fn undo(&mut self) {
        self.storage.undo();
        let written = self.storage.written();
        self.alarms.retain(|(number, _)| *number <= written);
    }

    /// What is sent now.
    pub(super) fn send(&mut self, out: O) {
        self.held.push_back((self.storage.written(), out));
    }

    /// What has passed the gate.
    pub(super) fn released(&mut self) -> Vec<O> {
        let flushed = self.storage.flushed();
        let mut released = Vec::new();
        while self.held.front().is_some_and(|(number, _)| *number <= flushed) {
            released.extend(self.held.pop_front().map(|(_, out)| out));
        }
        released
    }

    /// All that is stored is deleted, and the alarm with it.
    pub(super) fn delete(&mut self) {
        self.storage = Storage::new();
        self.alarms.clear();
        self.held.iter_mut().for_each(|(number, _)| *number = 0);
    }

    /// Whether everything that was written is durable, and nothing is held back.
    pub(super) fn is_durable(&self) -> bool {
        self.held.is_empty() && self.storage.flushed() == self.storage.written()
    }

    /// Memory is lost, and what was not durable with it; of that, some may have become so. What was held back never
    /// leaves.
    pub(super) fn lose(&mut self, run: &mut Run) {
        if self.storage.written() > self.storage.flushed() && run.random.chance(500) {
            let number = run.random.between(self.storage.flushed(), self.storage.written());
            self.storage.flush(number);
        }
        self.storage.crash();
        let written = self.storage.written();
        self.alarms.retain(|(number, _)| *number <= written);
        self.held.clear();
        self.forget();
    }

    /// Memory goes, and nothing else.
    pub(super) fn forget(&mut self) {
        self.machine = None;
        self.instance += 1;
    }
}
