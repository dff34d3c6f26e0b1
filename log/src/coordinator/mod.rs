//! The worker's part of a publish that spans participants: stage, decide, apply (rules 9, 14, 15, 18).
//!
//! One [`Coordinator`] runs one publish through one or more attempts, each under its own txid. It keeps nothing
//! durable: a worker may die at any point, and the participants find out for themselves what became of the attempt.

mod attempt;

use bytes::Bytes;
use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::{
    ApplyReply, ApplyRequest, Claim, DecideReply, DecideRequest, EnvelopeKey, NewEnvelope, Participant,
    StageReply, StageRequest, WithdrawRequest,
};

use crate::{MILLISECOND, Nanos, SECOND, Txid};
use attempt::{Applying, Deciding, Next, Staging};

/// How long after its start an attempt can still be decided. Longer than any worker waits, so that a decision is never
/// refused for lateness; and well inside the sequencer's 120 s, so that clocks may differ by half a minute and more.
const ATTEMPT: Nanos = 60 * SECOND;
/// The pause after a conflict, at most; it doubles. A random part of it is taken, so that rivals do not return in step.
const FIRST_PAUSE: Nanos = 20 * MILLISECOND;
const LAST_PAUSE: Nanos = 500 * MILLISECOND;

/// What one participant is to keep.
#[derive(Clone, Debug)]
pub struct Part {
    /// Who.
    pub participant: Participant,
    /// At a log partition.
    pub envelopes: Vec<NewEnvelope>,
    /// At a Directory.
    pub claims: Vec<Claim>,
}

/// What the shell does for the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send `stage`; report with [`Coordinator::staged`].
    Stage(Participant, StageRequest),
    /// Send `withdraw`, again until it is answered or the deadline has passed; report with [`Coordinator::withdrawn`].
    Withdraw(Participant, WithdrawRequest),
    /// Send `decide` to the sequencer; report with [`Coordinator::decided`].
    Decide(DecideRequest),
    /// Send `apply`; report with [`Coordinator::applied`].
    Apply(Participant, ApplyRequest),
    /// Call [`Coordinator::woke`] after so many nanoseconds.
    Sleep(Nanos),
    /// The publish has ended. Nothing follows.
    Done(Outcome),
}

/// How a publish ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Stored, all of it: one entry per part, in order, each with the metadata of its envelopes as the rows say.
    Stored(Vec<Vec<EnvelopeMeta>>),
    /// Nothing was stored: an expected head is not the head any more (API-232).
    HeadMoved,
    /// Nothing was stored: another inbox holds a handle (API-296).
    Taken,
    /// Nothing was stored, or it is not known: the same bytes may be sent again (API-224).
    Unavailable,
    /// The deadline passed. It may have been stored (API-224).
    DeadlineExceeded,
}

#[derive(Debug)]
enum State {
    Staging(Staging),
    /// Between two attempts.
    Pausing,
    Deciding(Deciding),
    Applying(Applying),
    Done,
}

/// Randomness for one attempt.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    /// Makes the txid; never used again.
    pub txid: [u8; 16],
    /// From 0 to 1: the part of the pause that is taken.
    pub part: f64,
}

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Coordinator {
    parts: Vec<Part>,
    deadline: Nanos,
    /// Conflicts met so far. After the first, participants are staged one after the other, in ascending order: of any
    /// set of rivals one then gets through (rule 18).
    conflicts: u32,
    random: Random,
    state: State,
}

impl Coordinator {
    /// Begins. `parts` are one per participant.
    pub fn new(mut parts: Vec<Part>, now: Nanos, deadline: Nanos, random: Random) -> (Self, Vec<Action>) {
        parts.sort_by_key(|part| (part.participant.kind, part.participant.index));
        let mut this = Self { parts, deadline, conflicts: 0, random, state: State::Pausing };
        let actions = this.begin(now);
        (this, actions)
    }

    /// A participant's verdict; `None` when it gave none.
    pub fn staged(&mut self, now: Nanos, from: Participant, reply: Option<&StageReply>) -> Vec<Action> {
        let State::Staging(staging) = &mut self.state else { return Vec::new() };
        let next = staging.staged(from, reply);
        self.proceed(now, next)
    }

