//! The one channel through which a participant learns ids and decisions (rules 1 to 3, 16).

use sealog_proto::internal::{Participant, ReserveReply, ReserveRequest};

use super::doubled;
use crate::{MILLISECOND, Nanos, SECOND};

/// How long a participant with something to confirm waits for traffic that would carry it (rule 16).
const IDLE: Nanos = 50 * MILLISECOND;
/// The first time limit of a request to the sequencer. It doubles with every failure in a row (rule 1), so that a slow
/// sequencer is not asked ever faster.
const FIRST_DEADLINE: Nanos = SECOND;
const LAST_DEADLINE: Nanos = 8 * SECOND;
/// The first pause after a failure; it doubles likewise.
const FIRST_PAUSE: Nanos = 20 * MILLISECOND;
const LAST_PAUSE: Nanos = SECOND;

/// Whether a request is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Now.
    Now,
    /// Not before so many nanoseconds have passed.
    Later(Nanos),
    /// Nothing to ask for, or a request is under way.
    No,
}

/// What a reply is worth (rule 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It answers no current request: drop it.
    Stale,
    /// It answers the current request, but in an epoch that is over: ask its successor.
    Void,
    /// It counts.
    Current,
}

#[derive(Debug)]
pub(crate) struct Channel {
    participant: Participant,
    incarnation: u64,
    /// Number of the last request.
    number: u64,
    /// Number of the request under way.
    in_flight: Option<u64>,
    /// `first_id` of the last reply whose step is done. The output gate makes it durable before a request carries it.
    applied: u64,
    /// The last step took ids, applied decisions, or met a new epoch, and no later request has told the sequencer.
    unconfirmed: bool,
    /// Ask at once, even for no ids.
    nudged: bool,
    /// Failed requests in a row.
    failures: u32,
    /// No request before this time.
    not_before: Nanos,
}

impl Channel {
    /// The channel of a new instance, whose incarnation is stored already (rule 1).
    pub(crate) fn new(participant: Participant, incarnation: u64) -> Self {
        Self {
            participant,
            incarnation,
            number: 0,
            in_flight: None,
            applied: 0,
            unconfirmed: false,
            nudged: false,
            failures: 0,
            not_before: 0,
        }
    }

    /// Asks for another round, which begins after this moment.
    pub(crate) fn nudge(&mut self) {
        self.nudged = true;
    }

    /// Another round is owed, though not at once: the sequencer may not know what was applied here.
    pub(crate) fn owe_confirmation(&mut self) {
        self.unconfirmed = true;
    }

    pub(crate) fn applied(&self) -> u64 {
        self.applied
    }

    /// Whether a request is due; `waiting`: somebody waits for ids.
    pub(crate) fn due(&self, now: Nanos, waiting: bool) -> Due {
        // A longer pause than any is a clock that jumped back.
        let pause = self.not_before.saturating_sub(now);
        if self.in_flight.is_some() {
            Due::No
        } else if (1..=LAST_PAUSE).contains(&pause) {
            Due::Later(pause)
        } else if waiting || self.nudged {
            Due::Now
        } else if self.unconfirmed {
            Due::Later(IDLE)
        } else {
            Due::No
        }
    }

    /// The idle time has passed: what is owed is asked for now.
    pub(crate) fn wake(&mut self) {
        self.nudged |= self.unconfirmed && self.in_flight.is_none();
    }

    /// The next request, under a new number, and how long to wait for its reply.
    pub(crate) fn ask(&mut self, epoch_seen: u64, count: u32) -> (ReserveRequest, Nanos) {
        self.number += 1;
        self.in_flight = Some(self.number);
        self.unconfirmed = false;
        self.nudged = false;
        let request = ReserveRequest {
            participant: Some(self.participant),
            incarnation: self.incarnation,
            number: self.number,
            epoch_seen,
            count,
            applied: self.applied,
        };
        (request, doubled(FIRST_DEADLINE, self.failures, LAST_DEADLINE))
    }

    /// Judges a reply. A current or void one ends the request; a void one asks for the next at once.
    pub(crate) fn take(&mut self, reply: &ReserveReply, epoch_seen: u64) -> Taken {
        let answers = self.in_flight == Some(reply.number);
        if reply.superseded || reply.incarnation != self.incarnation || !answers {
            return Taken::Stale;
        }
        self.in_flight = None;
        self.failures = 0;
        self.not_before = 0;
        if reply.epoch < epoch_seen {
            self.nudged = true;
            return Taken::Void;
        }
        Taken::Current
    }

    /// The step of a current reply is done; `epoch_seen` as it was before. Whatever the step made of the ids, they are
    /// reserved until a later request closes them: so one follows, even when nothing was stored (rule 16).
    pub(crate) fn stepped(&mut self, reply: &ReserveReply, epoch_seen: u64) {
        self.applied = reply.first_id;
        self.nudged |= reply.more;
        self.unconfirmed |= reply.count > 0 || !reply.decided.is_empty() || reply.epoch > epoch_seen;
    }

    /// No usable reply came to request `number`. Whatever was reserved is given up; the next request says so.
    /// `false` when that request is not under way any more.
    pub(crate) fn failed(&mut self, now: Nanos, number: u64) -> bool {
        if self.in_flight != Some(number) {
            return false;
        }
        self.in_flight = None;
        self.nudged = true;
        self.not_before = now + doubled(FIRST_PAUSE, self.failures, LAST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        true
    }
}
