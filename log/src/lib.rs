//! The state machines that order, store and tell, and the SQL they live on.
//!
//! Nothing here knows of Workers, of time or of other objects. A machine takes an event, the time and its storage, and
//! returns what is to be done: whom to ask, whom to answer, when to wake. The object classes carry that out. The
//! simulator does the same, so that what is proven is what runs.
//!
//! The commit protocol is `docs/decisions/0004-commit-path.md`; "rule n" in comments means its rules.

pub mod coordinator;
pub mod directory;
mod fault;
mod key;
mod migrate;
#[cfg(feature = "native")]
pub mod native;
pub mod participant;
pub mod partition;
pub mod sequencer;
pub mod session;
mod sql;
mod txid;

pub use fault::{CommandError, Fault};
pub use migrate::{Migration, migrate};
pub use sql::{Each, Param, Sql, SqlError, Value, blob8, uint8};
pub use txid::Txid;

/// Nanoseconds since the Unix epoch.
pub type Nanos = u64;

/// Nanoseconds in a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000 * MILLISECOND;
