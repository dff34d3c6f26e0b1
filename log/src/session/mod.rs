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
//!   Before any message is handed over, the socket keeps what [`reading`](Session::reading) says.
//! - Static: [`Session::open_static`] with the request, instead of `accept`, on an object that holds no stream.
//! - Every event returns actions, to be carried out in order and in the same event, without an await in between.
//! - A [`Fault`] never leaves an event: it ends the stream with a status.

mod action;
mod attachment;
mod bucket;
mod control;
mod counters;
mod ending;
mod event;
mod history;
mod live;
mod moved;
mod output;
mod partial;
mod registry;
mod request;
mod sending;
mod setup;
mod store;
mod turn;
mod updates;
mod waking;

use bytes::Bytes;
use sealog_proto::backend::{SubscribeResponse, subscribe_response};
use sealog_proto::internal::{ControlReply, PullReply, PushReply, PushRequest};
use sealog_proto::status::Code;

use crate::{Fault, Nanos};
use bucket::Bucket;
use control::Channels;
use ending::Watched;
use history::Pulls;
use moved::Moved;
use output::Output;
use partial::Partial;
use registry::Registry;
use request::Update;
use store::Store;
use turn::{Stop, Turn};
use updates::Updates;

pub use action::{Action, Context};
pub use counters::Counters;
pub use setup::{Limits, Rate, Setup};
pub use turn::Status;

/// Which of the two kinds of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `Subscribe`: a WebSocket; survives hibernation.
    Bidirectional,
    /// `SubscribeStatic`: a response body; lives in memory.
    Static,
}

/// How far a stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is none.
    Absent,
    /// Started has not left: bidirectional, the header block is awaited; static, the targets are.
    Accepted,
    /// Frames go both ways.
    Open,
    /// The response has ended. What is left are the partitions' watches.
    Over,
}

/// Small things that survive hibernation.
#[derive(Debug)]
struct Small {
    /// Id of the last accepted Update.
    update_id: u64,
    /// How many Updates were taken up: the generation of what the last one registered.
    ordinal: u32,
    /// Of the next Control or Pull.
    next_number: u64,
    next_slot: u32,
    watched: Watched,
    updates: Bucket,
    pings: Bucket,
}

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Session {
    setup: Setup,
    kind: Kind,
    phase: Phase,
    store: Store,
    small: Small,
    output: Output,
    partial: Partial,
    /// `None`: not loaded, and nothing is behind.
    registry: Option<Registry>,
    moved: Moved,
    updates: Updates,
    channels: Channels,
    pulls: Pulls,
    /// Asked for, and done.
    syncs: u64,
    synced: u64,
    next_wake: Option<Nanos>,
    /// The partitions are being told; all were.
    closing: bool,
    deleted: bool,
    /// When they are to be told.
    byes_at: Nanos,
    counters: Counters,
}

impl Session {
    fn new(setup: Setup, kind: Kind) -> Self {
        let small = Small {
            update_id: 0,
            ordinal: 0,
            next_number: 1,
            next_slot: 0,
            watched: Watched::default(),
            updates: Bucket::full(setup.limits.updates, 0),
            pings: Bucket::full(setup.limits.pings, 0),
        };
        Self {
            setup,
            kind,
            phase: Phase::Absent,
            store: Store::default(),
            small,
            output: Output::default(),
            partial: Partial::default(),
            registry: None,
            moved: Moved::default(),
            updates: Updates::default(),
            channels: Channels::default(),
            pulls: Pulls::default(),
            syncs: 0,
            synced: 0,
            next_wake: None,
            closing: false,
            deleted: false,
            byes_at: 0,
            counters: Counters::default(),
        }
    }

    /// A static stream, from the bytes of its `SubscribeStaticRequest`. Refused with `INVALID_ARGUMENT` before anything
    /// is sent when the request is not as API-260, TOPIC-003 and the bounds demand.
    pub fn open_static(
        ctx: &Context<'_>,
        setup: Setup,
        request: Bytes,
    ) -> Result<(Self, Vec<Action>), Status> {
        let update = Update::of_static(request, &setup.limits)?;
        let mut this = Self::new(setup, Kind::Static);
        this.phase = Phase::Accepted;
        this.registry = Some(Registry::default());
        let actions = this.event(ctx, |this, turn| this.take_update(turn, update));
        Ok((this, actions))
    }

    /// The WebSocket was accepted. Storage says so from here on (rule 1).
    pub fn accept(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        self.event(ctx, |this, turn| {
            Fault::assert(this.phase == Phase::Absent, "an object holds one stream, once")?;
            this.phase = Phase::Accepted;
            this.store.open(turn.sql)?;
            this.registry = Some(Registry::default());
            this.output.last_frame = turn.now;
            this.small.updates = Bucket::full(this.setup.limits.updates, turn.now);
            this.small.pings = Bucket::full(this.setup.limits.pings, turn.now);
            turn.actions.push(Action::Alarm { after: this.interval() });
            Ok(())
        })
    }

    /// The header block was read and is good: Started leaves (API-250).
    pub fn start(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        self.event(ctx, |this, turn| {
            if this.phase != Phase::Accepted {
                return Ok(());
            }
            this.phase = Phase::Open;
            let keepalive_interval_ms = this.setup.limits.keepalive_interval_ms;
            let started = subscribe_response::Started { keepalive_interval_ms };
            let response = Some(subscribe_response::Response::Started(started));
            this.send(turn, &SubscribeResponse { response })
        })
    }

    /// Whether the client is still listened to.
    fn reads(&self) -> bool {
        self.phase == Phase::Open && self.updates.end.is_none()
    }

