//! The class of the Directory partitions: `DIRECTORY_PARTITIONS` objects, each named by its index.

use std::rc::Rc;

use sealog_log::directory::Directory as Machine;
use sealog_log::participant::Reply;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::worker_sys::DurableObjectState;
use worker::{Env, State};

use crate::command;
use crate::participant::{Shell, only};

/// Keeps which inbox holds which handle.
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
            command::STAGE => command::answer(
                &shell.now(body, |machine, sql, now, request| machine.stage(sql, now, &request)),
            ),
            command::WITHDRAW => {
                command::answer(&shell.now(body, |machine, sql, _, request| machine.withdraw(sql, &request)))
            }
            command::APPLY => {
                let answer = shell
                    .later(body, |machine, _, now, call, request| machine.apply(now, call, &request))
                    .await;
                command::answer(&only(answer, |reply| match reply {
                    Reply::Apply(reply) => Some(reply),
                    Reply::Store(_) => None,
                }))
            }
            _ => command::answer::<()>(&Err(command::unknown())),
        }
    }

    /// Called by the platform, at least once for each alarm that was set.
    pub fn alarm(&self) {
        self.0.alarm();
    }
}
