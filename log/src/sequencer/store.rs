//! What the sequencer keeps: one row about itself, one for each transaction, one for each abort.

use std::ops::ControlFlow;

use prost::Message;
use sealog_proto::internal::Share;

use super::transactions::Transaction;
use crate::{Fault, Migration, Param, Sql, SqlError, Txid, Value, blob8, migrate};

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        statements: &[
            // log_partitions is 0 until the first worker joins.
            "CREATE TABLE sequencer (
                 id INTEGER PRIMARY KEY CHECK (id = 1),
                 block_end BLOB NOT NULL,
                 clock_limit BLOB NOT NULL,
                 boundary BLOB NOT NULL,
                 log_partitions INTEGER NOT NULL
             ) STRICT",
            "INSERT INTO sequencer (id, block_end, clock_limit, boundary, log_partitions)
             VALUES (1, zeroblob(8), zeroblob(8), zeroblob(8), 0)",
        ],
    },
    Migration {
        version: 2,
        statements: &[
            "ALTER TABLE sequencer ADD COLUMN clean INTEGER NOT NULL DEFAULT 0",
            // shares: length-delimited Share messages, in the order of the decision.
            "CREATE TABLE decisions (
                 txid BLOB PRIMARY KEY,
                 first_id BLOB NOT NULL,
                 server_ns BLOB NOT NULL,
                 shares BLOB NOT NULL,
                 finished INTEGER NOT NULL
             ) STRICT, WITHOUT ROWID",
            "CREATE TABLE tombstones (txid BLOB PRIMARY KEY) STRICT, WITHOUT ROWID",
        ],
    },
    Migration {
        version: 3,
        // 0 until a worker says how many.
        statements: &["ALTER TABLE sequencer ADD COLUMN directory_partitions INTEGER NOT NULL DEFAULT 0"],
    },
];

#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// No id above it was given out.
    pub(super) block_end: u64,
    /// No time above it was handed out, in nanoseconds since the Unix epoch.
    pub(super) clock_limit: u64,
    /// The highest boundary told.
    pub(super) boundary: u64,
    /// The deployment's number of log partitions; 0 = not known yet.
    pub(super) log_partitions: u32,
    /// The deployment's number of Directories; 0 = not known yet, as in a deployment older than they are.
    pub(super) directory_partitions: u32,
    /// No id above `boundary` was given out: a new instance need hear nobody (rule 19).
    pub(super) clean: bool,
}

impl Stored {
    pub(super) fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        migrate(sql, MIGRATIONS)?;
        let row = sql
            .first(
                "SELECT block_end, clock_limit, boundary, log_partitions, directory_partitions, clean
                 FROM sequencer",
                &[],
            )?
            .ok_or(Fault::Invariant("the sequencer has its row"))?;
        Ok(Self {
            block_end: row[0].uint8()?,
            clock_limit: row[1].uint8()?,
            boundary: row[2].uint8()?,
            log_partitions: partitions(&row[3])?,
            directory_partitions: partitions(&row[4])?,
            clean: row[5].integer()? != 0,
        })
    }

    pub(super) fn save(&self, sql: &dyn Sql) -> Result<(), Fault> {
        Ok(sql.run(
            "UPDATE sequencer SET block_end = ?, clock_limit = ?, boundary = ?, log_partitions = ?,
             directory_partitions = ?, clean = ?",
            &[
                Param::Blob(&blob8(self.block_end)),
                Param::Blob(&blob8(self.clock_limit)),
                Param::Blob(&blob8(self.boundary)),
                Param::Integer(self.log_partitions.into()),
                Param::Integer(self.directory_partitions.into()),
                Param::Integer(self.clean.into()),
            ],
        )?)
    }
}

fn partitions(column: &Value) -> Result<u32, Fault> {
    let stored = u32::try_from(column.integer()?);
    stored.map_err(|_| Fault::Invariant("a stored number of partitions is one"))
}

pub(super) fn load_decisions(sql: &dyn Sql) -> Result<Vec<Transaction>, Fault> {
    let mut decisions = Vec::new();
    sql.query("SELECT txid, first_id, server_ns, shares, finished FROM decisions", &[], &mut |row| {
        decisions.push(Transaction::stored(
            Txid::of_column(&row[0])?,
            row[1].uint8()?,
            row[2].uint8()?,
            &decode_shares(&row[3])?,
            row[4].integer()? != 0,
        ));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(decisions)
}

pub(super) fn insert_decision(
    sql: &dyn Sql,
    txid: &Txid,
    first_id: u64,
    server_ns: u64,
    shares: &[Share],
) -> Result<(), Fault> {
    let mut encoded = Vec::new();
    for share in shares {
        share.encode_length_delimited(&mut encoded).expect("a Vec has room");
    }
    Ok(sql.run(
        "INSERT INTO decisions (txid, first_id, server_ns, shares, finished) VALUES (?, ?, ?, ?, 0)",
        &[
            Param::Blob(txid.as_bytes()),
            Param::Blob(&blob8(first_id)),
            Param::Blob(&blob8(server_ns)),
            Param::Blob(&encoded),
        ],
    )?)
}

fn decode_shares(column: &Value) -> Result<Vec<Share>, SqlError> {
    let mut rest = column.blob()?;
    let mut shares = Vec::new();
    while !rest.is_empty() {
        let share = Share::decode_length_delimited(&mut rest);
        shares.push(share.map_err(|_| SqlError("a stored decision does not decode".to_owned()))?);
    }
    Ok(shares)
}

pub(super) fn mark_finished(sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
    Ok(sql.run("UPDATE decisions SET finished = 1 WHERE txid = ?", &[Param::Blob(txid.as_bytes())])?)
}

pub(super) fn delete_decision(sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
    Ok(sql.run("DELETE FROM decisions WHERE txid = ?", &[Param::Blob(txid.as_bytes())])?)
}

pub(super) fn load_tombstones(sql: &dyn Sql) -> Result<Vec<Txid>, Fault> {
    let mut tombstones = Vec::new();
    sql.query("SELECT txid FROM tombstones", &[], &mut |row| {
        tombstones.push(Txid::of_column(&row[0])?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(tombstones)
}

pub(super) fn insert_tombstone(sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
    Ok(sql.run("INSERT INTO tombstones (txid) VALUES (?)", &[Param::Blob(txid.as_bytes())])?)
}

pub(super) fn delete_tombstone(sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
    Ok(sql.run("DELETE FROM tombstones WHERE txid = ?", &[Param::Blob(txid.as_bytes())])?)
}
