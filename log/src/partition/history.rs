//! Identity logs: the facts kept beside each update, and the reads that admission and the repair make of them.

use std::ops::ControlFlow;

use sealog_proto::Kind;
use sealog_proto::internal::{
    HistoryReply, HistoryRequest, InboxesReply, InboxesRequest, KnownReply, KnownRequest, history_reply,
    history_request,
};

use super::read::ROW_OVERHEAD;
use super::store;
use crate::{Fault, Migration, Param, Sql, Value, blob8};

/// A table of its own: the facts of an inbox lie together, and folding them reads no body.
pub(super) const MIGRATION: Migration = Migration {
    version: 5,
    statements: &["CREATE TABLE facts (
             topic BLOB NOT NULL,
             sequence_id BLOB NOT NULL,
             facts BLOB NOT NULL,
             PRIMARY KEY (topic, sequence_id)
         ) STRICT, WITHOUT ROWID"],
};

pub(super) fn insert_facts(sql: &dyn Sql, topic: &[u8], sequence_id: u64, facts: &[u8]) -> Result<(), Fault> {
    Ok(sql.run(
        "INSERT INTO facts (topic, sequence_id, facts) VALUES (?, ?, ?)",
        &[Param::Blob(topic), Param::Blob(&blob8(sequence_id)), Param::Blob(facts)],
    )?)
}

/// Command `history`: identity logs, all in one snapshot (API-232). Writes nothing. Anybody may repeat it.
///
/// Past `max_bytes` an inbox says `more`; its `head`, `count` and `stored` are told in any case.
pub fn history(sql: &dyn Sql, request: &HistoryRequest) -> Result<HistoryReply, Fault> {
    let mut page = Page { max_bytes: request.max_bytes, bytes: 0, is_empty: true };
    let inboxes = request.inboxes.iter().map(|inbox| page.read(sql, inbox)).collect::<Result<_, Fault>>()?;
    Ok(HistoryReply { inboxes })
}

struct Page {
    max_bytes: u64,
    bytes: u64,
    is_empty: bool,
}

impl Page {
    fn read(&mut self, sql: &dyn Sql, inbox: &history_request::Inbox) -> Result<history_reply::Inbox, Fault> {
        let mut reply = history_reply::Inbox {
            head: store::head(sql, &inbox.topic)?,
            count: count(sql, &inbox.topic)?,
            stored: store::find(sql, &inbox.topic, &inbox.hash)?.is_some(),
            ..history_reply::Inbox::default()
        };
        sql.query(
            "SELECT e.sequence_id, e.server_ns, f.facts, CASE WHEN f.facts IS NULL THEN e.body END
             FROM envelopes e LEFT JOIN facts f ON f.topic = e.topic AND f.sequence_id = e.sequence_id
             WHERE e.topic = ? AND e.sequence_id > ? ORDER BY e.sequence_id",
            &[Param::Blob(&inbox.topic), Param::Blob(&blob8(inbox.after))],
            &mut |row| {
                let entry = history_reply::Entry {
                    sequence_id: row[0].uint8()?,
                    server_ns: row[1].uint8()?,
                    facts: row[2].optional_blob()?,
                    body: row[3].optional_blob()?,
                };
                let kept = entry.facts.as_ref().or(entry.body.as_ref());
                self.bytes += kept.map_or(0, |kept| kept.len() as u64) + ROW_OVERHEAD;
                if self.bytes > self.max_bytes && !self.is_empty {
                    reply.more = true;
                    return Ok(ControlFlow::Break(()));
                }
                self.is_empty = false;
                reply.entries.push(entry);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        Ok(reply)
    }
}

fn count(sql: &dyn Sql, topic: &[u8]) -> Result<u64, Fault> {
    let row = sql.first("SELECT count(*) FROM envelopes WHERE topic = ?", &[Param::Blob(topic)])?;
    let count = row.as_deref().map_or(Ok(0), |row: &[Value]| row[0].integer())?;
    u64::try_from(count).map_err(|_| Fault::Invariant("a count is not negative"))
}

/// Command `known`: which envelopes are stored (API-222). Writes nothing. Anybody may repeat it.
pub fn known(sql: &dyn Sql, request: &KnownRequest) -> Result<KnownReply, Fault> {
    let known = request
        .envelopes
        .iter()
        .map(|key| Ok(store::find(sql, &key.topic, &key.hash)?.is_some()))
        .collect::<Result<_, Fault>>()?;
    Ok(KnownReply { known })
}

/// Command `inboxes`: the identity topics behind one, in order. Writes nothing. The repair of the Directories calls it
/// until a reply has fewer than `limit`.
pub fn inboxes(sql: &dyn Sql, request: &InboxesRequest) -> Result<InboxesReply, Fault> {
    let first = [Kind::IdentityUpdate as u8];
    let end = [Kind::IdentityUpdate as u8 + 1];
    let mut reply = InboxesReply::default();
    sql.query(
        "SELECT topic FROM topics WHERE topic > ? AND topic < ? ORDER BY topic LIMIT ?",
        &[
            Param::Blob(request.after.as_ref().max(&first)),
            Param::Blob(&end),
            Param::Integer(request.limit.into()),
        ],
        &mut |row| {
            reply.topics.push(row[0].blob()?);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(reply)
}