    /// What the socket is to keep while a message of the client is read, if it keeps something else: to be written
    /// before the message is handed over. Were the instance to die in the middle of that, the message would be gone, and
    /// nobody would know: so the next instance fails the stream. The event ends with what the socket keeps after it.
    pub fn reading(&self) -> Option<Vec<u8>> {
        let reads = self.kind == Kind::Bidirectional && !self.is_over() && !self.is_busy();
        reads.then(|| self.attachment(true))
    }

    /// Bytes of the client's stream of gRPC frames, cut anywhere (rule 21).
    pub fn data(&mut self, ctx: &Context<'_>, bytes: Bytes) -> Vec<Action> {
        self.event(ctx, |this, turn| {
            let mut bytes = bytes;
            while this.reads() && !bytes.is_empty() {
                let most = this.setup.limits.max_request_bytes;
                match this.partial.next(turn.sql, &mut this.store, &mut bytes, most) {
                    Ok(Some(frame)) => this.take_frame(turn, &frame)?,
                    Ok(None) => {}
                    Err(Stop::Status(status)) => this.updates.end = Some(status),
                    Err(fault) => return Err(fault),
                }
                this.settle_updates(turn)?;
            }
            Ok(())
        })
    }

    /// The client ended its request stream: accepted Updates are answered, then the stream ends with OK (API-259).
    pub fn half_close(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        let status = if self.partial.is_empty() {
            Status::new(Code::Ok, "")
        } else {
            request::invalid("the request stream ended inside a frame")
        };
        self.fail(ctx, status)
    }

    /// The client sent what the transport refuses. It takes its place behind the Updates that wait; nothing after it is
    /// read (rule 12).
    pub fn fail(&mut self, ctx: &Context<'_>, status: Status) -> Vec<Action> {
        self.event(ctx, |this, _| {
            if matches!(this.phase, Phase::Accepted | Phase::Open) {
                this.updates.end.get_or_insert(status);
            }
            Ok(())
        })
    }

    /// The client is gone: the socket closed or broke, or a write of the body was rejected.
    pub fn closed(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        self.event(ctx, |this, turn| {
            if matches!(this.phase, Phase::Accepted | Phase::Open) {
                this.end(turn);
            }
            Ok(())
        })
    }

    /// What came of [`Action::Control`] number `number`; `None`: no reply in time, or none that can be read.
    pub fn control_reply(
        &mut self,
        ctx: &Context<'_>,
        partition: u32,
        number: u64,
        reply: Option<&ControlReply>,
    ) -> Vec<Action> {
        self.event(ctx, |this, turn| this.controlled(turn, partition, number, reply))
    }

    /// What came of [`Action::Pull`] number `number`, as above.
    pub fn pull_reply(&mut self, ctx: &Context<'_>, number: u64, reply: Option<PullReply>) -> Vec<Action> {
        self.event(ctx, |this, turn| this.pulled(turn, number, reply))
    }

    /// Command `push` of a partition. Idempotent; storage is only read. Answered in this event: the reply leaves
    /// without waiting for anything but the output gate (rule 11).
    pub fn push(&mut self, ctx: &Context<'_>, request: PushRequest) -> (PushReply, Vec<Action>) {
        let mut reply =
            PushReply { incarnation: request.incarnation, number: request.number, ..PushReply::default() };
        let actions = self.event(ctx, |this, turn| this.pushed(turn, request, &mut reply));
        reply.gone = self.is_over();
        (reply, actions)
    }

    /// The object's alarm rang. It may ring late, or twice. A static stream has none.
    pub fn alarm(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        let mut turn = Turn::new(ctx);
        turn.rang = true;
        self.finish_event(turn, |this, turn| match this.phase {
            Phase::Absent => Ok(()),
            Phase::Over => {
                this.alarm_over(turn);
                Ok(())
            }
            Phase::Accepted if this.output.is_idle(turn.now, this.wait()) => {
                Err(Stop::Status(Status::new(Code::DeadlineExceeded, "no header block came in time")))
            }
            Phase::Accepted => {
                turn.actions.push(Action::Alarm { after: this.interval() });
                Ok(())
            }
            Phase::Open => this.alarm_open(turn),
        })
    }

    /// Time has passed.
    pub fn wake(&mut self, ctx: &Context<'_>) -> Vec<Action> {
        self.next_wake = None;
        self.event(ctx, |this, turn| match this.kind {
            Kind::Static if this.phase != Phase::Over => this.beat(turn),
            _ => Ok(()),
        })
    }

    /// [`Action::Sync`] `number` is done.
    pub fn synced(&mut self, ctx: &Context<'_>, number: u64) -> Vec<Action> {
        self.synced = self.synced.max(number);
        self.event(ctx, |_, _| Ok(()))
    }

    /// Static: the oldest write of the body that had not resolved did, so many bytes long. It is what the client has
    /// read, as far as the platform shows (rule 23).
    pub fn written(&mut self, ctx: &Context<'_>, bytes: u64) -> Vec<Action> {
        self.event(ctx, |this, _| match this.phase {
            Phase::Over => Ok(()),
            _ => Ok(this.output.written(bytes)?),
        })
    }

    /// Bytes sent that the client has not acknowledged.
    pub fn unacked(&self) -> u64 {
        self.output.unacked()
    }

    /// Whether there never was a stream: only then can the object [`accept`](Self::accept) one.
    pub fn is_absent(&self) -> bool {
        self.phase == Phase::Absent
    }

    /// The response has ended ([`Action::Finish`]), or there never was a stream. What is left are the partitions'
    /// watches.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Absent | Phase::Over)
    }

    /// The counts since the last call.
    pub fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }
}
