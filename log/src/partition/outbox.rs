//! What the Directories are to hear of stored identity updates (API-270).
//!
//! A row is written in the step that stores its update, so a change is owed exactly when its update is stored. It goes
//! when the Directory has said that it took it: at least once, and in the order of the updates. Deliveries hold up
//! nothing else; what fails is sent again when the alarm rings, which also starts an object that died in between.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use prost::Message;
use sealog_proto::internal::{AssociateRequest, NewEnvelope, associate_request::Association};

use super::Action;
use crate::participant::doubled;
use crate::{Fault, Migration, Nanos, Param, SECOND, Sql, SqlError, blob8};

pub(super) const MIGRATION: Migration = Migration {
    version: 4,
    statements: &[
        // One row for each update and Directory; `request` is an AssociateRequest.
        "CREATE TABLE outbox (directory INTEGER NOT NULL, sequence_id BLOB NOT NULL, request BLOB NOT NULL) STRICT",
        "CREATE UNIQUE INDEX outbox_by_position ON outbox (directory, sequence_id)",
    ],
};

/// Bytes of one delivery, at least one update: some 600 associations, a few dozen milliseconds of a Directory's time.
const BATCH_BYTES: usize = 64 << 10;
/// Deliveries at once. The platform keeps six connections per event: the sequencer, which publishes wait for, is never
/// to queue behind Directories that hang.
const IN_FLIGHT: usize = 2;
/// The time from one delivery to a repeat of it; it doubles with every failure in a row. Longer than a delivery may take.
const FIRST_PAUSE: Nanos = 5 * SECOND;
const LAST_PAUSE: Nanos = 60 * SECOND;

/// The Directories that are owed something.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    owed: BTreeMap<u32, Delivery>,
}

#[derive(Debug, Default)]
struct Delivery {
    /// The sequence id of the last update in the delivery under way.
    in_flight: Option<u64>,
    /// Failed deliveries in a row.
    failures: u32,
    /// No delivery before this time.
    not_before: Nanos,
}

impl Outbox {
    pub(super) fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        let mut this = Self::default();
        sql.query("SELECT DISTINCT directory FROM outbox", &[], &mut |row| {
            this.owe(directory_index(row[0].integer()?)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(this)
    }

    /// A row for this Directory was written.
    pub(super) fn owe(&mut self, directory: u32) {
        self.owed.entry(directory).or_default();
    }

    /// Sends what is due, oldest first, one delivery at a time to each Directory.
    pub(super) fn send(&mut self, sql: &dyn Sql, now: Nanos, actions: &mut Vec<Action>) -> Result<(), Fault> {
        let mut slots =
            IN_FLIGHT - self.owed.values().filter(|delivery| delivery.in_flight.is_some()).count();
        let mut done = Vec::new();
        for (&directory, delivery) in &mut self.owed {
            if slots == 0 {
                break;
            }
            if !delivery.is_due(now) {
                continue;
            }
            let Some((request, through)) = batch(sql, directory)? else {
                done.push(directory);
                continue;
            };
            delivery.in_flight = Some(through);
            delivery.not_before = now + doubled(FIRST_PAUSE, delivery.failures, LAST_PAUSE);
            slots -= 1;
            actions.push(Action::Associate { directory, request, through });
        }
        for directory in done {
            self.owed.remove(&directory);
        }
        Ok(())
    }

    /// A Directory has taken everything up to the update `through`, or has not said so.
    ///
    /// The answer may be to a delivery of an earlier instance: what it says is true all the same.
    pub(super) fn delivered(
        &mut self,
        sql: &dyn Sql,
        directory: u32,
        through: u64,
        delivered: bool,
    ) -> Result<(), Fault> {
        if delivered {
            sql.run(
                "DELETE FROM outbox WHERE directory = ? AND sequence_id <= ?",
                &[Param::Integer(directory.into()), Param::Blob(&blob8(through))],
            )?;
        }
        if let Some(delivery) = self.owed.get_mut(&directory)
            && delivery.in_flight == Some(through)
        {
            delivery.in_flight = None;
            if delivered {
                *delivery = Delivery::default();
            } else {
                delivery.failures = delivery.failures.saturating_add(1);
            }
        }
        Ok(())
    }

    /// After how long the alarm is to ring while anything is owed.
    pub(super) fn alarm(&self, now: Nanos) -> Option<Nanos> {
        let pause =
            |delivery: &Delivery| delivery.not_before.saturating_sub(now).clamp(FIRST_PAUSE, LAST_PAUSE);
        self.owed.values().map(pause).min()
    }
}

impl Delivery {
    fn is_due(&self, now: Nanos) -> bool {
        // A longer pause than any is a clock that jumped back.
        let pause = self.not_before.saturating_sub(now);
        self.in_flight.is_none() && !(1..=LAST_PAUSE).contains(&pause)
    }
}

/// Enters what a stored update changes; says which Directories are to hear of it.
pub(super) fn insert(sql: &dyn Sql, sequence_id: u64, envelope: &NewEnvelope) -> Result<Vec<u32>, Fault> {
    let inbox_id = envelope.topic.slice(1.min(envelope.topic.len())..);
    let mut requests: BTreeMap<u32, AssociateRequest> = BTreeMap::new();
    for change in &envelope.changes {
        let association = Association {
            key: change.key.clone(),
            inbox_id: inbox_id.clone(),
            sequence_id,
            live: change.live,
        };
        requests.entry(change.directory).or_default().associations.push(association);
    }
    for (directory, request) in &requests {
        sql.run(
            "INSERT INTO outbox (directory, sequence_id, request) VALUES (?, ?, ?)",
            &[
                Param::Integer((*directory).into()),
                Param::Blob(&blob8(sequence_id)),
                Param::Blob(&request.encode_to_vec()),
            ],
        )?;
    }
    Ok(requests.into_keys().collect())
}

/// The oldest rows of a Directory, as one request, and the id of the last update in it.
fn batch(sql: &dyn Sql, directory: u32) -> Result<Option<(AssociateRequest, u64)>, Fault> {
    let mut batch = AssociateRequest::default();
    let mut last = None;
    let mut bytes = 0;
    sql.query(
        "SELECT sequence_id, request FROM outbox WHERE directory = ? ORDER BY sequence_id",
        &[Param::Integer(directory.into())],
        &mut |row| {
            let request = row[1].blob()?;
            bytes += request.len();
            if bytes > BATCH_BYTES && last.is_some() {
                return Ok(ControlFlow::Break(()));
            }
            // Of two messages one after the other, the lists are one.
            let merged = batch.merge(request);
            merged.map_err(|_| SqlError("a row of the outbox does not decode".to_owned()))?;
            last = Some(row[0].uint8()?);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(last.map(|through| (batch, through)))
}

fn directory_index(stored: i64) -> Result<u32, SqlError> {
    u32::try_from(stored).map_err(|_| SqlError("a row of the outbox names no Directory".to_owned()))
}
