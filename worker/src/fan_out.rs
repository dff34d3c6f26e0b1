//! Reads over many partitions: which calls to make, and how their replies become one answer.
//!
//! One call per partition concerned, never one per topic, in waves of at most [`WIDTH`]. What was asked of a wave
//! depends on what earlier ones left open, so that memory stays near the size of one answer. Pure: [`PageBuilder`] and
//! [`NewestBuilder`] say what to call next and take the replies, [`Spread`] is for questions that are answered at once;
//! the services do the calling.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use prost::{Message, length_delimiter_len};
use sealog_proto::{
    Topic,
    internal::{
        NewestReply, NewestRequest, NewestResult, RawContinuation, RawQueryNewestResponse, RawQueryResponse,
        ReadPosition, ReadReply, ReadRequest, StoredEnvelope,
    },
};

mod spread;

pub(crate) use spread::Spread;

/// Calls at once: the platform keeps six connections of a request open and queues the rest.
pub const WIDTH: usize = 6;

/// The most that a partition counts for a row beside its body.
const ROW_ALLOWANCE_BYTES: u64 = 256;

/// Why a fan-out fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanOutError {
    /// The answer would be longer than `limit` bytes (API-282). It is never cut (API-283).
    TooLong {
        /// Bytes of an answer at most.
        limit: usize,
    },
    /// A reply contradicts its request, so that it cannot be used and asking again might never end.
    Contradiction,
}

/// What one partition shall be asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<Request> {
    /// Index of the partition.
    pub partition: u32,
    /// The request to send.
    pub request: Request,
}

/// Builds a page of a Query (API-240).
#[derive(Debug)]
pub struct PageBuilder {
    /// Partitions that may still hold rows of the page, with the positions to read from.
    pending: VecDeque<(u32, Vec<ReadPosition>)>,
    /// Rows that the page still takes.
    room: usize,
    max_bytes: usize,
    bytes: usize,
    rows: Vec<StoredEnvelope>,
    has_more: bool,
}

impl PageBuilder {
    /// A page of at most `limit` rows and `max_bytes` bytes from the topics above their cursors. A topic that is named
    /// more than once is read from its lowest cursor (API-242).
    pub fn new(mut cursors: Vec<(Topic, u64)>, partitions: u32, limit: u32, max_bytes: usize) -> Self {
        cursors.sort_unstable();
        cursors.dedup_by(|later, lowest| later.0 == lowest.0);
        let positions = cursors.into_iter().map(|(topic, after)| {
            (topic.partition(partitions), ReadPosition { topic: topic.as_bytes().clone(), after })
        });
        Self {
            pending: group(positions),
            room: limit as usize,
            max_bytes,
            bytes: 0,
            rows: Vec::new(),
            has_more: false,
        }
    }

    /// The calls to make now, all at once. None: the page is complete.
    pub fn next_wave(&mut self) -> Vec<Call<ReadRequest>> {
        if self.room == 0 && self.has_more {
            return Vec::new();
        }
        let wave = self.pending.len().min(WIDTH);
        // With no room left it is still to be learnt whether there are more rows: a limit of 0 asks just that.
        let limit = u32::try_from(self.room).unwrap_or(u32::MAX);
        let max_bytes = share(self.max_bytes - self.bytes, wave);
        self.pending
            .drain(..wave)
            .map(|(partition, positions)| Call {
                partition,
                request: ReadRequest { positions, limit, max_bytes },
            })
            .collect()
    }

    /// Takes the replies to a wave, in its order.
    pub fn absorb(
        &mut self,
        wave: Vec<Call<ReadRequest>>,
        replies: Vec<ReadReply>,
    ) -> Result<(), FanOutError> {
        wave.into_iter().zip(replies).try_for_each(|(call, reply)| self.absorb_one(call, reply))
    }

    fn absorb_one(&mut self, call: Call<ReadRequest>, reply: ReadReply) -> Result<(), FanOutError> {
        let positions = if reply.cut && reply.envelopes.len() < self.room {
            // Bytes ended the reply before the page was full: the rest must still come (API-240, API-283).
            Some(advance(call.request.positions, &reply.envelopes)?)
        } else {
            None
        };
        let left_out = reply.envelopes.len() > self.room;
        for row in reply.envelopes.into_iter().take(self.room) {
            self.room -= 1;
            self.bytes += embedded_len(&row);
            self.rows.push(row);
        }
        if self.bytes > self.max_bytes {
            return Err(FanOutError::TooLong { limit: self.max_bytes });
        }
        match positions {
            Some(positions) => self.pending.push_back((call.partition, positions)),
            // Neither rows nor bytes ended the reply, and yet it is not all there is.
            None if reply.more && self.room > 0 => return Err(FanOutError::Contradiction),
            None => self.has_more |= left_out || reply.more,
        }
        Ok(())
    }

