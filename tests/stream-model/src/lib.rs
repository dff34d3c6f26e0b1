//! The stream protocol as two small models, checked in every state they can reach.
//!
//! The first is about registrations, pushes, pulls and restarts: one client and its session, one or two log partitions,
//! two topics, and an adversary who delivers messages in any order, repeats them or never delivers them, lets calls time
//! out, crashes partitions, and hibernates the session or takes its memory. `stateright` visits every state within a
//! budget of such acts, and from each of them a fair schedule must bring everything to the client. [`walk`] takes random
//! walks through worlds too large for that. The second, [`liveness`], is about Pings and output that nobody reads.
//!
//! Rules 1 to 23 and holes 1 to 42 are those of the stream protocol. A [`Mutation`] breaks one rule; a test per mutation
//! shows that the model then finds the harm. docs/decisions/0011-stream-model.md has the list, and what the model leaves
//! out.
//!
//! Where to start reading: [`session`] and [`partition`] are the protocol, [`client`] judges what leaves the socket,
//! [`world`] puts them together, [`progress`] says what must arrive.

pub mod action;
pub mod check;
pub mod client;
mod describe;
pub mod effects;
mod inert;
pub mod instances;
pub mod invariants;
pub mod liveness;
pub mod message;
pub mod mutation;
pub mod names;
pub mod network;
pub mod partition;
pub mod progress;
pub mod scenario;
pub mod session;
pub mod walk;
pub mod world;

pub use action::Action;
pub use check::{Found, Searched, Violation, exhaust};
pub use invariants::Invariant;
pub use mutation::Mutation;
pub use progress::Stuck;
pub use scenario::{Change, Faults, Scenario, Update, Variant};
pub use world::World;
