//! The sessions that watch topics of this partition, and what they are owed.
//!
//! A session registers with [`Watch::control`]: its watch is durable before it hears of it, and the heads that it hears
//! were read in that same event. From then on every row that a step stores on the topic is *owed* to it, in a push that
//! says which rows lie between two heads: a fact about the log, which may be lost, repeated or late without harm. A debt
//! ends only when the session acknowledges it. Its durable waker is the object's alarm, set in the write of the rows.
//!
//! One push per session is under way; later rows join its queue. Nothing here waits: a session that is slow, failing
//! or dead costs the others nothing but a slot among the calls.
//!
//! "Rule n" in comments means the stream protocol's rules.

mod control;
mod debts;
mod index;
mod lines;
mod loading;
mod news;
mod pull;
mod push;
mod recent;
mod rows;
mod sessions;

use crate::key::Key;
use debts::{Debts, Owed};
use index::Index;
use lines::{Class, Lines, Place};
use loading::Loading;
use sessions::{Sessions, Slot};

use crate::{Fault, Nanos, SECOND, Sql};

pub use news::{Gathered, News};
pub use pull::pull;
pub(super) use rows::MIGRATION;

/// How soon the alarm rings while something is owed (rule 7): the longest silence after a partition is lost.
const WAKER: Nanos = 2 * SECOND;
/// How often sessions that were not heard for a [`DAY`] are looked for (rule 22).
const HOUR: Nanos = 3_600 * SECOND;
const DAY: Nanos = 24 * HOUR;
/// A topic with more watchers is wide (rule 9): its pushes let others go first.
const NARROW: usize = 64;

/// How often things happened that ought to be rare, beside how often what is common did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pushes sent.
    pub pushes: u64,
    /// Topics told in them.
    pub items: u64,
    /// Of these, those without their rows: only the head.
    pub hints: u64,
    /// Pushes that brought no answer.
    pub failed: u64,
    /// Watches that a session said it does not have.
    pub unwanted: u64,
    /// Sessions that said they are over.
    pub gone: u64,
    /// Watches that a session had and this partition lacked.
    pub repaired: u64,
}

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Watch {
    partition: u32,
    incarnation: u64,
    loading: Loading,
    /// Every own id up to here has been acknowledged by whoever watched it, as the last step wrote it (rule 8).
    mark: u64,
    index: Index,
    sessions: Sessions,
    debts: Debts,
    lines: Lines,
    /// Number of the last push.
    last_push: u64,
    /// Calls since the last event of the platform.
    calls: usize,
    /// When silent sessions were last looked for.
    looked_at: Nanos,
    counters: Counters,
}

impl Watch {
    /// A new instance of partition `partition`, under its stored incarnation, with the mark that is stored. Reads
    /// nothing: the first [`alarm`](Self::alarm) begins to.
    pub fn new(partition: u32, incarnation: u64, mark: u64) -> Self {
        Self {
            partition,
            incarnation,
            loading: Loading::Rows(0),
            mark,
            index: Index::default(),
            sessions: Sessions::default(),
            debts: Debts::default(),
            lines: Lines::default(),
            last_push: 0,
            calls: 0,
            looked_at: 0,
            counters: Counters::default(),
        }
    }

    /// What happened in this instance so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Watches, watched topics and sessions.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.index.watches(), self.index.topics(), self.sessions.len())
    }

    /// The instance starts, or the alarm rang: an event of its own, with a new budget of calls. Loads a piece, and looks
    /// for sessions that were silent for a day. [`pump`](Self::pump) follows.
    pub fn alarm(&mut self, sql: &dyn Sql, now: Nanos) -> Result<(), Fault> {
        self.calls = 0;
        if self.can_load() {
            self.load(sql)?;
        }
        if self.knows_watchers() && now.abs_diff(self.looked_at) >= HOUR {
            self.looked_at = now;
            self.probe_silent(now)?;
        }
        Ok(())
    }

    /// A step has stored these rows: its watchers are owed them (rule 7). [`pump`](Self::pump) follows, and
    /// [`owes`](Self::owes) says when the alarm is to ring: both in the same event.
    ///
    /// `mark` is what the step wrote.
    pub fn stored(&mut self, gathered: Gathered, mark: u64) -> Result<(), Fault> {
        self.mark = mark;
        for run in gathered.0 {
            let (key, previous) = (run.topic, run.previous);
            let (Some((first, ..)), Some((last, ..))) = (run.rows.first(), run.rows.last()) else { continue };
            let (low, head) = (*first, *last);
            self.debts.recent.add(run)?;
            for watcher in self.index.watchers(&key).to_vec() {
                // Suspects get hints only: they must not hold rows in memory.
                let healthy = self.sessions.get(watcher.session)?.failures == 0;
                let from = healthy.then_some(previous);
                let owed = Owed { generation: watcher.generation, from, head, low };
                self.owe(watcher.session, key, owed)?;
            }
            self.debts.recent.drop_unwanted(&key);
        }
        Ok(())
    }

    /// After how long the object's alarm is to ring at the latest, if none rings sooner. Asked at the end of every
    /// event, and what it says is set in the writes of that event.
    pub fn owes(&self, now: Nanos) -> Option<Nanos> {
        if self.can_load() || (self.is_spent() && self.lines.somebody_waits()) {
            return Some(0);
        }
        if !self.is_loaded() || self.lines.somebody_waits() || self.lines.is_calling() {
            return Some(WAKER);
        }
        if let Some(due) = self.lines.next_suspect() {
            return Some(due.saturating_sub(now).min(lines::MAX_PAUSE));
        }
        (self.sessions.len() > 0).then_some(HOUR)
    }

    /// Owes a session something, and puts it in line.
    fn owe(&mut self, slot: Slot, key: Key, owed: Owed) -> Result<(), Fault> {
        Fault::assert(owed.low > self.mark, "what is owed lies above the mark")?;
        self.debts.owe(slot, key, owed);
        let class = if self.is_narrow(&key) { Class::Narrow } else { Class::Wide };
        let session = self.sessions.get_mut(slot)?;
        match session.place {
            Place::Idle if session.failures > 0 => {
                session.place = self.lines.enter_suspect(slot, session.due);
            }
            Place::Idle => session.place = self.lines.enter(slot, class),
            Place::Waiting(Class::Wide, _) if class == Class::Narrow => {
                self.lines.leave(slot, session.place);
                session.place = self.lines.enter(slot, class);
            }
            Place::Waiting(..) | Place::Flying => {}
        }
        Ok(())
    }

    /// Asks those that were silent for a day whether they still live, with an empty push: a call that was delayed past
    /// the end of its session leaves a watch that no quiet topic would ever question (trap 30).
    fn probe_silent(&mut self, now: Nanos) -> Result<(), Fault> {
        let slots: Vec<Slot> = self.sessions.slots().collect();
        for slot in slots {
            let session = self.sessions.get_mut(slot)?;
            if session.place == Place::Idle && now.saturating_sub(session.heard) >= DAY {
                session.probe = true;
                session.place = self.lines.enter(slot, Class::Wide);
            }
        }
        Ok(())
    }

    fn is_narrow(&self, key: &Key) -> bool {
        self.index.watchers(key).len() <= NARROW
    }
}
