//! The state machine of an object, which ends with a fault and is loaded anew by the next event.

use std::cell::RefCell;

use sealog_log::{CommandError, Fault};
use sealog_proto::internal::Failure;

use crate::command;

#[derive(Debug)]
pub(crate) struct Instance<M> {
    /// What it is called in a log.
    name: &'static str,
    machine: RefCell<Option<M>>,
}

impl<M> Instance<M> {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, machine: RefCell::default() }
    }

    /// Runs `run` on the machine; returns what is to be done in any case, and what came of it.
    ///
    /// A fault ends the machine: memory is forgotten, and `abandon` says what becomes of whoever waited for it.
    pub(crate) fn run<R, A>(
        &self,
        load: impl FnOnce() -> Result<(M, Vec<A>), Fault>,
        abandon: impl FnOnce(M) -> Vec<A>,
        run: impl FnOnce(&mut M) -> Result<(R, Vec<A>), CommandError>,
    ) -> (Vec<A>, Result<R, Failure>) {
        let mut slot = self.machine.borrow_mut();
        let mut actions = Vec::new();
        let loaded = match slot.take() {
            Some(machine) => Ok(machine),
            None => load().map(|(machine, first)| {
                actions = first;
                machine
            }),
        };
        let outcome = loaded.map_err(CommandError::Fault).and_then(|machine| run(slot.insert(machine)));
        match outcome {
            Ok((reply, more)) => {
                actions.extend(more);
                (actions, Ok(reply))
            }
            Err(error) => {
                if matches!(error, CommandError::Fault(_)) {
                    actions = slot.take().map(abandon).unwrap_or_default();
                }
                (actions, Err(command::command_error(self.name, error)))
            }
        }
    }
}
