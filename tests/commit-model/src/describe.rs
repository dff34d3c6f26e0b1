//! Scenarios in words, as the tables of the decision page have them.

use std::fmt::{Display, Formatter, Result};

use crate::check::Violation;
use crate::invariants::Invariant;
use crate::progress::Stuck;
use crate::scenario::{Gate, Scenario};

impl Display for Scenario {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let faults = [
            (self.faults.sequencer_crashes, "sequencer crash"),
            (self.faults.participant_crashes, "participant crash"),
            (self.faults.repeats, "repeat"),
            (self.faults.time_outs, "time-out"),
            (self.faults.resolves, "resolve"),
            (self.faults.settles, "settle"),
            (self.faults.worker_time_outs, "worker time-out"),
        ];
        write!(f, "{}", self.name)?;
        for (times, fault) in faults.into_iter().filter(|(times, _)| *times > 0) {
            let plural = match (times, fault) {
                (1, _) => "",
                (_, "sequencer crash" | "participant crash") => "es",
                _ => "s",
            };
            write!(f, ", {times} {fault}{plural}")?;
        }
        if self.attempts > 1 {
            write!(f, ", {} attempts", self.attempts)?;
        }
        if self.list_limit < usize::MAX {
            write!(f, ", lists cut to {}", self.list_limit)?;
        }
        if self.clean_mark {
            write!(f, ", clean mark")?;
        }
        if self.gate == Gate::Explicit {
            write!(f, ", explicit gate")?;
        }
        Ok(())
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Broken(invariant) => write!(f, "{invariant}"),
            Self::Stuck(stuck) => write!(f, "progress: {stuck}"),
        }
    }
}

impl Display for Invariant {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::Api201 => "API-201",
            Self::Api202 => "API-202",
            Self::Api203 => "API-203",
            Self::Api220 => "API-220",
            Self::Api222 => "API-222",
            Self::Api232 => "API-232",
            Self::Api287 => "API-287",
            Self::Api288 => "API-288",
            Self::Api289 => "API-289",
            Self::Api291 => "API-291",
            Self::Api296 => "API-296",
            Self::HalfLost => "API-220, half lost",
            Self::Assertion(assertion) => assertion,
        })
    }
}

impl Display for Stuck {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Staged => f.write_str("a staged transaction never ends"),
            Self::Queued => f.write_str("a queued publish never ends"),
            Self::Boundary => f.write_str("the boundary never reaches the newest id"),
            Self::NotApplied => f.write_str("a decided transaction is never applied"),
            Self::Unanswered => f.write_str("a worker is never answered"),
            Self::Endless => f.write_str("it never comes to rest"),
            Self::Broken(invariant) => write!(f, "{invariant}, once faults have stopped"),
        }
    }
}
