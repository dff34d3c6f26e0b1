//! Reading a request: its headers once, its body within the limit.

use bytes::Bytes;
use js_sys::{Uint8Array, futures::JsFuture};
use worker::web_sys::{Headers, Request};

use super::{
    body::{BodyError, BodyReader, check_announced},
    metadata::{Head, HeadError, Mode},
    stream::{BodyStream, BrokenOff},
};

/// A body that announces no more is taken in one piece: one call to the platform instead of several.
const WHOLE_BYTES: u64 = 64 * 1024;
/// Bytes of one read of a longer body, and of what JavaScript holds of it at a time.
const CHUNK_BYTES: u32 = 256 * 1024;

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

impl From<BrokenOff> for ReadError {
    fn from(_: BrokenOff) -> Self {
        Self::BrokenOff
    }
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
    let mut stream = BodyStream::open(request.body(), CHUNK_BYTES)?;
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
    if let Ok(mut stream) = BodyStream::open(request.body(), CHUNK_BYTES) {
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
