//! Pages of history (rules 14, 15).

use std::collections::HashMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use sealog_proto::internal::{
    PullReply, PullRequest, StoredEnvelope, pull_reply::Item, pull_request::Position,
};

use crate::partition::read::{self, ROW_OVERHEAD};
use crate::partition::store::{META_COLUMNS, META_WIDTH, meta_of_row};
use crate::{Fault, Param, Sql, blob8};

/// Bounds of one page: what one event does, and what one frame holds.
const MAX_TOPICS: usize = 256;
const MAX_ROWS: u8 = 64;

/// Command `pull`: rows above the positions of a session, read in one event.
///
/// Writes nothing, and needs no watch. The session repeats it while it has no answer.
pub fn pull(sql: &dyn Sql, request: &PullRequest) -> Result<PullReply, Fault> {
    let (asked, too_many) = request.positions.split_at(request.positions.len().min(MAX_TOPICS));
    let topics: Vec<&[u8]> = asked.iter().map(|position| position.topic.as_ref()).collect();
    let heads = read::heads(sql, &topics)?;
    let mut page = Page { heads, budget: request.budget, bytes: 0, is_full: false, is_empty: true };
    let mut reply = PullReply { number: request.number, ..PullReply::default() };
    for position in asked {
        match page.read(sql, position)? {
            Some(item) => reply.items.push(item),
            None => reply.untouched.push(position.topic.clone()),
        }
    }
    reply.untouched.extend(too_many.iter().map(|position| position.topic.clone()));
    Ok(reply)
}

struct Page {
    heads: HashMap<Bytes, u64>,
    budget: u64,
    bytes: u64,
    /// A row did not fit.
    is_full: bool,
    /// No row is in it yet.
    is_empty: bool,
}

impl Page {
    /// The next topic of the page; `None` when not even its first row fits.
    fn read(&mut self, sql: &dyn Sql, position: &Position) -> Result<Option<Item>, Fault> {
        let head = self.heads.get(&position.topic).copied().unwrap_or(0);
        let mut item = Item {
            topic: position.topic.clone(),
            generation: position.generation,
            after: position.after,
            rows: Vec::new(),
            through: head,
            head,
        };
        if head <= position.after {
            return Ok(Some(item));
        }
        if self.is_full {
            return Ok(None);
        }
        let statement = format!(
            "SELECT {META_COLUMNS}, e.body FROM envelopes e
             WHERE e.topic = ? AND e.sequence_id > ? ORDER BY e.sequence_id LIMIT ?"
        );
        let mut last = None;
        sql.query(
            &statement,
            &[
                Param::Blob(&position.topic),
                Param::Blob(&blob8(position.after)),
                Param::Integer(MAX_ROWS.into()),
            ],
            &mut |row| {
                let envelope = row[META_WIDTH].blob()?;
                let bytes = self.bytes + envelope.len() as u64 + ROW_OVERHEAD;
                if bytes > self.budget && !self.is_empty {
                    self.is_full = true;
                    return Ok(ControlFlow::Break(()));
                }
                self.bytes = bytes;
                self.is_empty = false;
                last = Some(row[1].uint8()?);
                item.rows.push(StoredEnvelope { meta: Some(meta_of_row(row)?), envelope });
                Ok(ControlFlow::Continue(()))
            },
        )?;
        if self.is_full && item.rows.is_empty() {
            return Ok(None);
        }
        if let Some(last) = last
            && (self.is_full || item.rows.len() == usize::from(MAX_ROWS))
        {
            item.through = last;
        }
        Ok(Some(item))
    }
}
