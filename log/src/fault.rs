//! What ends an instance of a state machine.

use sealog_proto::internal::{Failure, failure::Kind};

use crate::SqlError;

/// After a fault nothing in memory may be believed: the shell forgets the machine and loads it again from storage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Storage refused a statement. What the event wrote was rolled back.
    #[error("storage failed: {0}")]
    Sql(#[from] SqlError),
    /// An assertion of the commit protocol (its part 3) did not hold.
    #[error("invariant broken: {0}")]
    Invariant(&'static str),
}

impl Fault {
    /// Asserts an invariant, in release builds too.
    pub(crate) fn assert(holds: bool, invariant: &'static str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::Invariant(invariant)) }
    }
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandError {
    /// The instance is over; load it again. The caller may repeat the command.
    Fault(Fault),
    /// The instance is fine; this command is not for it. Nothing was written.
    Refused(Failure),
}

impl CommandError {
    pub(crate) fn refused(kind: Kind, message: impl Into<String>) -> Self {
        Self::Refused(Failure { kind: kind.into(), message: message.into() })
    }
}

impl<E: Into<Fault>> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}
