//! gRPC status codes, and the detail that a failed publish carries (API-223, API-281).

use bytes::Bytes;
use prost::Message;

use crate::backend::{PublishError, publish_error::Reason};
use crate::rpc;

/// The codes of the contract's status table, and those of the transport. Numbers are gRPC's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// The request can never succeed as it is.
    InvalidArgument = 3,
    /// A time limit passed; the outcome is unknown.
    DeadlineExceeded = 4,
    /// No such thing (the health protocol's unknown service).
    NotFound = 5,
    /// A stream's allowance is used up.
    ResourceExhausted = 8,
    /// The identity history moved (API-232).
    Aborted = 10,
    /// A message is longer than what is carried.
    OutOfRange = 11,
    /// No such method, or a compressed request.
    Unimplemented = 12,
    /// A stored value broke an invariant.
    Internal = 13,
    /// Safe to repeat after a pause.
    Unavailable = 14,
}

/// The type URL of the detail.
pub const PUBLISH_ERROR_URL: &str = "type.googleapis.com/xmtp.backend.v1.PublishError";

/// Why a publish is refused with `INVALID_ARGUMENT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishFailure {
    /// The lowest index of a failing envelope; `None` when the whole request is at fault.
    pub index: Option<u32>,
    /// From the admission table or the bounds table.
    pub reason: Reason,
    /// What a person should do about it.
    pub message: String,
}

impl PublishFailure {
    /// The encoded `google.rpc.Status` for the trailer `grpc-status-details-bin`.
    pub fn to_details(&self) -> Vec<u8> {
        let detail =
            PublishError { index: self.index, reason: self.reason.into(), message: self.message.clone() };
        rpc::Status {
            code: Code::InvalidArgument as i32,
            message: self.message.clone(),
            details: vec![prost_types::Any {
                type_url: PUBLISH_ERROR_URL.to_owned(),
                value: detail.encode_to_vec(),
            }],
        }
        .encode_to_vec()
    }

    /// Reads the detail back, as a client does. `None` when there is none.
    pub fn from_details(details: &[u8]) -> Option<Self> {
        let status = rpc::Status::decode(Bytes::copy_from_slice(details)).ok()?;
        let any = status.details.iter().find(|any| any.type_url == PUBLISH_ERROR_URL)?;
        let error = PublishError::decode(any.value.as_slice()).ok()?;
        Some(Self { index: error.index, reason: error.reason(), message: error.message })
    }
}
