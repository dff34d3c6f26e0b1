//! What a session tells its shell to do, and what the shell tells it besides.

use bytes::Bytes;
use sealog_proto::internal::{ControlRequest, PullRequest};

use super::Status;
use crate::{Fault, Nanos, Sql};

/// What every event comes with.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The object's storage. A static stream never touches it.
    pub sql: &'a dyn Sql,
    /// The time.
    pub now: Nanos,
    /// What all other streams of this isolate have sent and not been acknowledged, in bytes: they share its memory
    /// (rule 18). The sum of their [`Session::unacked`](super::Session::unacked).
    pub elsewhere: u64,
}

/// What the shell does for the machine, strictly in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Keep these bytes with the socket (`serializeAttachment`), before the actions behind it: at most 13 KiB. Only
    /// bidirectional streams have it. Rule 19 rests on the order: what marks the stream as busy is written before the
    /// first frame is sent, what counts the frame as sent after it.
    Attach(Vec<u8>),
    /// Send to the client: one gRPC-Web data frame (flag, length, message). Bidirectional: as one binary WebSocket
    /// message. Static: one write to the body; when its promise resolves, call
    /// [`Session::written`](super::Session::written) with the frame's length, and when it is rejected
    /// [`Session::closed`](super::Session::closed).
    Send(Bytes),
    /// Command `control` at a log partition; report with
    /// [`Session::control_reply`](super::Session::control_reply), once for each action.
    Control {
        /// Which partition.
        partition: u32,
        /// What to send. A retry is another action with the same content.
        request: ControlRequest,
        /// How long to wait for the reply, in nanoseconds.
        deadline: Nanos,
    },
    /// Command `pull` at a log partition; report with [`Session::pull_reply`](super::Session::pull_reply), once for
    /// each action.
    Pull {
        /// Which partition.
        partition: u32,
        /// What to send.
        request: PullRequest,
        /// How long to wait for the reply, in nanoseconds.
        deadline: Nanos,
    },
    /// Set the object's alarm, in the same event; it calls [`Session::alarm`](super::Session::alarm). There is one:
    /// a later one replaces it.
    Alarm {
        /// From now, in nanoseconds.
        after: Nanos,
    },
    /// Call [`Session::wake`](super::Session::wake) after so long, by a timer in memory, which keeps the object from
    /// hibernating. Waking too early or too often is harmless.
    Wake {
        /// From now, in nanoseconds.
        after: Nanos,
    },
    /// Wait until all writes of this and earlier events are durable (`storage.sync()`), then call
    /// [`Session::synced`](super::Session::synced) with the number. When it fails, do nothing: the object starts anew.
    Sync {
        /// For the report.
        number: u64,
    },
    /// End the response: the trailers frame with this status, then close 1000 (or end the body). Whatever the client
    /// sends after it is not read.
    Finish(Status),
    /// The object has nothing left to do or to remember: delete its alarm and all of its storage.
    Delete,
    /// An assertion or the storage failed. Log it; the stream ends with the [`Action::Finish`] behind it.
    Report(Fault),
}
