//! A deterministic simulator of the commit protocol.
//!
//! The production state machines run on the production SQL, in one thread, in true time that the simulator owns. From
//! a seed follow a deployment, a workload, and what goes wrong: messages that are late, lost, repeated or out of order,
//! objects that crash around each durable write, statements that fail, clocks that jump, workers that die. A checker
//! holds the history to the contract. The same seed gives the same run.

use std::fmt;

mod context;
mod history;
mod host;
mod identifiers;
mod machine;
mod message;
mod mutation;
mod mutator;
mod random;
mod search;
mod storage;
pub mod streams;
mod verdict;
mod worker;
mod workload;
mod world;

pub use mutation::Mutation;
pub use search::{Found, search};

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What went wrong first, with the requirement that it breaks.
    pub broken: Option<String>,
    /// Every event in words, if asked for.
    pub trace: String,
    /// Events that happened.
    pub events: u64,
    /// Rows stored.
    pub rows: u64,
    /// Publishes that were acknowledged.
    pub successes: u64,
    /// Attempts of publishes that span participants.
    pub transactions: u64,
    /// Transactions decided.
    pub decided: u64,
    /// Transactions aborted by a participant's question.
    pub aborted: u64,
    /// Lookups that were answered.
    pub lookups: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, rows, successes, transactions, decided, aborted, lookups, .. } = self;
        write!(f, "{events} events, {rows} rows, {successes} publishes acknowledged, ")?;
        write!(
            f,
            "{transactions} transactions, {decided} decided, {aborted} aborted by a question, {lookups} lookups"
        )
    }
}

/// Runs one seed, perhaps with a deliberate mistake in it.
pub fn run(seed: u64, mutation: Option<Mutation>, tracing: bool) -> Report {
    world::World::new(seed, mutation, tracing).run()
}
