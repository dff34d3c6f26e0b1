//! The transactions that a participant holds, and those that ended there (rules 10, 12, 17).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use sealog_proto::internal::Decided;

use super::Action;
use crate::{Fault, Migration, Nanos, Param, SECOND, Sql, Txid, Value, blob8};

/// The table, for the migrations of each participant. A row with an outcome is a memory of what ended, kept until its
/// txid's time has passed, so that a late `stage` of it is refused.
pub(crate) const MIGRATION: Migration = Migration {
    version: 2,
    statements: &["CREATE TABLE transactions (
             txid BLOB PRIMARY KEY,
             since BLOB NOT NULL,
             bytes INTEGER NOT NULL,
             outcome INTEGER NOT NULL
         ) STRICT, WITHOUT ROWID"],
};

/// How old a staged copy is when its participant asks what became of it (rule 12). A duration on one clock, so that
/// skew between machines does not matter.
const OVERDUE: Nanos = 10 * SECOND;
/// Bounds of what one participant holds staged (rule 5).
const MAX_STAGED: usize = 1_000;
const MAX_STAGED_BYTES: u64 = 64 << 20;

const STAGED: i64 = 0;
const APPLIED: i64 = 1;
const ABORTED: i64 = 2;

/// How a transaction ended at a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Applied,
    /// Aborted or withdrawn: nothing of it is here, or ever will be.
    Aborted,
}

/// A transaction that is staged and not ended.
#[derive(Clone, Copy, Debug)]
struct Staged {
    /// When it was staged, on this participant's clock.
    since: Nanos,
    bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Transactions {
    staged: BTreeMap<Txid, Staged>,
    ended: BTreeMap<Txid, Ended>,
    /// Those that ended, by the end of their txid's time.
    by_end: BTreeSet<(Nanos, Txid)>,
    bytes: u64,
    /// Questions to the sequencer that are under way.
    resolving: BTreeSet<Txid>,
}

impl Transactions {
    pub(crate) fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        let mut this = Self::default();
        sql.query("SELECT txid, since, bytes, outcome FROM transactions", &[], &mut |row: &[Value]| {
            let txid = Txid::of_column(&row[0])?;
            match row[3].integer()? {
                STAGED => {
                    let bytes = u64::try_from(row[2].integer()?).unwrap_or(0);
                    this.bytes += bytes;
                    this.staged.insert(txid, Staged { since: row[1].uint8()?, bytes });
                }
                APPLIED => this.remember(txid, Ended::Applied),
                _ => this.remember(txid, Ended::Aborted),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(this)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.staged.is_empty()
    }

    pub(crate) fn is_staged(&self, txid: &Txid) -> bool {
        self.staged.contains_key(txid)
    }

    /// The bytes of a transaction that is staged here.
    pub(crate) fn staged(&self, txid: &Txid) -> Option<u64> {
        self.staged.get(txid).map(|staged| staged.bytes)
    }

    pub(crate) fn ended(&self, txid: &Txid) -> Option<Ended> {
        self.ended.get(txid).copied()
    }

    /// The transaction that a decision is about, if it is to be applied here; `None` when it was before.
    ///
    /// One that is not staged has been applied (assertion e). After its time the memory of what ended is gone: then it
    /// counts as applied (rule 10).
    pub(crate) fn decided(&self, decided: &Decided, clock: Nanos) -> Result<Option<Txid>, Fault> {
        let txid = Txid::parse(&decided.txid).ok_or(Fault::Invariant("a decision names a txid"))?;
        if self.is_staged(&txid) {
            return Ok(Some(txid));
        }
        let ended = self.ended(&txid);
        Fault::assert(ended != Some(Ended::Aborted), "a decided transaction was not aborted here")?;
        let known = ended.is_some() || txid.not_after() < clock;
        Fault::assert(known, "a decided transaction is staged or finished")?;
        Ok(None)
    }

    /// Whether another `bytes` may be staged.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.staged.len() < MAX_STAGED && (self.staged.is_empty() || self.bytes + bytes <= MAX_STAGED_BYTES)
    }

    /// Enters a transaction. Its rows are written in the same event.
    pub(crate) fn stage(&mut self, sql: &dyn Sql, txid: Txid, now: Nanos, bytes: u64) -> Result<(), Fault> {
        write(sql, &txid, now, bytes, STAGED)?;
        self.bytes += bytes;
        self.staged.insert(txid, Staged { since: now, bytes });
        Ok(())
    }

    /// Ends a transaction, staged or never seen. Its rows are removed in the same event.
    pub(crate) fn end(&mut self, sql: &dyn Sql, txid: Txid, outcome: Ended) -> Result<(), Fault> {
        let staged = self.staged.remove(&txid);
        self.bytes -= staged.map_or(0, |staged| staged.bytes);
        self.resolving.remove(&txid);
        self.remember(txid, outcome);
        let outcome = match outcome {
            Ended::Applied => APPLIED,
            Ended::Aborted => ABORTED,
        };
        write(sql, &txid, 0, 0, outcome)
    }

    /// Whether there is something to forget: the time of its txid has passed. `clock` must never fall (rule 10).
    pub(crate) fn has_past(&self, clock: Nanos) -> bool {
        self.by_end.first().is_some_and(|(not_after, _)| *not_after < clock)
    }

    /// Forgets what ended and can no longer be staged. `clock` is stored in the same event.
    pub(crate) fn prune(&mut self, sql: &dyn Sql, clock: Nanos) -> Result<(), Fault> {
        while let Some((not_after, txid)) = self.by_end.first().copied()
            && not_after < clock
        {
            self.by_end.pop_first();
            self.ended.remove(&txid);
            sql.run("DELETE FROM transactions WHERE txid = ?", &[Param::Blob(txid.as_bytes())])?;
        }
        Ok(())
    }

    fn remember(&mut self, txid: Txid, outcome: Ended) {
        self.by_end.insert((txid.not_after(), txid));
        self.ended.insert(txid, outcome);
    }

    /// Asks for the fate of those that are old, of each once until [`Self::resolved`]. One that seems to be staged in
    /// the future is among them: the clock jumped back, and the question is allowed at any time.
    pub(crate) fn ask_overdue(&mut self, now: Nanos) -> Vec<Action> {
        let limit = now.saturating_sub(OVERDUE);
        let is_old = |staged: &Staged| staged.since <= limit || staged.since > now;
        let overdue: Vec<Txid> = self
            .staged
            .iter()
            .filter(|(txid, staged)| is_old(staged) && !self.resolving.contains(txid))
            .map(|(txid, _)| *txid)
            .collect();
        self.resolving.extend(&overdue);
        overdue.into_iter().map(|txid| Action::Resolve { txid }).collect()
    }

    /// The question was answered, or lost.
    pub(crate) fn resolved(&mut self, txid: &Txid) {
        self.resolving.remove(txid);
    }

    /// After how long the alarm is to ring while anything is staged.
    pub(crate) fn alarm(&self) -> Option<Nanos> {
        (!self.staged.is_empty()).then_some(OVERDUE)
    }
}

fn write(sql: &dyn Sql, txid: &Txid, since: Nanos, bytes: u64, outcome: i64) -> Result<(), Fault> {
    Ok(sql.run(
        "INSERT INTO transactions (txid, since, bytes, outcome) VALUES (?, ?, ?, ?)
         ON CONFLICT (txid) DO UPDATE SET since = excluded.since, bytes = excluded.bytes, outcome = excluded.outcome",
        &[
            Param::Blob(txid.as_bytes()),
            Param::Blob(&blob8(since)),
            Param::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)),
            Param::Integer(outcome),
        ],
    )?)
}
