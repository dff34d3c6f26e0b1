//! The class of the log partitions: `LOG_PARTITIONS` objects, each named by its index.

use std::rc::Rc;

use sealog_log::participant::Reply;
use sealog_log::partition::{self, Partition};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::worker_sys::DurableObjectState;
use worker::{Env, State};

use crate::command;
use crate::participant::{Shell, only};

/// Keeps the logs of its topics.
#[wasm_bindgen]
#[derive(Debug)]
pub struct LogPartition(Rc<Shell<Partition>>);

#[wasm_bindgen]
impl LogPartition {
    /// Called by the platform.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::needless_pass_by_value)] // the platform hands it over
    pub fn new(state: DurableObjectState, env: Env) -> Self {
        Self(Shell::new(State::from(state), &env))
    }

    /// Runs one command. See `sealog_log::partition` for what each does, writes, and who repeats it.
    pub async fn call(&self, command: String, body: Vec<u8>) -> Vec<u8> {
        let shell = Rc::clone(&self.0);
        match command.as_str() {
            command::STORE => {
                let answer = shell
                    .later(body, |machine, _, now, call, request| Ok(machine.publish(now, call, request)))
                    .await;
                command::answer(&only(answer, |reply| match reply {
                    Reply::Store(reply) => Some(reply),
                    Reply::Apply(_) => None,
                }))
            }
            command::READ => command::answer(
                &shell.now(body, |_, sql, _, request| Ok((partition::read(sql, &request)?, Vec::new()))),
            ),
            command::NEWEST => command::answer(
                &shell.now(body, |_, sql, _, request| Ok((partition::newest(sql, &request)?, Vec::new()))),
            ),
            command::HISTORY => command::answer(
                &shell.now(body, |_, sql, _, request| Ok((partition::history(sql, &request)?, Vec::new()))),
            ),
            command::KNOWN => command::answer(
                &shell.now(body, |_, sql, _, request| Ok((partition::known(sql, &request)?, Vec::new()))),
            ),
            command::INBOXES => command::answer(
                &shell.now(body, |_, sql, _, request| Ok((partition::inboxes(sql, &request)?, Vec::new()))),
            ),
            command::CONTROL => command::answer(
                &shell.now(body, |machine, sql, now, request| machine.control(sql, now, &request)),
            ),
            command::PULL => command::answer(
                &shell.now(body, |_, sql, _, request| Ok((partition::pull(sql, &request)?, Vec::new()))),
            ),
            command::SETTLE => command::answer(
                &shell.now(body, |machine, sql, now, request| Ok(machine.settle(sql, now, &request)?)),
            ),
            _ => shell.call(&command, body).await,
        }
    }

    /// Called by the platform, at least once for each alarm that was set.
    pub fn alarm(&self) {
        self.0.alarm();
    }
}
