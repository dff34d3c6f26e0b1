//! Settings in words, as the tables of the decision page have them.

use std::fmt::{Display, Formatter, Result};

use super::{Broken, Setting};

impl Display for Setting {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let client = if self.slow { "slow" } else { "prompt" };
        let Self { ping_at, bound, rate, .. } = self;
        write!(f, "{client} client, Ping at {ping_at}, bound {bound}, rate {rate}")
    }
}

impl Display for Broken {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::KeepaliveLate => "API-255",
            Self::TwoPings => "API-257, two Pings",
            Self::LiveClientFailed => "API-257, a live client is failed",
            Self::ReadingClientFailed => "API-259, a reading client is failed",
            Self::DeadClientUnnoticed => "API-257, a vanished client is not noticed",
            Self::OutputUnbounded => "output is not bounded",
            Self::OutputStuck => "API-254, output never goes on",
        })
    }
}
