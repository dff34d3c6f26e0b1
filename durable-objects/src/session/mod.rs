//! The class of the sessions: one object for each open stream, named by the platform and never used again.

mod actions;
mod body;
mod budget;
mod isolate;
mod open;
mod shell;
mod socket;

use std::rc::Rc;

use bytes::Bytes;
use js_sys::Uint8Array;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Env;
use worker::web_sys::{Request, Response, WebSocket};
use worker::worker_sys::DurableObjectState;

pub use body::BodyMode;
pub use isolate::{ReadSettings, StreamSettings, provide_stream_settings, stream_counters};
pub use open::{NewSession, OpenError};

use crate::command;
use shell::Shell;

/// Runs one stream.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session(Rc<Shell>);

#[wasm_bindgen]
impl Session {
    /// Called by the platform. Everything else waits for an event: a constructor that fails could say so to nobody.
    #[wasm_bindgen(constructor)]
    pub fn new(state: DurableObjectState, env: Env) -> Self {
        Self(Shell::new(state, env))
    }

    /// Opens the stream. Made by [`NewSession`], once.
    pub async fn fetch(&self, request: Request) -> Result<Response, JsValue> {
        let shell = Rc::clone(&self.0);
        open::answer(&shell, &request).await
    }

    /// Resolves when the answer to [`Session::fetch`] has ended, and at once when that is a socket, which outlives memory.
    /// The shim counts it as a call in flight: were the memory lost under an open body, its client would wait for nothing.
    pub async fn finished(&self) {
        let shell = Rc::clone(&self.0);
        shell.finished().await;
    }

    /// Runs one command: `push`, see `sealog_log::session`.
    #[allow(clippy::needless_pass_by_value)] // the platform hands it over
    pub fn call(&self, command: String, body: Vec<u8>) -> Vec<u8> {
        match command.as_str() {
            command::PUSH => self.0.push(body),
            _ => command::answer::<()>(&Err(command::unknown())),
        }
    }

    /// Called by the platform with each message of the client: text, or the bytes.
    #[wasm_bindgen(js_name = webSocketMessage)]
    #[allow(clippy::needless_pass_by_value)] // the platform hands it over
    pub fn web_socket_message(&self, _socket: WebSocket, message: JsValue) {
        let bytes = (!message.is_string()).then(|| Bytes::from(Uint8Array::new(&message).to_vec()));
        self.0.message(bytes);
    }

    /// Called by the platform when the client closes, or the connection is lost. It may never be called.
    #[wasm_bindgen(js_name = webSocketClose)]
    pub fn web_socket_close(&self) {
        self.0.closed();
    }

    /// Called by the platform when the connection fails.
    #[wasm_bindgen(js_name = webSocketError)]
    pub fn web_socket_error(&self) {
        self.0.closed();
    }

    /// Called by the platform, at least once for each alarm that was set.
    pub fn alarm(&self) {
        self.0.alarm();
    }
}
