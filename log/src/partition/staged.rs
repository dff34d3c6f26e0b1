//! The rows of staged envelopes: durable, invisible, and locks on what they name.

use std::ops::ControlFlow;

use prost::Message;
use sealog_proto::internal::NewEnvelope;

use crate::{Fault, Migration, Param, Sql, SqlError, Txid, Value, blob8};

/// One staged copy of an envelope, one staged update of an inbox (rule 15).
pub(super) const MIGRATION: Migration = Migration {
    version: 3,
    statements: &[
        "CREATE TABLE staged (
             txid BLOB NOT NULL,
             ordinal INTEGER NOT NULL,
             topic BLOB NOT NULL,
             hash BLOB NOT NULL,
             is_commit_or_proposal INTEGER NOT NULL,
             retention_seconds BLOB NOT NULL,
             expected_head BLOB,
             body BLOB NOT NULL
         ) STRICT",
        "CREATE UNIQUE INDEX staged_by_transaction ON staged (txid, ordinal)",
        "CREATE UNIQUE INDEX staged_by_hash ON staged (topic, hash)",
        "CREATE UNIQUE INDEX staged_by_inbox ON staged (topic) WHERE expected_head IS NOT NULL",
    ],
};

/// What identity updates bring along: an encoded `NewEnvelope` with facts and changes, and nothing else. Not a column
/// beside the body, which alone may fill the longest row that there is (2 MB, a limit of Durable Objects).
pub(super) const IDENTITY: Migration = Migration {
    version: 6,
    statements: &["CREATE TABLE staged_identity (
             txid BLOB NOT NULL,
             ordinal INTEGER NOT NULL,
             identity BLOB NOT NULL,
             PRIMARY KEY (txid, ordinal)
         ) STRICT, WITHOUT ROWID"],
};

pub(super) fn insert(sql: &dyn Sql, txid: &Txid, ordinal: i64, envelope: &NewEnvelope) -> Result<(), Fault> {
    let head = envelope.expected_head.map(blob8);
    sql.run(
        "INSERT INTO staged
             (txid, ordinal, topic, hash, is_commit_or_proposal, retention_seconds, expected_head, body)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        &[
            Param::Blob(txid.as_bytes()),
            Param::Integer(ordinal),
            Param::Blob(&envelope.topic),
            Param::Blob(&envelope.hash),
            Param::Integer(envelope.is_commit_or_proposal.into()),
            Param::Blob(&blob8(envelope.retention_seconds)),
            head.as_ref().map_or(Param::Null, |head| Param::Blob(head)),
            Param::Blob(&envelope.body),
        ],
    )?;
    let identity = NewEnvelope {
        facts: envelope.facts.clone(),
        changes: envelope.changes.clone(),
        ..NewEnvelope::default()
    };
    if identity != NewEnvelope::default() {
        sql.run(
            "INSERT INTO staged_identity (txid, ordinal, identity) VALUES (?, ?, ?)",
            &[Param::Blob(txid.as_bytes()), Param::Integer(ordinal), Param::Blob(&identity.encode_to_vec())],
        )?;
    }
    Ok(())
}

/// The envelopes of a transaction, in request order.
pub(super) fn of(sql: &dyn Sql, txid: &Txid) -> Result<Vec<NewEnvelope>, Fault> {
    let mut envelopes = Vec::new();
    sql.query(
        "SELECT s.topic, s.hash, s.body, s.is_commit_or_proposal, s.retention_seconds, s.expected_head, i.identity
         FROM staged s LEFT JOIN staged_identity i ON i.txid = s.txid AND i.ordinal = s.ordinal
         WHERE s.txid = ? ORDER BY s.ordinal",
        &[Param::Blob(txid.as_bytes())],
        &mut |row| {
            let identity = row[6].optional_blob()?.unwrap_or_default();
            let NewEnvelope { facts, changes, .. } = NewEnvelope::decode(identity)
                .map_err(|_| SqlError("what is staged of an identity update does not decode".to_owned()))?;
            envelopes.push(NewEnvelope {
                topic: row[0].blob()?,
                hash: row[1].blob()?,
                body: row[2].blob()?,
                is_commit_or_proposal: row[3].integer()? != 0,
                retention_seconds: row[4].uint8()?,
                expected_head: match &row[5] {
                    Value::Null => None,
                    head => Some(head.uint8()?),
                },
                facts,
                changes,
            });
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(envelopes)
}

/// How many envelopes a transaction has staged.
pub(super) fn count(sql: &dyn Sql, txid: &Txid) -> Result<u32, Fault> {
    let row = sql.first("SELECT count(*) FROM staged WHERE txid = ?", &[Param::Blob(txid.as_bytes())])?;
    let row = row.ok_or(Fault::Invariant("a count is a row"))?;
    u32::try_from(row[0].integer()?).map_err(|_| Fault::Invariant("a count fits"))
}

pub(super) fn delete(sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
    let txid = [Param::Blob(txid.as_bytes())];
    sql.run("DELETE FROM staged_identity WHERE txid = ?", &txid)?;
    Ok(sql.run("DELETE FROM staged WHERE txid = ?", &txid)?)
}

/// Whether an undecided transaction holds this envelope, or, if it is an update of an inbox, that inbox.
pub(super) fn holds(sql: &dyn Sql, envelope: &NewEnvelope) -> Result<bool, Fault> {
    let row = sql.first(
        "SELECT 1 FROM staged WHERE topic = ? AND (hash = ? OR (? = 1 AND expected_head IS NOT NULL)) LIMIT 1",
        &[
            Param::Blob(&envelope.topic),
            Param::Blob(&envelope.hash),
            Param::Integer(envelope.expected_head.is_some().into()),
        ],
    )?;
    Ok(row.is_some())
}
