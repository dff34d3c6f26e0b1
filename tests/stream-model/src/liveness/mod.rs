//! The second model: Pings, Pongs, and output that nobody reads (rule 18).
//!
//! Time passes in ticks of 10 s. Frames with data leave at any tick, up to a rate; the client reads promptly or with any
//! delay up to the Pong wait, and may vanish at any moment; a Pong and the alarm are handled in either order.

mod describe;
mod model;
mod session;

use crate::liveness::session::Session;

/// Ticks without a frame after which a Ping is due (30 s).
pub const KEEPALIVE: u8 = 3;
/// Ticks that a Pong may take (90 s).
pub const PONG_WAIT: u8 = 9;
/// Ticks until the second look at a Pong that is due; in truth 1 s.
pub const SECOND_LOOK: u8 = 1;

/// One broken rule. The holes of the stream protocol that name the same thing are in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mutation {
    /// The alarm sends a Ping only if nothing was sent for a while (hole 33).
    PingOnlyWhenIdle,
    /// A Pong acknowledges also what was sent after its Ping (hole 35).
    PongCreditsAll,
    /// The stream is failed at the deadline, without a look at what is in the inbox (hole 36).
    NoSecondLook,
    /// A Pong is handled without a look at how long nothing was sent (hole 34).
    IdleNotLookedAt,
    /// A Pong is handled without a look at how much was sent since its Ping.
    OutputNotLookedAt,
    /// The alarm is always set to 30 s from now (hole 34).
    FixedAlarm,
    /// Output is not bounded.
    NoBound,
    /// The alarm sends a Ping though one is unanswered.
    TwoPings,

    // Not caught, and hence not a hole.
    /// A Pong with another nonce counts. An honest client has no other.
    AnyNonce,
}

/// One instance of the model. Amounts are in frames, which stand for bytes.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The client reads with any delay that still answers a Ping in time; otherwise at once.
    pub slow: bool,
    /// Unacknowledged output at which a Ping leaves (256 KiB).
    pub ping_at: u8,
    /// Unacknowledged output above which the stream fails (16 MiB).
    pub bound: u8,
    /// Frames with data in one tick, at most.
    pub rate: u8,
    /// The broken rule.
    pub mutation: Option<Mutation>,
}

impl Setting {
    /// With a client that reads at once.
    pub fn prompt(ping_at: u8, bound: u8, rate: u8) -> Self {
        Self { slow: false, ping_at, bound, rate, mutation: None }
    }

    /// With a client that takes its time.
    pub fn slow(ping_at: u8, bound: u8, rate: u8) -> Self {
        Self { slow: true, ..Self::prompt(ping_at, bound, rate) }
    }

    /// The same with a rule broken.
    #[must_use]
    pub fn mutated(mut self, mutation: Mutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    /// Whether this run breaks the protocol in this way.
    pub fn breaks(self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}

/// A frame on its way to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// Anything that is not a Ping.
    Data,
    /// With its nonce.
    Ping(u8),
}

/// How the session ends the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// No Pong in time (API-257).
    DeadlineExceeded,
    /// Too much output that nobody reads.
    ResourceExhausted,
}

/// What can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// 30 s passed without a frame, no Ping was unanswered, and none was sent (API-255).
    KeepaliveLate,
    /// A Ping was sent while one was unanswered (API-257).
    TwoPings,
    /// A client that answers in time was failed (API-257, API-259).
    LiveClientFailed,
    /// A client that had read and answered everything was failed (API-259).
    ReadingClientFailed,
    /// A client vanished, and the stream lives on (API-257).
    DeadClientUnnoticed,
    /// More output than the bound waits for the client.
    OutputUnbounded,
    /// Too much is unacknowledged for history to go on, and no Pong will change that (API-254).
    OutputStuck,
}

/// One state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    session: Session,
    /// Frames that the client has not read. A client that has vanished reads nothing: none are kept for it.
    unread: Vec<Frame>,
    /// Ticks since there was nothing to read.
    unread_for: u8,
    /// Nonces of Pongs that have arrived and wait for their event.
    pongs: Vec<u8>,
    /// The Pongs have waited for a tick.
    pongs_waited: bool,
    /// Frames with data in this tick.
    sent_in_tick: u8,
    /// Ticks since the client vanished and its last Pong was handled; `None` while it lives.
    vanished_for: Option<u8>,
    /// How the stream ended.
    pub ended: Option<Status>,
    /// What broke.
    pub broken: Option<Broken>,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// 10 s pass.
    Tick,
    /// A frame with data leaves.
    Send,
    /// The client reads a frame; its Pong to a Ping arrives.
    Read,
    /// The session handles a Pong.
    Pong,
    /// The session's alarm fires.
    Alarm,
    /// The client vanishes. Its socket looks as before.
    Vanish,
}
