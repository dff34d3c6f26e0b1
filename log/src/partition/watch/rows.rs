//! The rows of the watches: one for each call that changed something, in order of their ids. What a session watches is
//! what its rows say, one after the other.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use prost::Message;
use sealog_proto::internal::{Watch, WatchRow};

use super::sessions::{Id, Session};
use crate::key::Key;
use crate::{Fault, Migration, Nanos, Param, Sql, SqlError, blob8};

/// The tables, and the mark beside what else a step writes (rule 8).
pub(in crate::partition) const MIGRATION: Migration = Migration {
    version: 7,
    statements: &[
        "CREATE TABLE watches (
             id INTEGER PRIMARY KEY,
             session BLOB NOT NULL,
             number BLOB NOT NULL,
             content BLOB NOT NULL,
             heard BLOB NOT NULL,
             entries BLOB NOT NULL
         ) STRICT",
        "ALTER TABLE progress ADD COLUMN pushed_through BLOB NOT NULL DEFAULT x'0000000000000000'",
    ],
};

/// Additions and removals in one row: at most 43 bytes each, so that a row stays below 1 MiB (rule 5).
const MAX_ENTRIES: usize = 24_000;
/// Rows of one session before they are rewritten as what is left of them (rule 5).
const MAX_ROWS: usize = 16;
/// Below so many entries dead ones cost less than the rewrite.
const FEW_ENTRIES: usize = 64;

/// A topic and its generation.
pub(super) type Entry = (Key, u32);

/// One row, as it is loaded.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) session: Id,
    pub(super) number: u64,
    pub(super) content: [u8; 8],
    pub(super) heard: Nanos,
    pub(super) removed: Vec<Entry>,
    pub(super) added: Vec<Entry>,
}

/// Hands rows behind `after` to `each`, until it has enough. Says whether it saw all of them.
pub(super) fn load(
    sql: &dyn Sql,
    after: i64,
    mut each: impl FnMut(Row) -> Result<ControlFlow<()>, Fault>,
) -> Result<bool, Fault> {
    let mut outcome = Ok(ControlFlow::Continue(()));
    sql.query(
        "SELECT id, session, number, content, heard, entries FROM watches WHERE id > ? ORDER BY id",
        &[Param::Integer(after)],
        &mut |row| {
            let (removed, added) = decode(row[5].blob()?)?;
            outcome = each(Row {
                id: row[0].integer()?,
                session: exact(&row[1].blob()?)?,
                number: row[2].uint8()?,
                content: exact(&row[3].blob()?)?,
                heard: row[4].uint8()?,
                removed,
                added,
            });
            Ok(if matches!(outcome, Ok(ControlFlow::Continue(()))) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        },
    )?;
    Ok(outcome?.is_continue())
}

/// Stores what a call changed; the session has its number already. Rewrites the rows of the session when they are many,
/// or half of what they say is over: then returns all that it watches, for a comparison with the index.
pub(super) fn change(
    sql: &dyn Sql,
    session: &mut Session,
    removed: &[Entry],
    added: &[Entry],
) -> Result<Option<BTreeMap<Key, u32>>, Fault> {
    let entries = session.entries + removed.len() + added.len();
    let rows = session.rows.len() + (removed.len() + added.len()).div_ceil(MAX_ENTRIES);
    let half_dead = entries > FEW_ENTRIES.max(2 * session.live);
    // What is live may need many rows itself: rewriting them would not make them fewer.
    if rows <= MAX_ROWS + session.live / MAX_ENTRIES && !half_dead {
        append(sql, session, removed, added)?;
        return Ok(None);
    }
    let mut live = live(sql, session)?;
    replay(&mut live, removed, added);
    delete(sql, session)?;
    let added: Vec<Entry> = live.iter().map(|(key, generation)| (*key, *generation)).collect();
    append(sql, session, &[], &added)?;
    Ok(Some(live))
}

/// What the rows of a session say that it watches.
pub(super) fn live(sql: &dyn Sql, session: &Session) -> Result<BTreeMap<Key, u32>, Fault> {
    let mut live = BTreeMap::new();
    for id in &session.rows {
        let row = sql.first("SELECT entries FROM watches WHERE id = ?", &[Param::Integer(*id)])?;
        let row = row.ok_or(Fault::Invariant("a row of a session that watches is stored"))?;
        let (removed, added) = decode(row[0].blob()?)?;
        replay(&mut live, &removed, &added);
    }
    Ok(live)
}

/// Deletes the rows of a session.
pub(super) fn delete(sql: &dyn Sql, session: &mut Session) -> Result<(), Fault> {
    for id in session.rows.drain(..) {
        sql.run("DELETE FROM watches WHERE id = ?", &[Param::Integer(id)])?;
    }
    session.entries = 0;
    Ok(())
}

/// Stores when a session was heard.
pub(super) fn touch(sql: &dyn Sql, session: &Session) -> Result<(), Fault> {
    let Some(id) = session.rows.last() else { return Ok(()) };
    Ok(sql.run(
        "UPDATE watches SET heard = ? WHERE id = ?",
        &[Param::Blob(&blob8(session.heard)), Param::Integer(*id)],
    )?)
}

fn replay(live: &mut BTreeMap<Key, u32>, removed: &[Entry], added: &[Entry]) {
    for (key, generation) in removed {
        if live.get(key) == Some(generation) {
            live.remove(key);
        }
    }
    live.extend(added.iter().copied());
}

fn append(sql: &dyn Sql, session: &mut Session, removed: &[Entry], added: &[Entry]) -> Result<(), Fault> {
    for piece in removed.chunks(MAX_ENTRIES) {
        insert(sql, session, &WatchRow { remove: piece.iter().map(watch).collect(), add: Vec::new() })?;
    }
    for piece in added.chunks(MAX_ENTRIES) {
        insert(sql, session, &WatchRow { remove: Vec::new(), add: piece.iter().map(watch).collect() })?;
    }
    Ok(())
}

fn insert(sql: &dyn Sql, session: &mut Session, changes: &WatchRow) -> Result<(), Fault> {
    let row = sql.first(
        "INSERT INTO watches (session, number, content, heard, entries) VALUES (?, ?, ?, ?, ?) RETURNING id",
        &[
            Param::Blob(&session.id),
            Param::Blob(&blob8(session.number)),
            Param::Blob(&session.content),
            Param::Blob(&blob8(session.heard)),
            Param::Blob(&changes.encode_to_vec()),
        ],
    )?;
    let row = row.ok_or(Fault::Invariant("an insert returns its id"))?;
    session.rows.push(row[0].integer()?);
    session.entries += changes.remove.len() + changes.add.len();
    Ok(())
}

fn decode(entries: Bytes) -> Result<(Vec<Entry>, Vec<Entry>), SqlError> {
    let row =
        WatchRow::decode(entries).map_err(|_| SqlError("a row of watches does not decode".to_owned()))?;
    let entries = |watches: &[Watch]| watches.iter().map(entry).collect::<Option<Vec<_>>>();
    entries(&row.remove)
        .zip(entries(&row.add))
        .ok_or_else(|| SqlError("a row of watches names what is no topic".to_owned()))
}

/// `None`: it names no topic.
pub(super) fn entry(watch: &Watch) -> Option<Entry> {
    Some((Key::parse(&watch.topic)?, watch.generation))
}

fn watch((key, generation): &Entry) -> Watch {
    Watch { topic: key.to_bytes(), generation: *generation }
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N], SqlError> {
    bytes.try_into().map_err(|_| SqlError(format!("a stored value has not {N} bytes")))
}
