//! The class of the sequencer: one object, named `global`.

use std::cell::RefCell;

use prost::Message;
use sealog_log::CommandError;
use sealog_log::sequencer::Sequencer as Machine;
use sealog_proto::internal::Failure;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::worker_sys::DurableObjectState;
use worker::{Env, State};

use crate::storage::ObjectStorage;
use crate::{clock, command};

/// Gives out sequence ids. Answers each command in one event, without an await.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Sequencer {
    storage: ObjectStorage,
    /// Loaded by the first command, and again after a fault.
    machine: RefCell<Option<Machine>>,
}

#[wasm_bindgen]
impl Sequencer {
    /// Called by the platform.
    #[wasm_bindgen(constructor)]
    pub fn new(state: DurableObjectState, _env: Env) -> Self {
        Self { storage: ObjectStorage::new(&State::from(state)), machine: RefCell::default() }
    }

    /// Runs one command. See `sealog_log::sequencer` for what each does, writes, and who repeats it.
    pub fn call(&self, command: &str, body: Vec<u8>) -> Vec<u8> {
        match command {
            command::JOIN => self.run(body, |machine, storage, request| machine.join(storage, &request)),
            command::RESERVE => {
                self.run(body, |machine, storage, request| machine.reserve(storage, clock::now(), &request))
            }
            _ => command::answer::<()>(&Err(command::unknown())),
        }
    }
}

impl Sequencer {
    fn run<Q: Message + Default, R: Message>(
        &self,
        body: Vec<u8>,
        run: impl FnOnce(&mut Machine, &ObjectStorage, Q) -> Result<R, CommandError>,
    ) -> Vec<u8> {
        command::answer(
            &command::request(body).and_then(|request| self.with_machine(|m, s| run(m, s, request))),
        )
    }

    /// Runs `run` on the machine. A fault ends the machine: memory is forgotten, the next command loads it anew.
    fn with_machine<R>(
        &self,
        run: impl FnOnce(&mut Machine, &ObjectStorage) -> Result<R, CommandError>,
    ) -> Result<R, Failure> {
        let mut slot = self.machine.borrow_mut();
        let outcome = match slot.take().map_or_else(|| Machine::load(&self.storage), Ok) {
            Ok(machine) => run(slot.insert(machine), &self.storage),
            Err(fault) => Err(CommandError::Fault(fault)),
        };
        outcome.map_err(|error| {
            if matches!(error, CommandError::Fault(_)) {
                *slot = None;
            }
            command::command_error("sequencer", error)
        })
    }
}
