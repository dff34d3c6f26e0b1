//! The rows of a stream (rules 2, 19, 21): a journal of its registrations, their positions when there are too many for
//! the attachment, and what has come of a long frame.
//!
//! Each row has a version, which rises with each write. The attachment names the newest: storage and attachment that do
//! not belong together are never taken for a stream.

use std::collections::HashMap;
use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use prost::Message;
use sealog_proto::internal::{StoredPositions, StoredUpdate, stored_update};

use super::registry::{Registration, Registry};
use crate::key::{Key, shared};
use crate::{Fault, Migration, Nanos, Param, Sql, Value, blob8, migrate};

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    statements: &[
        // One row, from the event that accepts the socket until the object is deleted.
        "CREATE TABLE stream (
             id INTEGER PRIMARY KEY CHECK (id = 1),
             version INTEGER NOT NULL,
             byes_at BLOB,
             watched BLOB
         ) STRICT",
        "CREATE TABLE blocks (version INTEGER PRIMARY KEY, kind INTEGER NOT NULL, body BLOB NOT NULL) STRICT",
    ],
}];

/// Bytes of a row (rule 2), half of what the platform takes.
const MAX_ROW: usize = 1 << 20;
/// The longest entry of a registration: a topic of 33 bytes, and numbers of any size.
const ENTRY: usize = 72;
/// Positions in a row: 12 bytes each.
const POSITIONS: usize = 100_000;
/// Fewer dead entries than this are not worth a rewrite.
const MIN_DEAD: u64 = 1_024;

/// Storage works, and what it holds makes no sense.
const UNREADABLE: Fault = Fault::Invariant("a stored block can be read");

/// Kinds of blocks.
const UPDATE: i64 = 1;
const CHECKPOINT: i64 = 2;
const PARTIAL: i64 = 3;

/// What storage says of the object's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// There never was one, or it is deleted.
    Nothing,
    /// It was accepted.
    Open,
    /// It is over.
    Ended {
        /// When the partitions are told.
        byes_at: Nanos,
        /// Which.
        watched: Bytes,
    },
}

/// The writer of the rows.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// Of the newest write.
    pub(super) version: u64,
    /// Entries in the journal that are live or dead, while it is loaded.
    entries: u64,
    /// There is a stream in storage: there are tables.
    pub(super) exists: bool,
    /// Something was written and no [`Action::Sync`](super::Action::Sync) asks for it yet.
    pub(super) wrote: bool,
}

impl Store {
    /// What is stored, and the writer that goes on from there. Writes nothing: a push to a stream that is deleted must
    /// not bring its tables back (trap 40).
    pub(super) fn load(sql: &dyn Sql) -> Result<(Self, Stored), Fault> {
        let table = sql.first("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'stream'", &[])?;
        if table.is_none() {
            return Ok((Self::default(), Stored::Nothing));
        }
        let newest = "SELECT byes_at, watched, max(version, coalesce((SELECT max(version) FROM blocks), 0)) FROM stream";
        let Some(row) = sql.first(newest, &[])? else { return Ok((Self::default(), Stored::Nothing)) };
        let version = u64::try_from(row[2].integer()?).unwrap_or(0);
        let stored = match &row[0] {
            Value::Null => Stored::Open,
            byes_at => Stored::Ended { byes_at: byes_at.uint8()?, watched: row[1].blob()? },
        };
        Ok((Self { version, exists: true, ..Self::default() }, stored))
    }

    /// The stream begins.
    pub(super) fn open(&mut self, sql: &dyn Sql) -> Result<(), Fault> {
        migrate(sql, MIGRATIONS)?;
        self.exists = true;
        let version = self.next();
        Ok(sql.run("INSERT INTO stream (id, version) VALUES (1, ?)", &[Param::Integer(version)])?)
    }

    /// The stream is over; `watched` is what the partitions are to be told at `byes_at`.
    ///
    /// A socket whose acceptance never became durable has nothing to end.
    pub(super) fn end(&mut self, sql: &dyn Sql, byes_at: Nanos, watched: &[u8]) -> Result<(), Fault> {
        if !self.exists {
            return Ok(());
        }
        let version = self.next();
        Ok(sql.run(
            "UPDATE stream SET version = ?, byes_at = ?, watched = ?",
            &[Param::Integer(version), Param::Blob(&blob8(byes_at)), Param::Blob(watched)],
        )?)
    }

    /// What an Update did. Rewrites the journal when half of it is dead.
    pub(super) fn add_update(
        &mut self,
        sql: &dyn Sql,
        registry: &Registry,
        added: &[Key],
        removed: &[u32],
    ) -> Result<(), Fault> {
        self.entries += (added.len() + removed.len()) as u64;
        let live = registry.len() as u64;
        if self.entries > 2 * live + MIN_DEAD {
            self.entries = live;
            self.remove(sql, UPDATE)?;
            return self.add_registrations(sql, registry.iter(), &[]);
        }
        let added = added.iter().filter_map(|key| Some((key, registry.get(key)?)));
        self.add_registrations(sql, added, removed)
    }

