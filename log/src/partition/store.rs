//! The rows of a partition.

use bytes::Bytes;
use sealog_proto::backend::{Cursor, EnvelopeMeta, MessageHash, Topic, message_hash};
use sealog_proto::internal::NewEnvelope;

use crate::{Fault, Migration, Nanos, Param, Sql, SqlError, Value, blob8, migrate};

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    statements: &[
        "CREATE TABLE progress (
             id INTEGER PRIMARY KEY CHECK (id = 1),
             incarnation BLOB NOT NULL,
             epoch BLOB NOT NULL,
             highest BLOB NOT NULL,
             server_ns BLOB NOT NULL
         ) STRICT",
        "INSERT INTO progress (id, incarnation, epoch, highest, server_ns)
         VALUES (1, zeroblob(8), zeroblob(8), zeroblob(8), zeroblob(8))",
        // The newest id of each topic. A table of its own, so that deleting expired rows never lowers a head.
        "CREATE TABLE topics (topic BLOB PRIMARY KEY, head BLOB NOT NULL) STRICT, WITHOUT ROWID",
        // The body comes last: reads of metadata then leave its pages alone.
        "CREATE TABLE envelopes (
             topic BLOB NOT NULL,
             sequence_id BLOB NOT NULL,
             hash BLOB NOT NULL,
             server_ns BLOB NOT NULL,
             expiry_ns BLOB NOT NULL,
             is_commit_or_proposal INTEGER NOT NULL,
             body BLOB NOT NULL
         ) STRICT",
        "CREATE UNIQUE INDEX envelopes_by_position ON envelopes (topic, sequence_id)",
        "CREATE UNIQUE INDEX envelopes_by_hash ON envelopes (topic, hash)",
    ],
}];

/// What a partition knows of itself. One row.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// Which instance this is.
    pub(super) incarnation: u64,
    /// The newest epoch of the sequencer seen. Stored as defence in depth: were an overtaken sequencer to answer once
    /// more, its ids would be refused here even after a restart (trap 24).
    pub(super) epoch: u64,
    /// The highest id stored.
    pub(super) highest: u64,
    /// The `server_ns` of the last step that stored something.
    pub(super) server_ns: Nanos,
}

impl Progress {
    pub(super) fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        migrate(sql, MIGRATIONS)?;
        let row = sql
            .first("SELECT incarnation, epoch, highest, server_ns FROM progress", &[])?
            .ok_or(Fault::Invariant("a partition has its progress row"))?;
        Ok(Self {
            incarnation: row[0].uint8()?,
            epoch: row[1].uint8()?,
            highest: row[2].uint8()?,
            server_ns: row[3].uint8()?,
        })
    }

    pub(super) fn save(&self, sql: &dyn Sql) -> Result<(), Fault> {
        Ok(sql.run(
            "UPDATE progress SET incarnation = ?, epoch = ?, highest = ?, server_ns = ?",
            &[
                Param::Blob(&blob8(self.incarnation)),
                Param::Blob(&blob8(self.epoch)),
                Param::Blob(&blob8(self.highest)),
                Param::Blob(&blob8(self.server_ns)),
            ],
        )?)
    }
}

/// Stores a row; `false` when its (topic, hash) is already there.
pub(super) fn insert(
    sql: &dyn Sql,
    envelope: &NewEnvelope,
    sequence_id: u64,
    server_ns: Nanos,
    expiry_ns: Nanos,
) -> Result<bool, Fault> {
    let row = sql.first(
        "INSERT INTO envelopes (topic, sequence_id, hash, server_ns, expiry_ns, is_commit_or_proposal, body)
         VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (topic, hash) DO NOTHING RETURNING 1",
        &[
            Param::Blob(&envelope.topic),
            Param::Blob(&blob8(sequence_id)),
            Param::Blob(&envelope.hash),
            Param::Blob(&blob8(server_ns)),
            Param::Blob(&blob8(expiry_ns)),
            Param::Integer(envelope.is_commit_or_proposal.into()),
            Param::Blob(&envelope.body),
        ],
    )?;
    Ok(row.is_some())
}

/// Moves the head of a topic up to a new row. A head that is not below it is a broken order (assertion a).
pub(super) fn raise_head(sql: &dyn Sql, topic: &[u8], sequence_id: u64) -> Result<(), Fault> {
    let raised = sql.first(
        "INSERT INTO topics (topic, head) VALUES (?, ?)
         ON CONFLICT (topic) DO UPDATE SET head = excluded.head WHERE head < excluded.head RETURNING 1",
        &[Param::Blob(topic), Param::Blob(&blob8(sequence_id))],
    )?;
    Fault::assert(raised.is_some(), "a new id lies above the head of its topic")
}

/// The newest id of a topic, 0 when it never had one.
pub(super) fn head(sql: &dyn Sql, topic: &[u8]) -> Result<u64, Fault> {
    let row = sql.first("SELECT head FROM topics WHERE topic = ?", &[Param::Blob(topic)])?;
    Ok(row.map_or(Ok(0), |row| row[0].uint8())?)
}

/// The metadata of the stored envelope that this one is a duplicate of.
pub(super) fn find(sql: &dyn Sql, envelope: &NewEnvelope) -> Result<Option<EnvelopeMeta>, Fault> {
    let row = sql.first(
        "SELECT sequence_id, server_ns, expiry_ns FROM envelopes WHERE topic = ? AND hash = ?",
        &[Param::Blob(&envelope.topic), Param::Blob(&envelope.hash)],
    )?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(meta(envelope, row[0].uint8()?, row[1].uint8()?, row[2].uint8()?)))
}

/// The metadata of an envelope whose topic, hash and flag are at hand.
pub(super) fn meta(
    envelope: &NewEnvelope,
    sequence_id: u64,
    server_ns: Nanos,
    expiry_ns: Nanos,
) -> EnvelopeMeta {
    EnvelopeMeta {
        cursor: Some(Cursor { sequence_id }),
        server_ns,
        message_hash: Some(message_hash(envelope.hash.clone())),
        topic: Some(Topic { topic: envelope.topic.clone() }),
        expiry_ns,
        is_commit_or_proposal: envelope.is_commit_or_proposal,
    }
}

/// The columns that [`meta_of_row`] reads, of a table `envelopes` called `e`.
pub(super) const META_COLUMNS: &str =
    "e.topic, e.sequence_id, e.hash, e.server_ns, e.expiry_ns, e.is_commit_or_proposal";

/// Number of [`META_COLUMNS`].
pub(super) const META_WIDTH: usize = 6;

/// The metadata of a row that begins with [`META_COLUMNS`].
pub(super) fn meta_of_row(row: &[Value]) -> Result<EnvelopeMeta, SqlError> {
    Ok(EnvelopeMeta {
        topic: Some(Topic { topic: row[0].blob()? }),
        cursor: Some(Cursor { sequence_id: row[1].uint8()? }),
        message_hash: Some(message_hash(row[2].blob()?)),
        server_ns: row[3].uint8()?,
        expiry_ns: row[4].uint8()?,
        is_commit_or_proposal: row[5].integer()? != 0,
    })
}

fn message_hash(sha256: Bytes) -> MessageHash {
    MessageHash { hash: Some(message_hash::Hash::Sha256(sha256)) }
}
