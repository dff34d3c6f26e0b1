//! The messages of the backend: generated from the `.proto` files, and what belongs to them.
//!
//! - [`backend`], [`associations`], [`message_contents`]: the public API (contract, API-210).
//! - [`internal`]: calls between the worker and the objects.
//! - [`Topic`]: kind byte and identifier, parsed and checked (TOPIC-001, TOPIC-003).
//! - [`canonical`]: the stored bytes of an envelope and their hash (API-211).
//! - [`grpc_web`]: frames, and the lines that end a call.
//! - [`status`]: gRPC codes and the details of a failed publish (API-223).
//! - [`wire`]: counting repeated fields before they are decoded.

pub mod canonical;
pub mod grpc_web;
pub mod status;
mod topic;
pub mod wire;

pub use topic::{Kind, Topic, TopicError};

/// The generated modules, nested as their packages are.
#[allow(clippy::all, clippy::pedantic, unreachable_pub)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/all.rs"));
}

pub use generated::google::rpc;
pub use generated::grpc::health::v1 as health;
pub use generated::sealog::internal::v1 as internal;
pub use generated::xmtp::backend::v1 as backend;
pub use generated::xmtp::identity::{MlsCredential, associations};
pub use generated::xmtp::mls::message_contents;

/// Every `.proto` file as an encoded `google.protobuf.FileDescriptorSet`, for clients that reflect.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The largest value of a sequence id, and of a cursor (API-286).
pub const MAX_SEQUENCE_ID: u64 = i64::MAX as u64;
