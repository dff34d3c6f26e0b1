//! The class of the Directory partitions: `DIRECTORY_PARTITIONS` objects, each named by its index.

use std::rc::Rc;

use sealog_log::directory::{self, Directory as Machine};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::worker_sys::DurableObjectState;
use worker::{Env, State};

use crate::command;
use crate::participant::Shell;

/// Keeps which inboxes identifiers are associated with, and which inbox holds which handle.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Directory(Rc<Shell<Machine>>);

#[wasm_bindgen]
impl Directory {
    /// Called by the platform.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::needless_pass_by_value)] // the platform hands it over
    pub fn new(state: DurableObjectState, env: Env) -> Self {
        Self(Shell::new(State::from(state), &env))
    }

    /// Runs one command. See `sealog_log::directory` for what each does, writes, and who repeats it.
    pub async fn call(&self, command: String, body: Vec<u8>) -> Vec<u8> {
        let shell = Rc::clone(&self.0);
        match command.as_str() {
            command::ASSOCIATE => {
                command::answer(&shell.now(body, |machine, sql, _, request| {
                    Ok((machine.associate(sql, &request)?, Vec::new()))
                }))
            }
            command::LOOKUP => command::answer(
                &shell.now(body, |_, sql, _, request| Ok((directory::lookup(sql, &request)?, Vec::new()))),
            ),
            _ => shell.call(&command, body).await,
        }
    }

    /// Called by the platform, at least once for each alarm that was set.
    pub fn alarm(&self) {
        self.0.alarm();
    }
}
