//! Reading a body of any length, in pieces.

use js_sys::{Uint8Array, futures::JsFuture};
use wasm_bindgen::JsCast;
use worker::web_sys::ReadableStream;

use super::js::{self, Chunk};

/// How many chunks of a refused body are read and dropped: a client that is cut off while it sends may never
/// see the answer. The platform takes bodies of 100 MB; one that goes on behind that must not be listened to.
const DISCARDED_CHUNKS: u32 = 400;

/// The platform ended the body early: the other side went away, or the connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrokenOff;

/// A body, read chunk by chunk into one buffer that goes back and forth.
pub(crate) struct BodyStream {
    /// `None` when there is no body.
    reader: Option<js::ByobReader>,
    buffer: Uint8Array,
}

impl BodyStream {
    /// Takes a body, to be read `chunk_bytes` at a time.
    pub(crate) fn open(body: Option<ReadableStream>, chunk_bytes: u32) -> Result<Self, BrokenOff> {
        let reader = body.map(js::byob_reader).transpose().map_err(|_| BrokenOff)?;
        Ok(Self { reader, buffer: Uint8Array::new_with_length(chunk_bytes) })
    }

    /// The next chunk, full unless it is the last; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, BrokenOff> {
        let Some(reader) = &self.reader else { return Ok(None) };
        let read = reader.fill(&self.buffer).map_err(|_| BrokenOff)?;
        let chunk: Chunk = JsFuture::from(read).await.map_err(|_| BrokenOff)?.unchecked_into();
        let bytes = match chunk.value() {
            Some(bytes) if bytes.length() > 0 => bytes,
            _ => return Ok(None),
        };
        // The read has taken the buffer away and given it back under a new name.
        self.buffer = Uint8Array::new(&bytes.buffer());
        Ok(Some(bytes.to_vec()))
    }

    /// Drops the rest. Best effort.
    pub(crate) async fn discard(&mut self) {
        for _ in 0..DISCARDED_CHUNKS {
            if !matches!(self.next().await, Ok(Some(_))) {
                return;
            }
        }
    }
}
