//! The tables of a Directory partition.

use crate::{Migration, participant};

pub(super) const MIGRATIONS: &[Migration] = &[
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
    Migration {
        version: 3,
        statements: &[
            // The last change that each inbox made to an identifier. One that ended stays, as a tombstone: or a late copy
            // of an older change would bring it back.
            "CREATE TABLE associations (
                 kind INTEGER NOT NULL,
                 key BLOB NOT NULL,
                 inbox_id BLOB NOT NULL,
                 sequence_id BLOB NOT NULL,
                 live INTEGER NOT NULL,
                 PRIMARY KEY (kind, key, inbox_id)
             ) STRICT, WITHOUT ROWID",
            "CREATE INDEX live_associations ON associations (kind, key, sequence_id) WHERE live = 1",
        ],
    },
];
