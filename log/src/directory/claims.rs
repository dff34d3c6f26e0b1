//! Handles and the inboxes that hold them, or are about to.

use bytes::Bytes;
use sealog_proto::internal::Claim;

use crate::{Fault, Param, Sql, Txid};

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
    if let Some(inbox) = holder(sql, handle.as_bytes())? {
        return Ok(Holder::Inbox(inbox));
    }
    let staged =
        sql.first("SELECT 1 FROM staged_claims WHERE handle = ?", &[Param::Blob(handle.as_bytes())])?;
    Ok(if staged.is_some() { Holder::Transaction } else { Holder::Nobody })
}

/// The inbox that claimed a handle, whatever it claimed since (API-299).
pub(super) fn holder(sql: &dyn Sql, handle: &[u8]) -> Result<Option<Bytes>, Fault> {
    let row = sql.first("SELECT inbox_id FROM claims WHERE handle = ?", &[Param::Blob(handle)])?;
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

/// Enters the claim of an update that is stored already. Nobody else holds the handle.
pub(super) fn insert(sql: &dyn Sql, claim: &Claim) -> Result<(), Fault> {
    Ok(sql.run(
        "INSERT INTO claims (handle, inbox_id) VALUES (?, ?) ON CONFLICT (handle) DO NOTHING",
        &[Param::Blob(claim.handle.as_bytes()), Param::Blob(&claim.inbox_id)],
    )?)
}

pub(super) fn drop_staged(sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
    Ok(sql.run("DELETE FROM staged_claims WHERE txid = ?", &[Param::Blob(txid.as_bytes())])?)
}
