//! The Durable Object classes: shells that decode a command, call the state machine, and carry out what it says.
//!
//! - [`Sequencer`], [`LogPartition`], [`Directory`]: the classes.
//! - [`Objects`]: how the worker, and one object, calls another.
//!
//! Calls are JavaScript RPC with protobuf inside. The platform holds a call that leaves an object, and a value that an
//! object returns, until the object's earlier writes are durable (the output gate). It does *not* hold an exception:
//! so a verdict is always returned, never thrown.

mod client;
mod clock;
mod command;
mod directory;
mod externs;
mod instance;
pub mod grpc_websocket;
mod log_partition;
mod participant;
mod publish;
mod sequencer;
mod storage;

pub use client::{CallError, Objects};
pub use directory::Directory;
pub use log_partition::LogPartition;
pub use publish::Published;
pub use sequencer::Sequencer;

/// Calls at once from one event: the platform keeps six connections open and queues the rest.
const CONNECTIONS: usize = 6;