    fn add_registrations<'a>(
        &mut self,
        sql: &dyn Sql,
        added: impl Iterator<Item = (&'a Key, &'a Registration)>,
        removed: &[u32],
    ) -> Result<(), Fault> {
        let mut removed = removed.chunks(MAX_ROW / ENTRY);
        let mut added = added.peekable();
        loop {
            let chunk: Vec<_> = added.by_ref().take(MAX_ROW / ENTRY).collect();
            let removed = removed.next().unwrap_or_default();
            if chunk.is_empty() && removed.is_empty() {
                return Ok(());
            }
            let topics = shared(chunk.iter().map(|(key, _)| *key));
            let entries = chunk.iter().zip(topics).map(|((_, it), topic)| stored_update::Registration {
                topic,
                slot: it.slot,
                partition: it.partition,
                generation: it.generation,
                cursor: it.cursor,
                target: it.target,
            });
            let update = StoredUpdate { added: entries.collect(), removed: removed.to_vec() };
            self.add(sql, UPDATE, &update.encode_to_vec())?;
        }
    }

    /// Positions of all registrations that have moved, in place of the ones stored before.
    pub(super) fn checkpoint(&mut self, sql: &dyn Sql, registry: &Registry) -> Result<(), Fault> {
        self.remove(sql, CHECKPOINT)?;
        let moved: Vec<_> = registry
            .iter()
            .filter(|(_, it)| it.position != it.cursor)
            .map(|(_, it)| (it.slot, it.position))
            .collect();
        for chunk in moved.chunks(POSITIONS) {
            let (slots, positions) = chunk.iter().copied().unzip();
            self.add(sql, CHECKPOINT, &StoredPositions { slots, positions }.encode_to_vec())?;
        }
        Ok(())
    }

    /// All registrations, at the positions of the last checkpoint; `later` has those that moved since.
    pub(super) fn registry(&mut self, sql: &dyn Sql, later: &StoredPositions) -> Result<Registry, Fault> {
        let mut topics = HashMap::new();
        let mut positions = Vec::new();
        self.entries = 0;
        let mut enter = |kind, body| -> Result<(), Fault> {
            if kind == CHECKPOINT {
                positions.push(StoredPositions::decode(body).map_err(|_| UNREADABLE)?);
                return Ok(());
            }
            let update = StoredUpdate::decode(body).map_err(|_| UNREADABLE)?;
            self.entries += (update.added.len() + update.removed.len()) as u64;
            // A topic that an Update removes is not added by the same one.
            for slot in update.removed {
                topics.remove(&slot);
            }
            for it in update.added {
                let key = Key::parse(&it.topic).ok_or(UNREADABLE)?;
                let mut registration = Registration::new(it.slot, it.generation, it.partition, it.cursor);
                registration.target = it.target;
                topics.insert(it.slot, (key, registration));
            }
            Ok(())
        };
        let mut outcome = Ok(());
        let statement = "SELECT kind, body FROM blocks WHERE kind IN (?, ?) ORDER BY version";
        sql.query(statement, &[Param::Integer(UPDATE), Param::Integer(CHECKPOINT)], &mut |row| {
            outcome = enter(row[0].integer()?, row[1].blob()?);
            Ok(if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        outcome?;
        positions.push(later.clone());
        for (slot, position) in positions.iter().flat_map(|some| some.slots.iter().zip(&some.positions)) {
            if let Some((_, registration)) = topics.get_mut(slot) {
                registration.position = *position;
            }
        }
        let mut registry = Registry::default();
        for (_, (key, mut registration)) in topics {
            registration.applied = true;
            registration.known = registration.position; // rule 20
            registry.insert(key, registration);
        }
        Ok(registry)
    }

    /// Which partitions keep topics of the registrations.
    pub(super) fn partitions(&mut self, sql: &dyn Sql) -> Result<Vec<u32>, Fault> {
        if !self.exists {
            return Ok(Vec::new());
        }
        let registry = self.registry(sql, &StoredPositions::default())?;
        let mut partitions: Vec<u32> = registry.iter().map(|(_, it)| it.partition).collect();
        partitions.sort_unstable();
        partitions.dedup();
        Ok(partitions)
    }

    /// More of a frame.
    pub(super) fn add_partial(&mut self, sql: &dyn Sql, bytes: &[u8]) -> Result<(), Fault> {
        bytes.chunks(MAX_ROW).try_for_each(|chunk| self.add(sql, PARTIAL, chunk))
    }

    /// All of it that was stored, which is removed.
    pub(super) fn take_partial(&mut self, sql: &dyn Sql, frame: &mut BytesMut) -> Result<(), Fault> {
        let kind = &[Param::Integer(PARTIAL)];
        sql.query("SELECT body FROM blocks WHERE kind = ? ORDER BY version", kind, &mut |row| {
            frame.extend_from_slice(&row[0].blob()?);
            Ok(ControlFlow::Continue(()))
        })?;
        self.remove(sql, PARTIAL)
    }

    /// Removes all blocks of a kind. The newest may be among them, and the version must not fall.
    fn remove(&mut self, sql: &dyn Sql, kind: i64) -> Result<(), Fault> {
        let version = self.next();
        sql.run("DELETE FROM blocks WHERE kind = ?", &[Param::Integer(kind)])?;
        Ok(sql.run("UPDATE stream SET version = ?", &[Param::Integer(version)])?)
    }

    fn add(&mut self, sql: &dyn Sql, kind: i64, body: &[u8]) -> Result<(), Fault> {
        let version = self.next();
        let params = &[Param::Integer(version), Param::Integer(kind), Param::Blob(body)];
        Ok(sql.run("INSERT INTO blocks (version, kind, body) VALUES (?, ?, ?)", params)?)
    }

    fn next(&mut self) -> i64 {
        self.wrote = true;
        self.version += 1;
        i64::try_from(self.version).unwrap_or(i64::MAX)
    }
}
