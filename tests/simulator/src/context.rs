//! What every part of a run shares: true time, chance, the faults in force, and the checker.

use std::fmt::Write;

use sealog_log::{Fault, MILLISECOND, Nanos, SECOND};

use crate::history::History;
use crate::message::Node;
use crate::mutator::Mutator;
use crate::random::Random;

/// True time begins here: well after the Unix epoch.
const START: i64 = 1_800_000_000_000_000_000;

/// Which faults a run meets, in thousandths.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    /// Writes wait for a flush of their own; without it every event is durable at once.
    pub(crate) gate: bool,
    /// Whether any of the following happens still.
    pub(crate) active: bool,
    /// Per event of an object: a statement of it fails.
    pub(crate) statement: u64,
    /// Per message.
    pub(crate) drop: u64,
    pub(crate) duplicate: u64,
    /// Per message: it takes up to two minutes.
    pub(crate) late: u64,
    /// Per message: right before or after it, its receiver crashes.
    pub(crate) crash: u64,
    /// Per message: its receiver's clock jumps.
    pub(crate) jump: u64,
    /// Per message to a worker: it dies.
    pub(crate) death: u64,
    /// The longest usual way of a message, in nanoseconds.
    pub(crate) way: Nanos,
    /// The longest usual flush.
    pub(crate) flush: Nanos,
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) now: Nanos,
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    pub(crate) history: History,
    pub(crate) mutator: Mutator,
    /// The last name of a call.
    pub(crate) calls: u64,
    pub(crate) events: u64,
    tracing: Option<String>,
}

impl Context {
    pub(crate) fn new(random: Random, faults: Faults, mutator: Mutator, tracing: bool) -> Self {
        let tracing = tracing.then(String::new);
        let history = History::default();
        Self { now: 0, random, faults, history, mutator, calls: 0, events: 0, tracing }
    }

    pub(crate) fn next_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// A machine's own time.
    pub(crate) fn local(&self, skew: i64) -> Nanos {
        let now = START + i64::try_from(self.now).expect("a run is short") + skew;
        u64::try_from(now).expect("skews are small")
    }

    /// Whether a fault of this rate strikes now.
    pub(crate) fn happens(&mut self, per_mille: u64) -> bool {
        self.faults.active && per_mille > 0 && self.random.chance(per_mille)
    }

    pub(crate) fn flush_delay(&mut self) -> Nanos {
        if self.happens(20) {
            return self.random.between(1, 3_000) * MILLISECOND;
        }
        let longest = if self.faults.active { self.faults.flush } else { 15 * MILLISECOND };
        self.random.between(MILLISECOND, longest)
    }

    /// How long a message is on its way.
    pub(crate) fn way(&mut self) -> Nanos {
        if self.happens(self.faults.late) {
            return self.random.below(120 * SECOND);
        }
        let longest = if self.faults.active { self.faults.way } else { 10 * MILLISECOND };
        self.random.between(MILLISECOND / 2, longest)
    }

    /// An instance ended. Only the failures that were injected are no failure of the run.
    pub(crate) fn fault(&mut self, node: Node, fault: &Fault) {
        self.trace(|| format!("{node:?}: {fault}"));
        let injected = matches!(fault, Fault::Sql(error) if error.0.contains("injected"));
        if !injected {
            self.history.violation(&format!("assertion in {node:?}: {fault}"));
        }
    }

    pub(crate) fn trace(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.tracing {
            let (seconds, rest) = (self.now / SECOND, self.now % SECOND / 1_000);
            writeln!(trace, "{seconds:4}.{rest:06} {}", line()).expect("a String takes everything");
        }
    }

    pub(crate) fn take_trace(&mut self) -> String {
        self.tracing.take().unwrap_or_default()
    }
}
