//! The response body of a static stream.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::channel::oneshot;
use js_sys::{Promise, Uint8Array};
use sealog_log::session::Status;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use worker::web_sys::{ReadableStream, WritableStreamDefaultWriter};

use crate::externs::IdentityTransformStream;
use crate::grpc_websocket::trailers;

/// How frames are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyMode {
    /// As they are.
    Binary,
    /// As base64, each frame a padded segment.
    Text,
}

/// The end that is written to.
#[derive(Debug)]
pub(super) struct Body {
    writer: WritableStreamDefaultWriter,
    mode: BodyMode,
    /// Dropped with the body.
    _held: oneshot::Sender<()>,
}

impl Body {
    /// A body, the end of it that the client reads, and what resolves when the body is dropped.
    pub(super) fn new(mode: BodyMode) -> Result<(Self, ReadableStream, oneshot::Receiver<()>), JsValue> {
        let pipe = IdentityTransformStream::new()?;
        let writer = pipe.writable().get_writer()?;
        let (held, ended) = oneshot::channel();
        Ok((Self { writer, mode, _held: held }, pipe.readable(), ended))
    }

    /// Writes one frame. What is returned resolves when the client has read it, as far as the platform shows, and is
    /// rejected when there is no client any more.
    pub(super) fn write(&self, frame: &[u8]) -> Promise {
        let bytes = match self.mode {
            BodyMode::Binary => Uint8Array::from(frame),
            BodyMode::Text => Uint8Array::from(STANDARD.encode(frame).as_bytes()),
        };
        self.writer.write_with_chunk(&bytes)
    }

    /// Ends the call.
    pub(super) fn finish(&self, status: &Status) {
        for done in [self.write(&trailers(status.code, &status.message)), self.writer.close()] {
            // Rejected when the client is gone.
            spawn_local(async { drop(JsFuture::from(done).await) });
        }
    }
}
