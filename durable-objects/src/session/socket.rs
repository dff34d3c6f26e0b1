//! The WebSocket of a bidirectional stream, and what the platform keeps with it.

use std::cell::Cell;

use js_sys::Uint8Array;
use sealog_log::session::Status;
use wasm_bindgen::{JsCast, JsValue};
use worker::web_sys::{Response, ResponseInit, WebSocket};
use worker::worker_sys::ext::{ResponseInitExt, WebSocketExt};
use worker::worker_sys::{DurableObjectState, WebSocketPair};

use crate::grpc_websocket::{self, CLOSE_NORMAL, SUBPROTOCOL};

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The header block has not come.
    Opening = 0,
    /// Messages are read.
    Open = 1,
    /// The trailers have been sent: what comes is not read.
    Finished = 2,
}

/// The socket. Its attachment is the phase, one byte, and what the session machine keeps.
#[derive(Debug)]
pub(super) struct Socket {
    inner: WebSocket,
    phase: Cell<Phase>,
}

impl Socket {
    /// Accepts a new socket, and gives the response that completes the handshake.
    pub(super) fn accept(state: &DurableObjectState) -> Result<(Self, Response), JsValue> {
        let mut pair = WebSocketPair::new()?;
        let inner = pair.server()?;
        state.accept_websocket(&inner)?;
        let headers = worker::web_sys::Headers::new()?;
        headers.set("sec-websocket-protocol", SUBPROTOCOL)?;
        let mut init = ResponseInit::new();
        init.set_status(101);
        init.set_headers(&headers);
        init.websocket(&pair.client()?)?;
        let response = Response::new_with_opt_str_and_init(None, &init)?;
        Ok((Self { inner, phase: Cell::new(Phase::Opening) }, response))
    }

    /// The live socket of the object, with what the machine kept; none when the stream is over.
    pub(super) fn find(state: &DurableObjectState) -> Result<Option<(Self, Vec<u8>)>, JsValue> {
        let Some(inner) = state.get_websockets()?.into_iter().next() else { return Ok(None) };
        let attachment = inner.deserialize_attachment()?;
        let attachment = attachment.dyn_ref::<Uint8Array>().map(Uint8Array::to_vec).unwrap_or_default();
        let (phase, kept) = match attachment.split_first() {
            Some((0, kept)) => (Phase::Opening, kept),
            Some((1, kept)) => (Phase::Open, kept),
            // Finished, or accepted by an event that came to nothing.
            _ => return Ok(None),
        };
        Ok(Some((Self { inner, phase: Cell::new(phase) }, kept.to_vec())))
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// The header block was read; the machine's next attachment says so.
    pub(super) fn open(&self) {
        self.phase.set(Phase::Open);
    }

    /// Keeps bytes with the socket. A failure is a bug: the platform allows 16 KiB, the machine keeps to 13.
    pub(super) fn attach(&self, bytes: &[u8]) -> Result<(), JsValue> {
        if self.phase.get() == Phase::Finished {
            return Ok(());
        }
        self.inner.serialize_attachment(self.attachment(bytes))
    }

    fn attachment(&self, bytes: &[u8]) -> JsValue {
        let attachment = [&[self.phase.get() as u8], bytes].concat();
        Uint8Array::from(attachment.as_slice()).into()
    }

    /// Sends one message. One that cannot be sent, because the socket has closed, is lost with it: the platform tells.
    pub(super) fn send(&self, message: &[u8]) {
        let _ = self.inner.send_with_u8_array(message);
    }

    /// Ends the call.
    pub(super) fn finish(&self, status: &Status) {
        self.phase.set(Phase::Finished);
        let _ = self.inner.serialize_attachment(self.attachment(&[]));
        self.send(&grpc_websocket::trailers(status.code, &status.message));
        self.close();
    }

    /// Closes the socket, or answers the client's close.
    pub(super) fn close(&self) {
        // It fails when the connection is lost, or closed already.
        let _ = self.inner.close_with_code(CLOSE_NORMAL);
    }
}
