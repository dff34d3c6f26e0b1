//! The rows of a Directory partition.

use bytes::Bytes;
use sealog_proto::internal::Claim;

use crate::{Fault, Migration, Nanos, Param, Sql, Txid, blob8, migrate, participant};

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        statements: &[
            "CREATE TABLE progress (
                 id INTEGER PRIMARY KEY CHECK (id = 1),
                 incarnation BLOB NOT NULL,
                 epoch BLOB NOT NULL,
                 clock BLOB NOT NULL
             ) STRICT",
            "INSERT INTO progress (id, incarnation, epoch, clock)
             VALUES (1, zeroblob(8), zeroblob(8), zeroblob(8))",
            // Handles are kept as bytes. A claim is never revoked.
            "CREATE TABLE claims (handle BLOB PRIMARY KEY, inbox_id BLOB NOT NULL) STRICT, WITHOUT ROWID",
            "CREATE TABLE staged_claims (
                 handle BLOB PRIMARY KEY,
                 inbox_id BLOB NOT NULL,
                 txid BLOB NOT NULL
             ) STRICT, WITHOUT ROWID",
            "CREATE INDEX staged_claims_by_transaction ON staged_claims (txid)",
        ],
    },
    participant::MIGRATION,
];

#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub(super) incarnation: u64,
    pub(super) epoch: u64,
    /// The latest time seen; it never falls (rule 10).
    pub(super) clock: Nanos,
}

impl Progress {
    pub(super) fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        migrate(sql, MIGRATIONS)?;
        let row = sql
            .first("SELECT incarnation, epoch, clock FROM progress", &[])?
            .ok_or(Fault::Invariant("a directory partition has its progress row"))?;
        Ok(Self { incarnation: row[0].uint8()?, epoch: row[1].uint8()?, clock: row[2].uint8()? })
    }

    pub(super) fn save(&self, sql: &dyn Sql) -> Result<(), Fault> {
        Ok(sql.run(
            "UPDATE progress SET incarnation = ?, epoch = ?, clock = ?",
            &[
                Param::Blob(&blob8(self.incarnation)),
                Param::Blob(&blob8(self.epoch)),
                Param::Blob(&blob8(self.clock)),
            ],
        )?)
    }
}

/// Who holds a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Nobody,
    /// For good.
    Inbox(Bytes),
    /// An undecided transaction.
    Transaction,
}

pub(super) fn held_by(sql: &dyn Sql, handle: &str) -> Result<Holder, Fault> {
    if let Some(inbox) = holder(sql, handle)? {
        return Ok(Holder::Inbox(inbox));
    }
    let staged =
        sql.first("SELECT 1 FROM staged_claims WHERE handle = ?", &[Param::Blob(handle.as_bytes())])?;
    Ok(if staged.is_some() { Holder::Transaction } else { Holder::Nobody })
}

/// The inbox that claimed a handle, whatever it claimed since (API-299).
pub fn holder(sql: &dyn Sql, handle: &str) -> Result<Option<Bytes>, Fault> {
    let row = sql.first("SELECT inbox_id FROM claims WHERE handle = ?", &[Param::Blob(handle.as_bytes())])?;
    Ok(row.map(|row| row[0].blob()).transpose()?)
}

pub(super) fn stage(sql: &dyn Sql, txid: &Txid, claim: &Claim) -> Result<(), Fault> {
    Ok(sql.run(
        "INSERT INTO staged_claims (handle, inbox_id, txid) VALUES (?, ?, ?)",
        &[Param::Blob(claim.handle.as_bytes()), Param::Blob(&claim.inbox_id), Param::Blob(txid.as_bytes())],
    )?)
}

/// Turns staged claims into claims. The inbox that holds a handle may claim it again, which changes nothing.
pub(super) fn apply(sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
    let txid = [Param::Blob(txid.as_bytes())];
    let foreign = sql.first(
        "SELECT 1 FROM staged_claims s JOIN claims c ON c.handle = s.handle
         WHERE s.txid = ? AND c.inbox_id <> s.inbox_id",
        &txid,
    )?;
    Fault::assert(foreign.is_none(), "a handle belongs to one inbox")?;
    sql.run(
        "INSERT INTO claims (handle, inbox_id) SELECT handle, inbox_id FROM staged_claims WHERE txid = ?
         ON CONFLICT (handle) DO NOTHING",
        &txid,
    )?;
    Ok(sql.run("DELETE FROM staged_claims WHERE txid = ?", &txid)?)
}

pub(super) fn drop_staged(sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
    Ok(sql.run("DELETE FROM staged_claims WHERE txid = ?", &[Param::Blob(txid.as_bytes())])?)
}
