//! A deterministic simulator of the streams.
//!
//! The production sessions and log partitions run on the production SQL, and a model of a client stands at the end of
//! each stream and holds it to the contract. From a seed follow the topics, what is published, what the clients do, and
//! what goes wrong: messages between objects that are late, lost, repeated or out of order, partitions that crash,
//! sessions that hibernate at any quiet moment or lose their memory at any moment while the socket stays, flushes and
//! statements that fail, clients that vanish or do not read. The same seed gives the same run.

mod client;
mod mutation;
mod object;
mod partition;
mod people;
mod platform;
mod run;
mod session;
mod shape;
mod stream;
mod wire;
mod world;

use std::fmt;

pub use mutation::StreamMutation;

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// What went wrong first, with the requirement that it breaks.
    pub broken: Option<String>,
    /// Every event in words, if asked for.
    pub trace: String,
    /// Events that happened.
    pub events: u64,
    /// Rows stored.
    pub rows: u64,
    /// Streams opened.
    pub streams: u64,
    /// Envelopes that clients got.
    pub envelopes: u64,
    /// Applied frames that clients got.
    pub applied: u64,
    /// Sessions that hibernated and came back.
    pub hibernations: u64,
    /// Sessions whose memory was lost under a live socket.
    pub losses: u64,
    /// Crashes of partitions.
    pub crashes: u64,
    /// Streams that ended as failures.
    pub failures: u64,
    /// What the sessions counted.
    pub counters: sealog_log::session::Counters,
}

impl fmt::Display for StreamReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, rows, streams, envelopes, applied, .. } = self;
        let Self { hibernations, losses, crashes, failures, counters, .. } = self;
        write!(
            f,
            "{events} events, {rows} rows, {streams} streams, {envelopes} envelopes, {applied} Applied, "
        )?;
        write!(f, "{hibernations} hibernations, {losses} losses of memory, {crashes} crashes, ")?;
        write!(f, "{failures} failures; {counters:?}")
    }
}

impl StreamReport {
    /// Adds what another run came to.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.rows += other.rows;
        self.streams += other.streams;
        self.envelopes += other.envelopes;
        self.applied += other.applied;
        self.hibernations += other.hibernations;
        self.losses += other.losses;
        self.crashes += other.crashes;
        self.failures += other.failures;
        self.counters.add(&other.counters);
    }
}

/// Runs one seed, perhaps with a deliberate mistake in it.
pub fn run(seed: u64, mutation: Option<StreamMutation>, tracing: bool) -> StreamReport {
    world::World::new(seed, mutation, tracing).run()
}
