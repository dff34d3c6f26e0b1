//! The commit protocol as a small model, checked in every state it can reach.
//!
//! Two log partitions, one Directory, the sequencer and two or three workers, each a state machine of a page, and an
//! adversary who may crash any of them between two events, repeat, reorder or never deliver any message, let requests
//! time out, and ask what became of a transaction at any moment. `stateright` visits every state within a budget of
//! such acts; [`walk`] takes long random walks through worlds too large for that.
//!
//! Rules 1 to 20 and traps 1 to 29 are those of the commit protocol. A [`Mutation`] breaks one rule; a test per
//! mutation shows that the model then finds the harm. docs/decisions/0005-commit-model.md has the list, and what the
//! model leaves out.
//!
//! Where to start reading: [`sequencer`], [`partition`] and [`worker`] are the protocol, [`world`] puts them
//! together, [`invariants`] and [`progress`] say what must hold.

pub mod action;
pub mod check;
mod describe;
pub mod effects;
pub mod gate;
mod inert;
pub mod instances;
pub mod invariants;
pub mod message;
pub mod mutation;
pub mod names;
pub mod network;
pub mod partition;
pub mod progress;
pub mod publish;
pub mod scenario;
pub mod sequencer;
pub mod walk;
pub mod worker;
pub mod world;

pub use action::Action;
pub use check::{Found, Violation, exhaust};
pub use invariants::Invariant;
pub use mutation::Mutation;
pub use progress::Stuck;
pub use publish::Publish;
pub use scenario::{Faults, Gate, Scenario};
pub use world::World;
