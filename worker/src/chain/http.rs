//! One POST of JSON, with an end in time and in bytes.

use std::{pin::pin, time::Duration};

use futures::future::{Either, select};
use js_sys::{Uint8Array, futures::JsFuture};
use wasm_bindgen::{JsCast, JsValue};
use worker::{
    Delay,
    web_sys::{AbortController, Headers, RequestInit, RequestRedirect, Response, WorkerGlobalScope},
};

use crate::transport::stream::{BodyStream, BrokenOff};

/// Bytes of an answer at most. A verdict has some hundred; a block lists the hashes of its transactions, 70
/// bytes each.
const MAX_BYTES: usize = 2 << 20;
/// Bytes of one read. Nearly every answer is shorter.
const CHUNK_BYTES: u32 = 16 * 1024;

/// Why no answer came. The platform's own texts are not repeated: they may name the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// No connection, or one that broke.
    #[error("the node is not reachable")]
    Unreachable,
    /// Not in time.
    #[error("the node did not answer in time")]
    Timeout,
    /// Another HTTP status than 200. A redirect is one: an answer from somewhere else is not the node's.
    #[error("the node answered with the HTTP status {0}")]
    Status(u16),
    /// Nothing that was asked for is that long.
    #[error("the node's answer is too long")]
    TooLong,
}

impl From<JsValue> for HttpError {
    fn from(_: JsValue) -> Self {
        Self::Unreachable
    }
}

impl From<BrokenOff> for HttpError {
    fn from(_: BrokenOff) -> Self {
        Self::Unreachable
    }
}

/// Ends the request when it is dropped: when the time for it is over, when the caller's is, and when the answer
/// was too long. After the end of the answer it does nothing. Without it, a call that is given up would hold one
/// of the few connections until the request that it was made for is answered.
struct AbortOnDrop(AbortController);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends `body` and gives the body of the answer, within `limit` from now.
pub(super) async fn post(url: &str, body: &[u8], limit: Duration) -> Result<Vec<u8>, HttpError> {
    match select(pin!(exchange(url, body)), pin!(Delay::from(limit))).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => Err(HttpError::Timeout),
    }
}

async fn exchange(url: &str, body: &[u8]) -> Result<Vec<u8>, HttpError> {
    let abort = AbortOnDrop(AbortController::new()?);
    let headers = Headers::new()?;
    headers.set("content-type", "application/json")?;
    headers.set("accept", "application/json")?;
    let init = RequestInit::new();
    init.set_method("POST");
    init.set_headers(&headers);
    init.set_body(&Uint8Array::from(body));
    init.set_redirect(RequestRedirect::Manual);
    init.set_signal(Some(&abort.0.signal()));
    let global: WorkerGlobalScope = js_sys::global().unchecked_into();
    let response = JsFuture::from(global.fetch_with_str_and_init(url, &init)).await?;
    let response: Response = response.unchecked_into();
    if response.status() != 200 {
        return Err(HttpError::Status(response.status()));
    }
    let mut stream = BodyStream::open(response.body(), CHUNK_BYTES)?;
    let mut answer = Vec::new();
    while let Some(chunk) = stream.next().await? {
        if answer.len() + chunk.len() > MAX_BYTES {
            return Err(HttpError::TooLong);
        }
        answer.extend(chunk);
    }
    Ok(answer)
}
