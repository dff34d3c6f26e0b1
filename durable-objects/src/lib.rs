//! The Durable Object classes: shells that decode a command, call the state machine, and carry out what it says.
//!
//! - [`Sequencer`], [`LogPartition`], [`Directory`], [`Session`]: the classes.
//! - [`grpc_websocket`]: the framing of a bidirectional call, pure.
//! - [`Objects`]: how the worker, and one object, calls another.
//!
//! Calls are JavaScript RPC with protobuf inside. The platform holds a call that leaves an object, and a value that an
//! object returns, until the object's earlier writes are durable (the output gate). It does *not* hold an exception:
//! so a verdict is always returned, never thrown.

mod call;
mod client;
mod clock;
mod command;
mod directory;
mod externs;
pub mod grpc_websocket;
mod instance;
mod log_partition;
mod participant;
mod publish;
mod sequencer;
mod session;
mod storage;

pub use call::CallError;
pub use client::{Objects, isolate_calls};
pub use directory::Directory;
pub use log_partition::LogPartition;
pub use publish::Published;
pub use sealog_log::session::{Counters as StreamCounters, Limits as StreamLimits, Rate};
pub use sequencer::Sequencer;
pub use session::{
    BodyMode, NewSession, OpenError, ReadSettings, Session, StreamSettings, provide_stream_settings,
    stream_counters,
};

/// Calls at once from one event: the platform keeps six connections open and queues the rest.
const CONNECTIONS: usize = 6;