    /// The page.
    pub fn finish(self) -> RawQueryResponse {
        RawQueryResponse {
            envelopes: self.rows,
            continuation: Some(RawContinuation { has_more: self.has_more }),
        }
    }
}

/// Moves the positions behind the rows that were read. A reply without rows moves none: nothing would ever end it.
fn advance(
    mut positions: Vec<ReadPosition>,
    rows: &[StoredEnvelope],
) -> Result<Vec<ReadPosition>, FanOutError> {
    let mut reached = BTreeMap::new();
    for row in rows {
        let meta = row.meta.as_ref().ok_or(FanOutError::Contradiction)?;
        let topic = meta.topic.as_ref().ok_or(FanOutError::Contradiction)?;
        let cursor = meta.cursor.as_ref().ok_or(FanOutError::Contradiction)?;
        reached.insert(&topic.topic, cursor.sequence_id);
    }
    let mut moved = false;
    for position in &mut positions {
        if let Some(&id) = reached.get(&position.topic) {
            moved |= id > position.after;
            position.after = id;
        }
    }
    if moved { Ok(positions) } else { Err(FanOutError::Contradiction) }
}

/// Builds the answer of a `QueryNewest` (API-244).
#[derive(Debug)]
pub struct NewestBuilder {
    pending: VecDeque<(u32, Vec<Bytes>)>,
    include_envelope: bool,
    /// Calls in the next wave at most.
    width: usize,
    max_bytes: usize,
    bytes: usize,
    results: Vec<NewestResult>,
}

impl NewestBuilder {
    /// The newest row of each distinct topic, `max_bytes` in all.
    pub fn new(mut topics: Vec<Topic>, partitions: u32, include_envelope: bool, max_bytes: usize) -> Self {
        topics.sort_unstable();
        topics.dedup();
        let topics = topics.into_iter().map(|topic| (topic.partition(partitions), topic.as_bytes().clone()));
        Self {
            pending: group(topics),
            include_envelope,
            width: WIDTH,
            max_bytes,
            bytes: 0,
            results: Vec::new(),
        }
    }

    /// The calls to make now, all at once. None: the answer is complete.
    pub fn next_wave(&mut self) -> Vec<Call<NewestRequest>> {
        let wave = self.pending.len().min(self.width);
        let max_bytes = share(self.max_bytes - self.bytes, wave);
        self.pending
            .drain(..wave)
            .map(|(partition, topics)| {
                // A partition only estimates. With the allowance, a reply is cut only when its bodies alone are too long.
                let max_bytes = max_bytes + topics.len() as u64 * ROW_ALLOWANCE_BYTES;
                let include_envelope = self.include_envelope;
                Call { partition, request: NewestRequest { topics, include_envelope, max_bytes } }
            })
            .collect()
    }

    /// Takes the replies to a wave, in its order.
    ///
    /// A reply over its share of the bytes is asked for again alone, when its share is all that is left. If it is cut then
    /// too, the answer is too long.
    pub fn absorb(
        &mut self,
        wave: Vec<Call<NewestRequest>>,
        replies: Vec<NewestReply>,
    ) -> Result<(), FanOutError> {
        let too_long = FanOutError::TooLong { limit: self.max_bytes };
        let calls = wave.len();
        for (call, reply) in wave.into_iter().zip(replies) {
            if reply.cut {
                if calls == 1 {
                    return Err(too_long);
                }
                self.width = 1;
                self.pending.push_back((call.partition, call.request.topics));
                continue;
            }
            self.bytes += reply.results.iter().map(embedded_len).sum::<usize>();
            if self.bytes > self.max_bytes {
                return Err(too_long);
            }
            self.results.extend(reply.results);
        }
        Ok(())
    }

    /// The answer.
    pub fn finish(self) -> RawQueryNewestResponse {
        RawQueryNewestResponse { results: self.results }
    }
}

/// Sorts items into one group per partition, in order of the partitions.
fn group<T>(items: impl Iterator<Item = (u32, T)>) -> VecDeque<(u32, Vec<T>)> {
    let mut groups = BTreeMap::<u32, Vec<T>>::new();
    for (partition, item) in items {
        groups.entry(partition).or_default().push(item);
    }
    groups.into_iter().collect()
}

/// The part of `bytes` that one of `calls` may use.
fn share(bytes: usize, calls: usize) -> u64 {
    bytes.checked_div(calls).unwrap_or(0) as u64
}

/// Bytes of a row inside an answer: every row there is field 1, so its key is one byte.
fn embedded_len(row: &impl Message) -> usize {
    let length = row.encoded_len();
    1 + length_delimiter_len(length) + length
}

#[cfg(test)]
#[path = "fan_out_tests.rs"]
mod tests;
