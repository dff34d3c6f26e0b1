//! Writing rows, many with one statement: a statement costs more than a row.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::NewEnvelope;

use super::watch::News;
use super::{history, outbox, store};
use crate::{Fault, Nanos, Param, SECOND, Sql, blob8, uint8};

/// Rows per statement: seven parameters each, under the limit of 100. A few fixed sizes keep the cache of prepared
/// statements small.
const ROWS: [usize; 3] = [14, 4, 1];
/// Heads per statement: two parameters each.
const HEADS: [usize; 3] = [48, 8, 1];

/// Rows on their way into the log, under rising ids. What turns out to be a duplicate of a stored row, or of one before
/// it here, leaves its id unused.
pub(super) struct Rows<'a, 'n, 'w> {
    sql: &'a dyn Sql,
    server_ns: Nanos,
    next: u64,
    /// Entered, not written yet.
    pending: Vec<(u64, &'a NewEnvelope)>,
    written: Written,
    /// Takes what somebody watches.
    news: &'n mut News<'w>,
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The first id not used.
    pub(super) next: u64,
    /// The highest id stored.
    pub(super) highest: Option<u64>,
    /// How many were stored; the others are duplicates.
    pub(super) stored: usize,
    /// The Directories that are to hear of what was stored.
    pub(super) owed: BTreeSet<u32>,
    /// One per envelope, in order: what its row says.
    pub(super) metas: Vec<EnvelopeMeta>,
}

impl<'a, 'n, 'w> Rows<'a, 'n, 'w> {
    pub(super) fn new(sql: &'a dyn Sql, server_ns: Nanos, first_id: u64, news: &'n mut News<'w>) -> Self {
        Self { sql, server_ns, next: first_id, pending: Vec::new(), written: Written::default(), news }
    }

    pub(super) fn push(&mut self, envelope: &'a NewEnvelope) -> Result<(), Fault> {
        self.pending.push((self.next, envelope));
        self.next += 1;
        if self.pending.len() == ROWS[0] {
            self.flush()?;
        }
        Ok(())
    }

    /// Storage, with everything that was entered so far in it.
    pub(super) fn flushed(&mut self) -> Result<&'a dyn Sql, Fault> {
        self.flush()?;
        Ok(self.sql)
    }

    pub(super) fn finish(mut self) -> Result<Written, Fault> {
        self.flush()?;
        self.written.next = self.next;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        let pending = std::mem::take(&mut self.pending);
        let mut inserted = HashSet::with_capacity(pending.len());
        for chunk in chunks(&pending, ROWS) {
            self.insert(chunk, &mut inserted)?;
        }
        let heads: Vec<(u64, &NewEnvelope)> =
            pending.iter().filter(|(id, _)| inserted.contains(id)).copied().collect();
        for (_, envelope) in &heads {
            self.news.before(self.sql, &envelope.topic)?;
        }
        for chunk in chunks(&heads, HEADS) {
            self.raise_heads(chunk)?;
        }
        for (id, envelope) in pending {
            let meta = if inserted.contains(&id) {
                self.written.stored += 1;
                self.written.highest = Some(id);
                self.insert_identity(id, envelope)?;
                let meta = store::meta(envelope, id, self.server_ns, self.expiry(envelope)?);
                self.news.stored(id, &meta, &envelope.body)?;
                meta
            } else {
                let stored = store::find(self.sql, &envelope.topic, &envelope.hash)?;
                stored.ok_or(Fault::Invariant("an envelope is stored or a duplicate of a stored one"))?
            };
            self.written.metas.push(meta);
        }
        Ok(())
    }

    /// Stores the rows whose (topic, hash) is not there yet.
    fn insert(&self, rows: &[(u64, &NewEnvelope)], inserted: &mut HashSet<u64>) -> Result<(), Fault> {
        let server_ns = blob8(self.server_ns);
        let mut numbers = Vec::with_capacity(rows.len());
        for (id, envelope) in rows {
            numbers.push((blob8(*id), blob8(self.expiry(envelope)?)));
        }
        let mut params = Vec::with_capacity(7 * rows.len());
        for ((_, envelope), (id, expiry_ns)) in rows.iter().zip(&numbers) {
            params.extend([
                Param::Blob(&envelope.topic),
                Param::Blob(id),
                Param::Blob(&envelope.hash),
                Param::Blob(&server_ns),
                Param::Blob(expiry_ns),
                Param::Integer(envelope.is_commit_or_proposal.into()),
                Param::Blob(&envelope.body),
            ]);
        }
        let statement = format!(
            "INSERT INTO envelopes (topic, sequence_id, hash, server_ns, expiry_ns, is_commit_or_proposal, body)
             VALUES {} ON CONFLICT (topic, hash) DO NOTHING RETURNING sequence_id",
            vec!["(?, ?, ?, ?, ?, ?, ?)"; rows.len()].join(", ")
        );
        self.sql.query(&statement, &params, &mut |row| {
            inserted.insert(uint8(&row[0].blob()?)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    /// What identity updates bring along. Only a row that was stored has it: a duplicate changes nothing.
    fn insert_identity(&mut self, id: u64, envelope: &NewEnvelope) -> Result<(), Fault> {
        if let Some(facts) = &envelope.facts {
            history::insert_facts(self.sql, &envelope.topic, id, facts)?;
        }
        self.written.owed.extend(outbox::insert(self.sql, id, envelope)?);
        Ok(())
    }

    /// Moves heads up to new rows. A head that is not below its row is a broken order (assertion a).
    fn raise_heads(&self, rows: &[(u64, &NewEnvelope)]) -> Result<(), Fault> {
        let ids: Vec<[u8; 8]> = rows.iter().map(|(id, _)| blob8(*id)).collect();
        let params: Vec<Param<'_>> = rows
            .iter()
            .zip(&ids)
            .flat_map(|((_, envelope), id)| [Param::Blob(&envelope.topic), Param::Blob(id)])
            .collect();
        let statement = format!(
            "INSERT INTO topics (topic, head) VALUES {} ON CONFLICT (topic)
             DO UPDATE SET head = excluded.head WHERE head < excluded.head RETURNING 1",
            vec!["(?, ?)"; rows.len()].join(", ")
        );
        let mut raised = 0;
        self.sql.query(&statement, &params, &mut |_| {
            raised += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Fault::assert(raised == rows.len(), "a new id lies above the head of its topic")
    }

    fn expiry(&self, envelope: &NewEnvelope) -> Result<Nanos, Fault> {
        if envelope.retention_seconds == 0 {
            return Ok(0);
        }
        // OPS-020. The settings are checked so that this holds for centuries.
        let retention = envelope.retention_seconds.checked_mul(SECOND);
        retention
            .and_then(|retention| self.server_ns.checked_add(retention))
            .filter(|expiry| i64::try_from(*expiry).is_ok())
            .ok_or(Fault::Invariant("an expiry fits a signed 64-bit time"))
    }
}

/// Cuts a slice into pieces of the given sizes, which fall and end with 1.
fn chunks<T>(mut rest: &[T], sizes: [usize; 3]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = sizes.into_iter().find(|size| *size <= rest.len())?;
        let (chunk, behind) = rest.split_at(size);
        rest = behind;
        Some(chunk)
    })
}
