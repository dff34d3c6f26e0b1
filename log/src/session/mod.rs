//! A session: one stream of one client, over the log partitions that keep its topics.
//!
//! The session watches topics at their partitions, pulls their history, and hands on what partitions push. A push is a
//! fact about a log (between `previous` and these rows there is nothing), so positions alone decide what is sent: lost,
//! repeated and late messages skip nothing and repeat nothing. "Rule n" in comments means the stream protocol's rules.
//!
//! ## Driving it
//!
//! - The object's constructor calls [`Session::load`] with the attachment of its socket, if it has one. That never fails
//!   a sound stream; it carries out the actions and goes on.
//! - Bidirectional: [`accept`](Session::accept) in the event that accepts the socket, [`start`](Session::start) in the one
//!   that reads the header block, then [`data`](Session::data) for each data message without its first byte,
//!   [`half_close`](Session::half_close) for the byte 0x01, [`fail`](Session::fail) for a message that is neither, and
//!   [`closed`](Session::closed) when the socket is gone.
//! - Static: [`Session::open_static`] with the request, instead of `accept`, on an object that holds no stream.
//! - Every event returns actions, to be carried out in order and in the same event, without an await in between.
//! - A [`Fault`] never leaves an event: it ends the stream with a status.

mod action;
mod counters;
mod setup;

use bytes::Bytes;
use sealog_proto::internal::{ControlReply, PullReply, PushReply, PushRequest};

use crate::Fault;

pub use action::{Action, Context, Status};
pub use counters::Counters;
pub use setup::{Limits, Rate, Setup};

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Session {}

impl Session {
    /// An instance on what is stored, and on what the socket kept: `None` when the object has no live socket.
    ///
    /// Nothing stored and no socket: it holds no stream; it can [`accept`](Self::accept) one, and answers pushes with
    /// `gone`. A stream whose memory held something is failed with UNAVAILABLE here (rule 19). A fault means that
    /// storage cannot be read: throw, and let the caller try again (rule 11).
    pub fn load(ctx: &Context<'_>, setup: Setup, attachment: Option<&[u8]>) -> Result<(Self, Vec<Action>), Fault> {
        todo!()
    }

    /// A static stream, from the bytes of its `SubscribeStaticRequest`. Refused with `INVALID_ARGUMENT` before anything
    /// is sent when the request is not as API-260, TOPIC-003 and the bounds demand.
    pub fn open_static(ctx: &Context<'_>, setup: Setup, request: Bytes) -> Result<(Self, Vec<Action>), Status> {
        todo!()
    }

    /// The WebSocket was accepted. Storage says so from here on (rule 1).
    pub fn accept(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        todo!()
    }

    /// The header block was read and is good: Started leaves (API-250).
    pub fn start(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        todo!()
    }

    /// Bytes of the client's stream of gRPC frames, cut anywhere (rule 21).
    pub fn data(&mut self, ctx: &Context<'_>, bytes: &[u8]) -> Vec<Action> {
        todo!()
    }

    /// The client ended its request stream: accepted Updates are answered, then the stream ends with OK (API-259).
    pub fn half_close(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        todo!()
    }

    /// The client sent what the transport refuses. It takes its place behind the Updates that wait; nothing after it is
    /// read (rule 12).
    pub fn fail(&mut self, ctx: &Context<'_>, status: Status) -> Vec<Action> {
        todo!()
    }

    /// The client is gone: the socket closed or broke, or a write of the body was rejected.
    pub fn closed(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        todo!()
    }

    /// What came of [`Action::Control`] number `number`; `None`: no reply in time, or none that can be read.
    pub fn control_reply(
        &mut self,
        ctx: &Context<'_>,
        partition: u32,
        number: u64,
        reply: Option<&ControlReply>,
    ) -> Vec<Action> {
        todo!()
    }

    /// What came of [`Action::Pull`] number `number`, as above.
    pub fn pull_reply(&mut self, ctx: &Context<'_>, number: u64, reply: Option<PullReply>) -> Vec<Action> {
        todo!()
    }

    /// Command `push` of a partition. Idempotent; storage is only read. Answered in this event: the reply leaves
    /// without waiting for anything but the output gate (rule 11).
    pub fn push(&mut self, ctx: &Context<'_>, request: PushRequest) -> (PushReply, Vec<Action>) {
        todo!()
    }

    /// The object's alarm rang. It may ring late, or twice. A static stream has none.
    pub fn alarm(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        todo!()
    }

    /// Time has passed.
    pub fn wake(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        todo!()
    }

    /// [`Action::Sync`] `number` is done.
    pub fn synced(&mut self, ctx: &Context<'_>, number: u64) -> Vec<Action> {
        todo!()
    }

    /// Static: the oldest write of the body that had not resolved did, so many bytes long. It is what the client has
    /// read, as far as the platform shows (rule 23).
    pub fn written(&mut self, ctx: &Context<'_>, bytes: u64) -> Vec<Action> {
        todo!()
    }

    /// Bytes sent that the client has not acknowledged.
    pub fn unacked(&self) -> u64 {
        todo!()
    }

    /// The response has ended ([`Action::Finish`]), or there never was a stream. What is left are the partitions' watches.
    pub fn is_over(&self) -> bool {
        todo!()
    }

    /// The counts since the last call.
    pub fn take_counters(&mut self) -> Counters {
        todo!()
    }
}
