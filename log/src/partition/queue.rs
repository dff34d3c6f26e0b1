//! The publishes that wait for ids, in the order in which they came.

use std::collections::VecDeque;

use sealog_proto::internal::StoreRequest;

use super::CallId;
use crate::{Nanos, participant};

/// Bounds of one batch (rule 5): what one step may hold of the isolate's 128 MB and of its event's time.
const BATCH_PUBLISHES: usize = 512;
const BATCH_ENVELOPES: u32 = 2_048;
const BATCH_BYTES: u64 = 8 << 20;
/// Bounds of the queue. Beyond them a publish is refused at once: waiting would only end in its time limit.
const QUEUE_PUBLISHES: usize = 4_096;
const QUEUE_BYTES: u64 = 32 << 20;

/// One waiting publish.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) call: CallId,
    pub(super) request: StoreRequest,
    pub(super) since: Nanos,
    bytes: u64,
}

impl Waiting {
    pub(super) fn new(call: CallId, since: Nanos, request: StoreRequest) -> Self {
        let bytes = request.envelopes.iter().map(participant::size).sum();
        Self { call, request, since, bytes }
    }

    /// Ids it may need.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.request.envelopes.len()).unwrap_or(u32::MAX)
    }
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether another publish is to be refused. One is always taken, however large.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= QUEUE_PUBLISHES || self.bytes >= QUEUE_BYTES
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes;
        self.waiting.push_back(waiting);
    }

    /// Returns a batch to the front, in its old order.
    pub(super) fn put_back(&mut self, batch: Vec<Waiting>) {
        for waiting in batch.into_iter().rev() {
            self.bytes += waiting.bytes;
            self.waiting.push_front(waiting);
        }
    }

    /// As many publishes as one step may hold, at least one if there is any.
    pub(super) fn take_batch(&mut self) -> Vec<Waiting> {
        let mut batch = Vec::new();
        let (mut envelopes, mut bytes) = (0_u32, 0);
        while let Some(next) = self.waiting.front() {
            envelopes = envelopes.saturating_add(next.count());
            bytes += next.bytes;
            let fits = batch.len() < BATCH_PUBLISHES && envelopes <= BATCH_ENVELOPES && bytes <= BATCH_BYTES;
            if !fits && !batch.is_empty() {
                break;
            }
            batch.extend(self.pop());
        }
        batch
    }

    /// Publishes that came before `limit`. The queue is in order of arrival.
    pub(super) fn take_expired(&mut self, limit: Nanos) -> Vec<Waiting> {
        let mut expired = Vec::new();
        while self.waiting.front().is_some_and(|waiting| waiting.since < limit) {
            expired.extend(self.pop());
        }
        expired
    }

    pub(super) fn take_all(&mut self) -> Vec<Waiting> {
        self.bytes = 0;
        self.waiting.drain(..).collect()
    }

    fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= waiting.bytes;
        Some(waiting)
    }
}
