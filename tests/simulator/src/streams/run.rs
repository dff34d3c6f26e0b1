//! What every part of a run shares: true time, chance, the faults in force, and what was found.

use std::fmt::Write;

use sealog_log::{Fault, MILLISECOND, Nanos, SECOND};

use super::shape::Faults;
use super::{StreamMutation, StreamReport};
use crate::random::Random;

/// True time begins here: well after the Unix epoch.
const START: i64 = 1_800_000_000_000_000_000;

#[derive(Debug)]
pub(super) struct Run {
    pub(super) now: Nanos,
    pub(super) random: Random,
    pub(super) faults: Faults,
    pub(super) mutation: Option<StreamMutation>,
    pub(super) report: StreamReport,
    tracing: bool,
}

impl Run {
    pub(super) fn new(
        random: Random,
        faults: Faults,
        mutation: Option<StreamMutation>,
        tracing: bool,
    ) -> Self {
        Self { now: 0, random, faults, mutation, report: StreamReport::default(), tracing }
    }

    pub(super) fn is(&self, mutation: StreamMutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// An object's own time.
    pub(super) fn local(&self, skew: i64) -> Nanos {
        let now = START + i64::try_from(self.now).expect("a run is short") + skew;
        u64::try_from(now).expect("skews are small")
    }

    /// Whether a fault of this rate, in thousandths, strikes now.
    pub(super) fn happens(&mut self, per_mille: u64) -> bool {
        self.faults.active && per_mille > 0 && self.random.chance(per_mille)
    }

    pub(super) fn flush_delay(&mut self) -> Nanos {
        if self.happens(20) {
            return self.random.between(1, 3_000) * MILLISECOND;
        }
        self.random.between(MILLISECOND, 15 * MILLISECOND)
    }

    /// How long a message between objects is on its way.
    pub(super) fn way(&mut self) -> Nanos {
        if self.happens(self.faults.late) {
            return self.random.below(90 * SECOND);
        }
        self.random.between(MILLISECOND / 2, 20 * MILLISECOND)
    }

    /// The contract, or an assertion, is broken.
    pub(super) fn violation(&mut self, what: &str) {
        self.trace(|| format!("BROKEN: {what}"));
        self.report.broken.get_or_insert_with(|| what.to_owned());
    }

    /// An instance ended. Only the failures that were injected are no failure of the run.
    pub(super) fn fault(&mut self, who: &str, fault: &Fault) {
        let injected = matches!(fault, Fault::Sql(error) if error.0.contains("injected"));
        self.trace(|| format!("{who}: {fault}"));
        if !injected {
            self.violation(&format!("assertion in {who}: {fault}"));
        }
    }

    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        if self.tracing {
            let (seconds, rest) = (self.now / SECOND, self.now % SECOND / 1_000);
            writeln!(self.report.trace, "{seconds:4}.{rest:06} {}", line())
                .expect("a String takes everything");
        }
    }
}
