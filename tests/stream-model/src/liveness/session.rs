//! The session's side of rule 18. All of it lives in the socket's attachment, so hibernation changes nothing.

use super::{Frame, KEEPALIVE, Mutation, PONG_WAIT, SECOND_LOOK, Setting, Status};

/// What the session knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session {
    /// Sent, minus what had been sent when the last answered Ping left. A Ping itself counts nothing.
    pub(super) unacked: u8,
    /// Sent since the last Ping left.
    since_ping: u8,
    /// The Ping that is unanswered.
    pub(super) ping: Option<Ping>,
    /// The nonce of the last Ping. Two values do: at most one Ping is under way.
    nonce: u8,
    /// The Pong is overdue and was looked for once.
    looked: bool,
    /// Ticks since the last frame.
    pub(super) idle: u8,
    /// Ticks until the alarm fires.
    pub(super) alarm: u8,
}

/// A Ping that is unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ping {
    nonce: u8,
    /// Ticks since it left.
    age: u8,
}

/// What one event does to the outside.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Frames, in order.
    pub(super) frames: Vec<Frame>,
    /// The end of the stream.
    pub(super) end: Option<Status>,
    /// A Ping left while one was unanswered.
    pub(super) two_pings: bool,
}

/// No wait in the model is longer. What is older stays at this age, so that the states are finite.
const OLDEST: u8 = 20;

impl Session {
    /// The stream has just begun, with Started.
    pub(super) fn new() -> Self {
        Self { unacked: 0, since_ping: 0, ping: None, nonce: 0, looked: false, idle: 0, alarm: KEEPALIVE }
    }

    /// 10 s pass.
    pub(super) fn tick(&mut self) {
        self.alarm -= 1;
        self.idle = (self.idle + 1).min(OLDEST);
        if let Some(ping) = &mut self.ping {
            ping.age = (ping.age + 1).min(OLDEST);
        }
    }

    /// A frame with data is to leave.
    pub(super) fn send(&mut self, setting: Setting, output: &mut Output) {
        if self.unacked >= setting.bound && !setting.breaks(Mutation::NoBound) {
            output.end = Some(Status::ResourceExhausted);
            return;
        }
        self.unacked = (self.unacked + 1).min(setting.bound + 1);
        self.since_ping = (self.since_ping + 1).min(setting.bound + 1);
        self.idle = 0;
        output.frames.push(Frame::Data);
        if self.unacked >= setting.ping_at {
            self.ping_unless_out(output);
        }
    }

    /// A Pong. Only the nonce of the unanswered Ping counts, and it acknowledges what was sent before that Ping.
    pub(super) fn pong(&mut self, setting: Setting, nonce: u8, output: &mut Output) {
        let counts = self.ping.is_some_and(|ping| ping.nonce == nonce || setting.breaks(Mutation::AnyNonce));
        if !counts {
            return;
        }
        self.ping = None;
        self.looked = false;
        self.unacked = if setting.breaks(Mutation::PongCreditsAll) { 0 } else { self.since_ping };
        let much = self.unacked >= setting.ping_at && !setting.breaks(Mutation::OutputNotLookedAt);
        let idle = self.idle >= KEEPALIVE && !setting.breaks(Mutation::IdleNotLookedAt);
        if much || idle {
            self.ping_unless_out(output);
        }
    }

    /// The alarm. It alone sets the next one: no frame costs a write.
    pub(super) fn alarm(&mut self, setting: Setting, output: &mut Output) {
        match self.ping {
            Some(ping) if ping.age >= PONG_WAIT => {
                if self.looked || setting.breaks(Mutation::NoSecondLook) {
                    output.end = Some(Status::DeadlineExceeded);
                }
                self.looked = true;
                self.alarm = SECOND_LOOK;
                return;
            }
            Some(_) if setting.breaks(Mutation::TwoPings) => self.ping(output),
            None if self.idle < KEEPALIVE && setting.breaks(Mutation::PingOnlyWhenIdle) => {}
            _ => self.ping_unless_out(output),
        }
        let ahead = KEEPALIVE.saturating_sub(self.idle);
        self.alarm = if ahead > 0 && !setting.breaks(Mutation::FixedAlarm) { ahead } else { KEEPALIVE };
        if let Some(ping) = self.ping {
            self.alarm = self.alarm.min(PONG_WAIT - ping.age);
        }
    }

    fn ping_unless_out(&mut self, output: &mut Output) {
        if self.ping.is_none() {
            self.ping(output);
        }
    }

    fn ping(&mut self, output: &mut Output) {
        output.two_pings |= self.ping.is_some();
        self.nonce = 1 - self.nonce;
        self.ping = Some(Ping { nonce: self.nonce, age: 0 });
        self.since_ping = 0;
        self.idle = 0;
        output.frames.push(Frame::Ping(self.nonce));
    }
}
