//! Opening a stream: the request that the worker makes of a new session, and how the session reads it.

use std::rc::Rc;

use bytes::Bytes;
use js_sys::Uint8Array;
use sealog_log::session::Status;
use sealog_proto::internal::{Failure, failure::Kind};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use worker::console_error;
use worker::web_sys::{Headers, Request, RequestInit, Response, ResponseInit};

use super::body::BodyMode;
use super::shell::{Refusal, Shell};
use crate::CallError;
use crate::call::gone;
use crate::externs::ObjectStub;

/// The platform wants a whole URL; only the object reads it, and it does not.
const URL: &str = "https://session/";
/// The id of the client's request, for the headers of the answer.
const REQUEST_ID: &str = "x-request-id";
/// How the frames of a static stream are written: [`TEXT`], or else binary.
const MODE: &str = "x-body-mode";
const TEXT: &str = "text";

/// What a session answers when the client's request is at fault: this HTTP status, and the message of an
/// `INVALID_ARGUMENT` as the body.
const REFUSED: u16 = 400;
const FAILED: u16 = 503;

/// Why a stream was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The request breaks a rule (API-260, TOPIC-003, a bound).
    #[error("{0}")]
    Invalid(String),
    /// No session took it.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// The object of a new stream. It is asked once, and never again (stream-protocol rule 1): whatever comes of it, the
/// client opens another stream.
#[derive(Debug)]
pub struct NewSession(ObjectStub);

impl NewSession {
    pub(crate) fn new(stub: ObjectStub) -> Self {
        Self(stub)
    }

    /// Opens a bidirectional stream; the response completes the client's handshake.
    pub async fn subscribe(self, request_id: &str) -> Result<Response, OpenError> {
        let headers = [("upgrade", "websocket"), (REQUEST_ID, request_id)];
        let response = self.ask(&headers, &RequestInit::new()).await?;
        if response.status() == 101 { Ok(response) } else { Err(failed(&response)) }
    }

    /// Opens a static stream from the bytes of its `SubscribeStaticRequest`. The body of the response is that of the
    /// call: frames, the trailers last.
    pub async fn subscribe_static(self, message: &[u8], mode: BodyMode) -> Result<Response, OpenError> {
        let init = RequestInit::new();
        init.set_method("POST");
        init.set_body(&Uint8Array::from(message));
        let mode = if mode == BodyMode::Text { TEXT } else { "binary" };
        let response = self.ask(&[(MODE, mode)], &init).await?;
        match response.status() {
            200 => Ok(response),
            REFUSED => Err(OpenError::Invalid(text(&response).await?)),
            _ => Err(failed(&response)),
        }
    }

    async fn ask(&self, headers: &[(&str, &str)], init: &RequestInit) -> Result<Response, CallError> {
        let asked = async {
            let all = Headers::new()?;
            for (name, value) in headers {
                all.set(name, value)?;
            }
            init.set_headers(&all);
            let request = Request::new_with_str_and_init(URL, init)?;
            JsFuture::from(self.0.fetch(&request)?).await?.dyn_into::<Response>()
        };
        asked.await.map_err(|error| gone("a session", &error))
    }
}

fn failed(response: &Response) -> OpenError {
    let message = format!("a session answered with HTTP status {}", response.status());
    CallError { kind: Kind::Unavailable, message }.into()
}

async fn text(response: &Response) -> Result<String, CallError> {
    let read = async { JsFuture::from(response.text()?).await };
    let text = read.await.map_err(|error| gone("a session", &error))?;
    Ok(text.as_string().unwrap_or_default())
}

/// Answers the one request of a session.
pub(super) async fn answer(shell: &Rc<Shell>, request: &Request) -> Result<Response, JsValue> {
    let headers = request.headers();
    if headers.has("upgrade")? {
        let request_id = headers.get(REQUEST_ID)?.unwrap_or_default();
        return shell.upgrade(&request_id).or_else(refuse);
    }
    let mode = if headers.get(MODE)?.as_deref() == Some(TEXT) { BodyMode::Text } else { BodyMode::Binary };
    let message = JsFuture::from(request.array_buffer()?).await?;
    match shell.open_static(Bytes::from(Uint8Array::new(&message).to_vec()), mode) {
        Ok(body) => Response::new_with_opt_readable_stream(Some(&body)),
        Err(refusal) => refuse(refusal),
    }
}

fn refuse(refusal: Refusal) -> Result<Response, JsValue> {
    let init = ResponseInit::new();
    match refusal {
        Refusal::Request(Status { message, .. }) => {
            init.set_status(REFUSED);
            Response::new_with_opt_str_and_init(Some(&message), &init)
        }
        Refusal::Object(Failure { message, .. }) => {
            console_error!("session: not opened: {message}");
            init.set_status(FAILED);
            Response::new_with_opt_str_and_init(None, &init)
        }
    }
}