    /// A withdrawal was answered, or given up: the participant finds out for itself.
    pub fn withdrawn(&mut self, now: Nanos, from: Participant) -> Vec<Action> {
        let State::Staging(staging) = &mut self.state else { return Vec::new() };
        let next = staging.withdrawn(from);
        self.proceed(now, next)
    }

    /// The sequencer's word; `None` when it gave none. Only a repeat of the question can then tell.
    pub fn decided(&mut self, now: Nanos, reply: Option<DecideReply>) -> Vec<Action> {
        let State::Deciding(deciding) = &self.state else { return Vec::new() };
        match reply {
            Some(DecideReply { decided: true }) => {
                let applying = deciding.decided();
                let actions = applying.ask(&self.parts);
                self.state = State::Applying(applying);
                actions
            }
            // A participant asked first and got it aborted: it had waited too long. Nothing is stored, and what is still
            // staged elsewhere goes when its participant asks.
            Some(DecideReply { decided: false }) => self.end(Outcome::Unavailable),
            None if now >= self.deadline => self.end(Outcome::DeadlineExceeded),
            None => vec![Action::Decide(deciding.request())],
        }
    }

    /// A participant has applied; `None` when it gave no answer: it is asked again.
    pub fn applied(&mut self, now: Nanos, from: Participant, reply: Option<ApplyReply>) -> Vec<Action> {
        let State::Applying(applying) = &mut self.state else { return Vec::new() };
        match reply {
            // Decided and aborted at once: the participant broke an assertion. The outcome is not ours to tell.
            Some(reply) if reply.aborted => self.end(Outcome::Unavailable),
            Some(reply) => match applying.applied(from, reply.metas, &self.parts) {
                Some(metas) => self.end(Outcome::Stored(metas)),
                None => Vec::new(),
            },
            None if now >= self.deadline => self.end(Outcome::DeadlineExceeded),
            None => applying.ask_again(from, &self.parts).into_iter().collect(),
        }
    }

    /// The pause is over: another attempt.
    pub fn woke(&mut self, now: Nanos, random: Random) -> Vec<Action> {
        if !matches!(self.state, State::Pausing) {
            return Vec::new();
        }
        self.random = random;
        if now >= self.deadline { self.end(Outcome::Unavailable) } else { self.begin(now) }
    }

    /// The order in which the caller's parts stand in [`Outcome::Stored`].
    pub fn participants(&self) -> impl Iterator<Item = Participant> {
        self.parts.iter().map(|part| part.participant)
    }

    fn begin(&mut self, now: Nanos) -> Vec<Action> {
        let txid = Txid::new(self.random.txid, now + ATTEMPT);
        let (staging, actions) = Staging::begin(txid, &self.parts, self.conflicts > 0);
        self.state = State::Staging(staging);
        actions
    }

    fn proceed(&mut self, now: Nanos, next: Next) -> Vec<Action> {
        match next {
            Next::Wait => Vec::new(),
            Next::Do(actions) => actions,
            Next::Decide(deciding) => {
                let actions = vec![Action::Decide(deciding.request())];
                self.state = State::Deciding(deciding);
                actions
            }
            Next::Look(applying) => {
                let actions = applying.ask(&self.parts);
                self.state = State::Applying(applying);
                actions
            }
            Next::End(outcome) => self.end(outcome),
            Next::Retry => self.pause(now),
        }
    }

    fn pause(&mut self, now: Nanos) -> Vec<Action> {
        if now >= self.deadline {
            return self.end(Outcome::Unavailable);
        }
        let most = FIRST_PAUSE.saturating_mul(1 << self.conflicts.min(16)).min(LAST_PAUSE);
        self.conflicts = self.conflicts.saturating_add(1);
        self.state = State::Pausing;
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let pause = (most as f64 * self.random.part) as Nanos; // from 0 to `most`, far below 2^53
        vec![Action::Sleep(pause)]
    }

    fn end(&mut self, outcome: Outcome) -> Vec<Action> {
        self.state = State::Done;
        vec![Action::Done(outcome)]
    }
}

fn keys(part: &Part) -> Vec<EnvelopeKey> {
    let key = |envelope: &NewEnvelope| EnvelopeKey {
        topic: envelope.topic.clone(),
        hash: Bytes::clone(&envelope.hash),
    };
    part.envelopes.iter().map(key).collect()
}
