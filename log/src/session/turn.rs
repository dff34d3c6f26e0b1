//! One event, while it is worked on.

use std::borrow::Cow;

use sealog_proto::status::Code;

use super::{Action, Context};
use crate::{Fault, Nanos, Sql, SqlError};

/// How a stream ends: the trailers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// From the contract's status table (API-281).
    pub code: Code,
    /// What a person should do about it. Names no topic and no payload (SEC-051).
    pub message: Cow<'static, str>,
}

impl Status {
    /// A status with its text.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

/// What ends the stream in the middle of an event.
#[derive(Debug)]
pub(super) enum Stop {
    /// A failure that the status table names.
    Status(Status),
    /// A defect, or the storage.
    Fault(Fault),
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Fault(error.into())
    }
}

/// An event: what it came with, and what is to be done.
pub(super) struct Turn<'a> {
    pub(super) sql: &'a dyn Sql,
    pub(super) now: Nanos,
    pub(super) elsewhere: u64,
    pub(super) actions: Vec<Action>,
    /// It is the alarm, which is not set any more.
    pub(super) rang: bool,
}

impl<'a> Turn<'a> {
    pub(super) fn new(ctx: &Context<'a>) -> Self {
        Self { sql: ctx.sql, now: ctx.now, elsewhere: ctx.elsewhere, actions: Vec::new(), rang: false }
    }
}
