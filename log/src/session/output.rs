//! What was sent and not acknowledged, Pings, and the alarm (rule 18).
//!
//! The platform does not show how much a socket has buffered. So a Pong stands for what was sent before its Ping, and
//! bytes are counted until then.

use std::collections::VecDeque;

use crate::{Fault, Nanos, SECOND};

/// So much unacknowledged output asks for a Ping.
const PING_BYTES: u64 = 256 << 10;
/// History waits above it.
const HISTORY_BYTES: u64 = 4 << 20;
/// A stream holds no more.
const STREAM_BYTES: u64 = 16 << 20;
/// All streams of an isolate together: above it, each holds no more than [`HISTORY_BYTES`] (trap 37).
const ISOLATE_BYTES: u64 = 48 << 20;
/// How long after its deadline a Pong is looked for once more: it may be in the inbox already (trap 36).
const SECOND_LOOK: Nanos = SECOND;
/// Writes of a body that were begun within such a time are timed as one.
const TICK: Nanos = SECOND;

/// A Ping that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ping {
    pub(super) nonce: u64,
    pub(super) at: Nanos,
    /// Bytes sent before it.
    pub(super) sent: u64,
    /// Its Pong is overdue and was looked for once.
    pub(super) late: bool,
}

/// Writes of a body that have not resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writes {
    since: Nanos,
    bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) sent: u64,
    /// What had been sent when the last answered Ping left; static: what was written.
    pub(super) acked: u64,
    pub(super) last_frame: Nanos,
    /// Of the last Ping.
    pub(super) nonce: u64,
    pub(super) ping: Option<Ping>,
    /// Oldest first.
    pub(super) writes: VecDeque<Writes>,
}

/// What an alarm asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A Ping is out and in time.
    Fine,
    /// None is out: send one.
    Ping,
    /// Its Pong is overdue; look again after so long.
    Again(Nanos),
    /// It was missing again: the client is gone (API-257).
    Missed,
}

impl Output {
    pub(super) fn unacked(&self) -> u64 {
        self.sent.saturating_sub(self.acked)
    }

    /// Counts a frame that is about to be sent; `false` when the stream may not hold it. One frame may always be out,
    /// however long it is.
    pub(super) fn admit(&mut self, now: Nanos, bytes: u64, elsewhere: u64) -> bool {
        let unacked = self.unacked();
        let bound = if elsewhere + unacked > ISOLATE_BYTES { HISTORY_BYTES } else { STREAM_BYTES };
        if unacked > 0 && unacked + bytes > bound {
            return false;
        }
        self.sent += bytes;
        self.last_frame = now;
        true
    }

    /// Whether a page of history may be asked for, while `reserved` bytes of others are under way.
    pub(super) fn has_room(&self, reserved: u64) -> bool {
        self.unacked() + reserved <= HISTORY_BYTES || (self.unacked() == 0 && reserved == 0)
    }

    /// Whether the unacknowledged output asks for a Ping.
    pub(super) fn wants_ping(&self) -> bool {
        self.ping.is_none() && self.unacked() >= PING_BYTES
    }

    /// The nonce of the next Ping, which counts as sent after everything before it. One is out at a time.
    pub(super) fn ping(&mut self, now: Nanos) -> Result<u64, Fault> {
        Fault::assert(self.ping.is_none(), "one Ping is out at a time")?;
        self.nonce += 1;
        self.ping = Some(Ping { nonce: self.nonce, at: now, sent: self.sent, late: false });
        Ok(self.nonce)
    }

    /// A Pong; `true` when it answers the Ping that is out. Any other is ignored.
    pub(super) fn pong(&mut self, nonce: u64) -> bool {
        let Some(ping) = self.ping.take_if(|ping| ping.nonce == nonce) else { return false };
        self.acked = ping.sent;
        true
    }

    /// Whether no frame was sent for so long. A last frame in the future is a clock that jumped back.
    pub(super) fn is_idle(&self, now: Nanos, interval: Nanos) -> bool {
        now >= self.last_frame + interval || now < self.last_frame
    }

    /// The alarm rang: what of the Ping?
    pub(super) fn look(&mut self, now: Nanos, wait: Nanos) -> Look {
        match &mut self.ping {
            None => Look::Ping,
            Some(ping) if now < ping.at => {
                ping.at = now; // the clock jumped back: wait anew
                Look::Fine
            }
            Some(ping) if now < ping.at + wait => Look::Fine,
            Some(ping) if !ping.late => {
                ping.late = true;
                Look::Again(SECOND_LOOK)
            }
            Some(_) => Look::Missed,
        }
    }

    /// After how long the alarm is to ring next: so that no frame has to set it, and no keepalive is late (trap 34).
    pub(super) fn next_alarm(&self, now: Nanos, interval: Nanos, wait: Nanos) -> Nanos {
        let idle = if self.is_idle(now, interval) { interval } else { self.last_frame + interval - now };
        let deadline = self.ping.map_or(Nanos::MAX, |ping| (ping.at + wait).saturating_sub(now));
        idle.min(deadline).max(1)
    }

    /// A write of a static stream's body was begun.
    pub(super) fn writing(&mut self, now: Nanos, bytes: u64) {
        match self.writes.back_mut() {
            Some(last) if now.saturating_sub(last.since) < TICK => last.bytes += bytes,
            _ => self.writes.push_back(Writes { since: now, bytes }),
        }
    }

    /// So many bytes of the oldest writes have resolved.
    pub(super) fn written(&mut self, bytes: u64) -> Result<(), Fault> {
        Fault::assert(bytes <= self.unacked(), "what is written was sent")?;
        self.acked += bytes;
        let mut left = bytes;
        while let Some(first) = self.writes.front_mut() {
            if first.bytes > left {
                first.bytes -= left;
                break;
            }
            left -= first.bytes;
            self.writes.pop_front();
        }
        Ok(())
    }

    /// When the oldest write that has not resolved was begun.
    pub(super) fn oldest_write(&self) -> Option<Nanos> {
        self.writes.front().map(|writes| writes.since)
    }

    /// Assertion (i): `longest` is the longest frame.
    pub(super) fn check(&self, longest: u64) -> Result<(), Fault> {
        let bounded = self.acked <= self.sent && self.sent - self.acked <= STREAM_BYTES + longest;
        Fault::assert(bounded, "unacknowledged output is bounded")
    }
}
