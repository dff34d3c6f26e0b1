//! The storage of one object: production SQL on native SQLite, with flushes, loss and failing statements.
//!
//! An event writes at once, but what it wrote is durable only when it is flushed, and flushes complete in order. Each
//! event that writes is one savepoint inside an open transaction: a crash rolls back to the first savepoint that was
//! not flushed.

use std::cell::Cell;

use sealog_log::native::Native;
use sealog_log::{Each, Fault, Param, Sql, SqlError};

/// A statement that is to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailAt {
    Never,
    /// The n-th write from now fails without effect.
    Before(u32),
    /// The n-th write from now takes effect and then fails.
    After(u32),
}

#[derive(Debug)]
pub(crate) struct Storage {
    native: Native,
    /// Number of the last event that wrote.
    written: Cell<u64>,
    /// Number of the last event whose writes are durable.
    flushed: Cell<u64>,
    /// The event under way has written.
    dirty: Cell<bool>,
    fail_at: Cell<FailAt>,
    depth: Cell<u32>,
    /// What such a statement finds is not seen: a deliberate mistake.
    blind: Cell<Option<&'static str>>,
    /// A part of statements, and what is run instead of it: a deliberate mistake.
    altered: Cell<Option<(&'static str, &'static str)>>,
}

impl Storage {
    pub(crate) fn new() -> Self {
        let native = Native::new();
        native.run("PRAGMA synchronous = OFF", &[]).expect("SQLite takes a pragma");
        let this = Self {
            native,
            written: Cell::new(0),
            flushed: Cell::new(0),
            dirty: Cell::new(false),
            fail_at: Cell::new(FailAt::Never),
            depth: Cell::new(0),
            blind: Cell::new(None),
            altered: Cell::new(None),
        };
        this.control("BEGIN");
        this
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.get()
    }

    pub(crate) fn flushed(&self) -> u64 {
        self.flushed.get()
    }

    /// The write that a message of the event under way waits for.
    pub(crate) fn next_write(&self) -> u64 {
        self.written.get() + u64::from(self.dirty.get())
    }

    pub(crate) fn fail_at(&self, fail_at: FailAt) {
        self.fail_at.set(fail_at);
    }

    /// An event begins. Its savepoint is named by the number it gets if it writes.
    pub(crate) fn begin(&self) {
        self.dirty.set(false);
        self.depth.set(0);
        self.control(&format!("SAVEPOINT event{}", self.written.get() + 1));
    }

    /// Something other than a statement was written: an alarm.
    pub(crate) fn touch(&self) {
        self.dirty.set(true);
    }

    /// The event ends. Says whether it wrote.
    pub(crate) fn end(&self) -> bool {
        self.fail_at.set(FailAt::Never);
        let number = self.written.get() + 1;
        let wrote = self.dirty.replace(false);
        if wrote {
            self.written.set(number);
        } else {
            self.control(&format!("RELEASE event{number}"));
        }
        wrote
    }

    /// The event is undone.
    pub(crate) fn undo(&self) {
        self.fail_at.set(FailAt::Never);
        self.dirty.set(false);
        let number = self.written.get() + 1;
        self.control(&format!("ROLLBACK TO event{number}"));
        self.control(&format!("RELEASE event{number}"));
    }

    /// The writes up to `number` are durable.
    pub(crate) fn flush(&self, number: u64) {
        self.flushed.set(self.flushed.get().max(number.min(self.written.get())));
        if self.flushed.get() == self.written.get() {
            self.control("COMMIT");
            self.control("BEGIN");
        }
    }

    /// Loses whatever was not flushed.
    pub(crate) fn crash(&self) {
        if self.flushed.get() < self.written.get() {
            self.control(&format!("ROLLBACK TO event{}", self.flushed.get() + 1));
        }
        self.written.set(self.flushed.get());
        self.control("COMMIT");
        self.control("BEGIN");
    }

    pub(crate) fn blind(&self, statement: Option<&'static str>) {
        self.blind.set(statement);
    }

    pub(crate) fn alter(&self, altered: Option<(&'static str, &'static str)>) {
        self.altered.set(altered);
    }

    /// Changes what is stored behind the object's back. An object that was never called has no tables yet.
    pub(crate) fn tamper(&self, statement: &str) {
        let _ = self.native.run(statement, &[]);
    }

    fn control(&self, statement: &str) {
        self.native.run(statement, &[]).expect("SQLite keeps transactions");
    }

    fn is_to_fail(&self) -> FailAt {
        let now = self.fail_at.get();
        self.fail_at.set(match now {
            FailAt::Before(left @ 2..) => FailAt::Before(left - 1),
            FailAt::After(left @ 2..) => FailAt::After(left - 1),
            _ => FailAt::Never,
        });
        now
    }
}

impl Sql for Storage {
    fn query(&self, statement: &str, params: &[Param<'_>], each: Each<'_>) -> Result<(), SqlError> {
        if self.blind.get().is_some_and(|blind| statement.starts_with(blind)) {
            return Ok(());
        }
        let altered = self.altered.get().map(|(part, instead)| statement.replace(part, instead));
        let statement = altered.as_deref().unwrap_or(statement);
        if statement.starts_with("SELECT") {
            return self.native.query(statement, params, each);
        }
        let failure = || SqlError("injected by the simulator".to_owned());
        let fail_at = self.is_to_fail();
        if fail_at == FailAt::Before(1) {
            return Err(failure());
        }
        self.dirty.set(true);
        self.native.query(statement, params, each)?;
        if fail_at == FailAt::After(1) { Err(failure()) } else { Ok(()) }
    }

    fn transaction(&self, body: &mut dyn FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
        let depth = self.depth.get() + 1;
        self.depth.set(depth);
        self.control(&format!("SAVEPOINT inner{depth}"));
        let outcome = body();
        if outcome.is_err() {
            self.control(&format!("ROLLBACK TO inner{depth}"));
        }
        self.control(&format!("RELEASE inner{depth}"));
        self.depth.set(depth - 1);
        outcome
    }
}
