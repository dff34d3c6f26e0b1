//! Scenarios in words, as the tables of the decision page have them.

use std::fmt::{Display, Formatter, Result};

use crate::check::Violation;
use crate::invariants::Invariant;
use crate::names::Topic;
use crate::progress::Stuck;
use crate::scenario::{Scenario, Variant};

fn counted(times: usize, one: &str, many: &str) -> String {
    format!("{times} {}", if times == 1 { one } else { many })
}

impl Display for Scenario {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", self.name)?;
        if self.partitions > 1 {
            write!(f, ", {} partitions", self.partitions)?;
        }
        let on = |rows: &[Topic], topic| rows.iter().filter(|row| **row == topic).count();
        match (on(&self.stored, Topic::A), on(&self.stored, Topic::B)) {
            (0, 0) => {}
            (a, 0) => write!(f, ", {a} stored")?,
            (a, b) => write!(f, ", {a} + {b} stored")?,
        }
        if self.commits > 0 {
            write!(f, ", {}", counted(usize::from(self.commits), "commit", "commits"))?;
            if self.committed.len() > 1 {
                write!(f, " on either")?;
            }
        }
        let faults = [
            (self.faults.repeats, "repeat", "repeats"),
            (self.faults.time_outs, "time-out", "time-outs"),
            (self.faults.crashes, "crash", "crashes"),
            (self.faults.overflows, "overflow", "overflows"),
            (self.faults.hibernations, "hibernation", "hibernations"),
            (self.faults.losses, "loss", "losses"),
        ];
        for (times, one, many) in faults.into_iter().filter(|(times, ..)| *times > 0) {
            write!(f, ", {}", counted(usize::from(times), one, many))?;
        }
        let variants = [
            (self.is(Variant::NoRemoves), "no removes"),
            (self.is(Variant::NumberForgotten), "number forgotten"),
            (self.is(Variant::HintGrows), "hints grow"),
            (self.keeps_inert, "inert messages kept"),
        ];
        for (_, variant) in variants.into_iter().filter(|(on, _)| *on) {
            write!(f, ", {variant}")?;
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
            Self::Api252 => "API-252",
            Self::Api253 => "API-253",
            Self::Api254 => "API-254",
            Self::Api261 => "API-261",
            Self::Assertion(assertion) => assertion,
        })
    }
}

impl Display for Stuck {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Unapplied => f.write_str("an Update is never applied"),
            Self::Undelivered => f.write_str("an envelope never comes"),
            Self::Owed => f.write_str("a partition owes for ever"),
            Self::Behind => f.write_str("the session stays behind"),
            Self::Endless => f.write_str("it never comes to rest"),
            Self::Broken(invariant) => write!(f, "{invariant}, once faults have stopped"),
        }
    }
}
