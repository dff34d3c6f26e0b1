//! The rows of a partition.

use bytes::Bytes;
use sealog_proto::backend::{Cursor, EnvelopeMeta, MessageHash, Topic, message_hash};
use sealog_proto::internal::NewEnvelope;

use super::{history, outbox, staged, watch};
use crate::participant;
use crate::{Fault, Migration, Nanos, Param, Sql, SqlError, Value, blob8};

pub(super) const MIGRATIONS: &[Migration] = &[
    FIRST,
    participant::MIGRATION,
    staged::MIGRATION,
    outbox::MIGRATION,
    history::MIGRATION,
    staged::IDENTITY,
    watch::MIGRATION,
];

const FIRST: Migration = Migration {
    version: 1,
    statements: &[
        "CREATE TABLE progress (
             id INTEGER PRIMARY KEY CHECK (id = 1),
             incarnation BLOB NOT NULL,
             epoch BLOB NOT NULL,
             highest BLOB NOT NULL,
             server_ns BLOB NOT NULL,
             clock BLOB NOT NULL
         ) STRICT",
        "INSERT INTO progress (id, incarnation, epoch, highest, server_ns, clock)
         VALUES (1, zeroblob(8), zeroblob(8), zeroblob(8), zeroblob(8), zeroblob(8))",
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
};

/// What a partition has stored last, beside what every participant keeps in its row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Last {
    /// The highest id stored.
    pub(super) highest: u64,
    /// The `server_ns` of the last step that stored something.
    pub(super) server_ns: Nanos,
    /// Every id up to here has been acknowledged by whoever watched it (rule 8 of the stream protocol).
    pub(super) pushed_through: u64,
}

impl Last {
    pub(super) fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        let row = sql
            .first("SELECT highest, server_ns, pushed_through FROM progress", &[])?
            .ok_or(Fault::Invariant("a partition has its progress row"))?;
        Ok(Self { highest: row[0].uint8()?, server_ns: row[1].uint8()?, pushed_through: row[2].uint8()? })
    }

    pub(super) fn save(&self, sql: &dyn Sql) -> Result<(), Fault> {
        Ok(sql.run(
            "UPDATE progress SET highest = ?, server_ns = ?, pushed_through = ?",
            &[
                Param::Blob(&blob8(self.highest)),
                Param::Blob(&blob8(self.server_ns)),
                Param::Blob(&blob8(self.pushed_through)),
            ],
        )?)
    }
}

/// The newest id of a topic, 0 when it never had one.
pub(super) fn head(sql: &dyn Sql, topic: &[u8]) -> Result<u64, Fault> {
    let row = sql.first("SELECT head FROM topics WHERE topic = ?", &[Param::Blob(topic)])?;
    Ok(row.map_or(Ok(0), |row| row[0].uint8())?)
}

/// The metadata of a stored envelope.
pub(super) fn find(sql: &dyn Sql, topic: &[u8], hash: &[u8]) -> Result<Option<EnvelopeMeta>, Fault> {
    let row = sql.first(
        &format!("SELECT {META_COLUMNS} FROM envelopes e WHERE e.topic = ? AND e.hash = ?"),
        &[Param::Blob(topic), Param::Blob(hash)],
    )?;
    Ok(row.map(|row| meta_of_row(&row)).transpose()?)
}

/// The metadata of an envelope that is about to be stored.
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
