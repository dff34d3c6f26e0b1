//! What the sequencer keeps: one row.

use crate::{Fault, Migration, Param, Sql, blob8, migrate};

const MIGRATIONS: &[Migration] = &[Migration {
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
}];

#[derive(Debug)]
pub(super) struct Stored {
    /// No id above it was given out.
    pub(super) block_end: u64,
    /// No time above it was handed out, in nanoseconds since the Unix epoch.
    pub(super) clock_limit: u64,
    /// The highest boundary told.
    pub(super) boundary: u64,
    /// The deployment's number of log partitions; 0 = not known yet.
    pub(super) log_partitions: u32,
}

impl Stored {
    pub(super) fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        migrate(sql, MIGRATIONS)?;
        let row = sql
            .first("SELECT block_end, clock_limit, boundary, log_partitions FROM sequencer", &[])?
            .ok_or(Fault::Invariant("the sequencer has its row"))?;
        Ok(Self {
            block_end: row[0].uint8()?,
            clock_limit: row[1].uint8()?,
            boundary: row[2].uint8()?,
            log_partitions: u32::try_from(row[3].integer()?).map_err(|_| {
                Fault::Invariant("the stored number of log partitions is a number of partitions")
            })?,
        })
    }

    pub(super) fn save(&self, sql: &dyn Sql) -> Result<(), Fault> {
        Ok(sql.run(
            "UPDATE sequencer SET block_end = ?, clock_limit = ?, boundary = ?, log_partitions = ?",
            &[
                Param::Blob(&blob8(self.block_end)),
                Param::Blob(&blob8(self.clock_limit)),
                Param::Blob(&blob8(self.boundary)),
                Param::Integer(self.log_partitions.into()),
            ],
        )?)
    }
}
