//! Reads: pages above positions (API-240), and the newest row of each topic (API-244).
//!
//! They need no state of the machine: what the rows say is the answer. The output gate keeps a row that is not durable
//! yet from being seen.

use std::collections::HashMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use sealog_proto::backend::Topic;
use sealog_proto::internal::{
    NewestReply, NewestRequest, NewestResult, ReadPosition, ReadReply, ReadRequest, StoredEnvelope,
};

use super::store::{META_COLUMNS, META_WIDTH, meta_of_row};
use crate::{Fault, Param, Sql, Value, blob8};

/// Topics per statement. A few fixed sizes keep the cache of prepared statements small; the largest leaves room under
/// the limit of 100 parameters.
const CHUNKS: [usize; 3] = [1, 12, 96];
/// Bytes of metadata and framing that a row adds to its body in an answer, generously.
pub(super) const ROW_OVERHEAD: u64 = 256;

/// Command `read`. Writes nothing. Anybody may repeat it.
pub fn read(sql: &dyn Sql, request: &ReadRequest) -> Result<ReadReply, Fault> {
    // Most topics of a large read have nothing new: their heads say so, a hundred at a time.
    let topics: Vec<&[u8]> = request.positions.iter().map(|position| position.topic.as_ref()).collect();
    let heads = heads(sql, &topics)?;
    let mut page = Page { reply: ReadReply::default(), request, bytes: 0 };
    for position in &request.positions {
        let head = heads.get(&position.topic).copied().unwrap_or(0);
        if head > position.after {
            page.read_topic(sql, position)?;
        }
        if page.reply.more {
            break;
        }
    }
    Ok(page.reply)
}

struct Page<'a> {
    reply: ReadReply,
    request: &'a ReadRequest,
    bytes: u64,
}

impl Page<'_> {
    /// Appends rows of one topic until the page is full.
    fn read_topic(&mut self, sql: &dyn Sql, position: &ReadPosition) -> Result<(), Fault> {
        let statement = format!(
            "SELECT {META_COLUMNS}, e.body FROM envelopes e
             WHERE e.topic = ? AND e.sequence_id > ? ORDER BY e.sequence_id LIMIT ?"
        );
        let room = u64::from(self.request.limit).saturating_sub(self.reply.envelopes.len() as u64);
        // One more than fits tells whether there is more.
        let limit = i64::try_from(room + 1).unwrap_or(i64::MAX);
        sql.query(
            &statement,
            &[Param::Blob(&position.topic), Param::Blob(&blob8(position.after)), Param::Integer(limit)],
            &mut |row| self.take(row),
        )?;
        Ok(())
    }

    fn take(&mut self, row: &[Value]) -> Result<ControlFlow<()>, crate::SqlError> {
        let envelope = row[META_WIDTH].blob()?;
        let bytes = self.bytes + envelope.len() as u64 + ROW_OVERHEAD;
        let full = self.reply.envelopes.len() as u64 >= u64::from(self.request.limit);
        let too_long = bytes > self.request.max_bytes && !self.reply.envelopes.is_empty();
        if full || too_long {
            self.reply.more = true;
            self.reply.cut = !full;
            return Ok(ControlFlow::Break(()));
        }
        self.bytes = bytes;
        self.reply.envelopes.push(StoredEnvelope { meta: Some(meta_of_row(row)?), envelope });
        Ok(ControlFlow::Continue(()))
    }
}

/// Command `newest`. Writes nothing. Anybody may repeat it.
pub fn newest(sql: &dyn Sql, request: &NewestRequest) -> Result<NewestReply, Fault> {
    let topics: Vec<&[u8]> = request.topics.iter().map(AsRef::as_ref).collect();
    let body = if request.include_envelope { "e.body" } else { "NULL" };
    let mut reply = NewestReply::default();
    let mut bytes = 0;
    for_each_chunk(&topics, |list, params| {
        if reply.cut {
            return Ok(());
        }
        // Not the head: the row of a head may have expired and been deleted.
        let statement = format!(
            "SELECT {META_COLUMNS}, {body} FROM topics t JOIN envelopes e ON e.topic = t.topic
             AND e.sequence_id = (SELECT max(n.sequence_id) FROM envelopes n WHERE n.topic = t.topic)
             WHERE t.topic IN ({list})"
        );
        sql.query(&statement, params, &mut |row| {
            let envelope = if request.include_envelope { Some(row[META_WIDTH].blob()?) } else { None };
            bytes += envelope.as_ref().map_or(0, Bytes::len) as u64 + ROW_OVERHEAD;
            if bytes > request.max_bytes && !reply.results.is_empty() {
                reply.cut = true;
                return Ok(ControlFlow::Break(()));
            }
            let topic = Topic { topic: row[0].blob()? };
            let meta = Some(meta_of_row(row)?);
            reply.results.push(NewestResult { topic: Some(topic), meta, envelope });
            Ok(ControlFlow::Continue(()))
        })
    })?;
    Ok(reply)
}

/// The newest ids of those topics that ever had one.
pub(super) fn heads(sql: &dyn Sql, topics: &[&[u8]]) -> Result<HashMap<Bytes, u64>, Fault> {
    let mut heads = HashMap::with_capacity(topics.len());
    for_each_chunk(topics, |list, params| {
        let statement = format!("SELECT topic, head FROM topics WHERE topic IN ({list})");
        sql.query(&statement, params, &mut |row| {
            heads.insert(row[0].blob()?, row[1].uint8()?);
            Ok(ControlFlow::Continue(()))
        })
    })?;
    Ok(heads)
}

/// Hands `topics` to `run` in chunks, each with its list of placeholders. A chunk that is not full repeats its last
/// topic, which an `IN` list does not mind.
fn for_each_chunk(
    topics: &[&[u8]],
    mut run: impl FnMut(&str, &[Param<'_>]) -> Result<(), crate::SqlError>,
) -> Result<(), Fault> {
    let mut rest = topics;
    while let Some(last) = rest.len().checked_sub(1) {
        let size = CHUNKS.into_iter().find(|size| *size > last).unwrap_or(CHUNKS[CHUNKS.len() - 1]);
        let (chunk, behind) = rest.split_at(size.min(rest.len()));
        let params: Vec<Param<'_>> =
            (0..size).map(|index| Param::Blob(chunk[index.min(chunk.len() - 1)])).collect();
        run(&vec!["?"; size].join(","), &params)?;
        rest = behind;
    }
    Ok(())
}
