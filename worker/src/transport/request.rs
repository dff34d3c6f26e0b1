//! Reading a request: its headers once, its body within the limit.

use bytes::Bytes;
use js_sys::{Uint8Array, futures::JsFuture};
use wasm_bindgen::JsCast;
use worker::web_sys::{Headers, Request};

use super::{
    body::{BodyError, BodyReader, check_announced},
    js::{self, Chunk},
    metadata::{Head, HeadError, Mode},
};

/// A body that announces no more is taken in one piece: one call to the platform instead of several.
const WHOLE_BYTES: u64 = 64 * 1024;
/// Bytes of one read of a longer body, and of what JavaScript holds of it at a time.
const CHUNK_BYTES: u32 = 256 * 1024;
/// How many chunks of a refused body are read and dropped: a client that is cut off while it sends may never see the
/// answer. The platform takes bodies of 100 MB; one that goes on behind that must not be listened to.
const DISCARDED_CHUNKS: u32 = 400;

/// Why a body is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It breaks the rules.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The platform ended it early: the client went away, or the connection broke.
    #[error("the request body could not be read")]
    BrokenOff,
}

/// The value of a header, if it is there.
pub fn header(headers: &Headers, name: &str) -> Option<String> {
    headers.get(name).ok().flatten()
}

/// Reads the headers of a call.
pub fn head(headers: &Headers) -> Result<Head, HeadError> {
    Head::read(|name| header(headers, name))
}

/// Reads the message of a unary call, `limit` bytes at most (API-282).
pub async fn message(request: &Request, mode: Mode, head: &Head, limit: usize) -> Result<Bytes, ReadError> {
    if let Some(length) = head.content_length {
        check_announced(mode, length, limit).map_err(BodyError::from)?;
        if length <= WHOLE_BYTES {
            return whole(request, mode, limit).await;
        }
    }
    let mut body = BodyReader::new(mode, limit);
    let mut stream = BodyStream::open(request)?;
    while let Some(chunk) = stream.next().await? {
        if let Err(error) = body.push(&chunk) {
            stream.discard().await;
            return Err(error.into());
        }
    }
    Ok(body.finish()?)
}

/// Reads a refused body of which nothing was read yet, and drops it, so that the client gets to see the answer.
pub async fn discard(request: &Request) {
    if request.body_used() {
        return;
    }
    if let Ok(mut stream) = BodyStream::open(request) {
        stream.discard().await;
    }
}

async fn whole(request: &Request, mode: Mode, limit: usize) -> Result<Bytes, ReadError> {
    let buffer = request.array_buffer().map_err(|_| ReadError::BrokenOff)?;
    let buffer = JsFuture::from(buffer).await.map_err(|_| ReadError::BrokenOff)?;
    let mut body = BodyReader::new(mode, limit);
    body.push(&Uint8Array::new(&buffer).to_vec())?;
    Ok(body.finish()?)
}

/// A body, read chunk by chunk into one buffer that goes back and forth.
struct BodyStream {
    /// `None` when the request has no body.
    reader: Option<js::ByobReader>,
    buffer: Uint8Array,
}

impl BodyStream {
    fn open(request: &Request) -> Result<Self, ReadError> {
        let reader = request.body().map(js::byob_reader).transpose().map_err(|_| ReadError::BrokenOff)?;
        Ok(Self { reader, buffer: Uint8Array::new_with_length(CHUNK_BYTES) })
    }

    /// The next chunk; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(reader) = &self.reader else { return Ok(None) };
        let read = reader.fill(&self.buffer).map_err(|_| ReadError::BrokenOff)?;
        let chunk: Chunk = JsFuture::from(read).await.map_err(|_| ReadError::BrokenOff)?.unchecked_into();
        let bytes = match chunk.value() {
            Some(bytes) if bytes.length() > 0 => bytes,
            _ => return Ok(None),
        };
        // The read has taken the buffer away and given it back under a new name.
        self.buffer = Uint8Array::new(&bytes.buffer());
        Ok(Some(bytes.to_vec()))
    }

    /// Drops the rest. Best effort.
    async fn discard(&mut self) {
        for _ in 0..DISCARDED_CHUNKS {
            if !matches!(self.next().await, Ok(Some(_))) {
                return;
            }
        }
    }
}
