//! One call to an object: the command, its attempts, its deadline.

use bytes::Bytes;
use futures::future::{Either, select};
use js_sys::{Math, Reflect, Uint8Array};
use prost::Message;
use sealog_log::{MILLISECOND, Nanos};
use sealog_proto::internal::{Failure, failure::Kind};
use std::pin::pin;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use worker::ObjectNamespace;

use crate::{clock, command, externs::ObjectStub};

/// The longest request: the platform carries 32 MiB between objects, framing included.
const MAX_BYTES: usize = 31 << 20;
/// The pause before the second attempt, at most; it doubles. Random, so that callers do not return in step.
const PAUSE: Nanos = 50 * MILLISECOND;

/// A call that brought no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// What kind of failure.
    pub kind: Kind,
    /// For an operator. Names no topic, key or payload (SEC-051).
    pub message: String,
}

impl CallError {
    pub(crate) fn into_failure(self) -> Failure {
        Failure { kind: self.kind.into(), message: self.message }
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        Self { kind: failure.kind(), message: failure.message }
    }
}

/// Which object.
pub(crate) struct Address<'a> {
    pub(crate) namespace: &'a ObjectNamespace,
    pub(crate) name: Name,
}

pub(crate) enum Name {
    /// Ours.
    Given(String),
    /// The platform's, in hexadecimal.
    Id(String),
}

impl Address<'_> {
    fn stub(&self) -> Result<ObjectStub, JsValue> {
        let stub = match &self.name {
            Name::Given(name) => self.namespace.get_by_name(name),
            Name::Id(id) => self.namespace.id_from_string(id).and_then(|id| id.get_stub()),
        };
        Ok(stub.map_err(JsValue::from)?.into_rpc())
    }
}

/// One command, within `deadline` over all its attempts.
pub(crate) async fn call<Q: Message, R: Message + Default>(
    address: Address<'_>,
    command: &str,
    request: Q,
    deadline: Nanos,
    attempts: u32,
) -> Result<R, CallError> {
    let body = encode(command, request)?;
    let work = pin!(attempt(&address, command, &body, attempts));
    match select(work, pin!(clock::sleep(deadline))).await {
        Either::Left((outcome, _)) => Ok(command::outcome(outcome?)?),
        Either::Right(_) => Err(CallError {
            kind: Kind::Deadline,
            message: format!("{command} took longer than {} ms", deadline / MILLISECOND),
        }),
    }
}

/// Encodes a request, and lets go of it: while the call is under way, only JavaScript holds its bytes.
fn encode<Q: Message>(command: &str, request: Q) -> Result<Uint8Array, CallError> {
    let length = request.encoded_len();
    if length > MAX_BYTES {
        return Err(CallError {
            kind: Kind::TooLong,
            message: format!(
                "{command}: {length} bytes are too many for one call to an object: split the request"
            ),
        });
    }
    let body = request.encode_to_vec();
    drop(request);
    Ok(Uint8Array::from(body.as_slice()))
}

async fn attempt(
    address: &Address<'_>,
    command: &str,
    body: &Uint8Array,
    attempts: u32,
) -> Result<Bytes, CallError> {
    let mut pause = PAUSE;
    for left in (0..attempts).rev() {
        // After an exception a stub may be broken for good: each attempt takes a fresh one.
        match once(address, command, body).await {
            Ok(frame) => return Ok(frame),
            Err(error) if left == 0 || is_overloaded(&error) => return Err(gone(command, &error)),
            Err(_) => clock::sleep(random_part(pause)).await,
        }
        pause *= 2;
    }
    Err(CallError { kind: Kind::Unavailable, message: format!("{command} was not attempted") })
}

async fn once(address: &Address<'_>, command: &str, body: &Uint8Array) -> Result<Bytes, JsValue> {
    let frame = JsFuture::from(address.stub()?.call(command, body)?).await?;
    Ok(Bytes::from(frame.dyn_into::<Uint8Array>()?.to_vec()))
}

/// The platform asks not to send more.
fn is_overloaded(error: &JsValue) -> bool {
    Reflect::get(error, &"overloaded".into()).is_ok_and(|overloaded| overloaded.is_truthy())
}

pub(crate) fn gone(command: &str, error: &JsValue) -> CallError {
    let message = Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    CallError {
        kind: Kind::Unavailable,
        message: format!("{command}: {}", message.as_deref().unwrap_or("the object is gone")),
    }
}

fn random_part(of: Nanos) -> Nanos {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let part = (Math::random() * of as f64) as Nanos; // from 0 to `of`, far below 2^53
    part
}
