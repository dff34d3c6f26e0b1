//! gRPC-Web over HTTP (contract section 7).
//!
//! A call is one POST. Its body holds one length-prefixed message, in binary or as base64 text. The answer is always
//! HTTP 200 with two frames in the body: the message, unless the call failed, and the trailers with the status.
//!
//! What can be judged without JavaScript is pure and tested natively: [`frame`], [`text`], [`body`], [`metadata`],
//! [`timeout`], [`answer`]. [`request`], [`response`] and `stream` are the thin glue to the platform's types.

pub mod answer;
pub mod body;
pub mod cors;
pub mod frame;
pub mod js;
pub mod metadata;
pub mod request;
pub mod response;
pub(crate) mod stream;
pub mod text;
pub mod timeout;

/// The largest message that is ever carried, in either direction: 25 MiB (API-282).
pub const CEILING_BYTES: usize = 26_214_400;
