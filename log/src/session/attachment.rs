//! What the socket keeps while the object sleeps (rules 2, 19).

use std::collections::BTreeMap;

use bytes::BytesMut;
use prost::Message;
use sealog_proto::internal::{SessionAttachment, StoredPositions, session_attachment};

use super::bucket::Bucket;
use super::ending::Watched;
use super::output::{Output, Ping};
use super::partial::{HEADER, MAX_TAIL, Partial};
use super::registry::Registry;
use super::{Phase, Session, Small};
use crate::Nanos;

/// Another format is not understood: the stream is failed, and the client resumes.
const FORMAT: u32 = 1;
/// What is used of the 16 KiB that the platform takes.
pub(super) const MAX_ATTACHMENT: usize = 13 << 10;

/// Counts and times that are still exact in any number format, and far from overflowing.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// Reads an attachment; `None` when it is none that an instance of this format can have left.
pub(super) fn read(bytes: &[u8]) -> Option<SessionAttachment> {
    SessionAttachment::decode(bytes).ok().filter(|it| it.format == FORMAT && is_sound(it))
}

fn is_sound(it: &SessionAttachment) -> bool {
    let counts = [it.next_number, it.nonce, it.sent].iter().all(|count| *count < MAX_NUMBER)
        && it.ordinal < u32::MAX
        && it.next_slot < u32::MAX
        && it.acked <= it.sent;
    let is_time = |time: Nanos| i64::try_from(time).is_ok();
    let ping = it.ping.as_ref();
    let times = is_time(it.last_frame) && ping.is_none_or(|ping| is_time(ping.at));
    let ping = ping.is_none_or(|ping| it.acked <= ping.sent && ping.sent <= it.sent);
    let came = it.partial_stored.saturating_add(it.partial.len() as u64);
    let partial = if it.partial_length == 0 {
        it.partial_stored == 0 && it.partial.len() < HEADER
    } else {
        it.partial.len() <= MAX_TAIL && came < it.partial_length && it.partial_length < MAX_NUMBER
    };
    counts && times && ping && partial
}

impl Session {
    /// What a new instance needs, but for what memory alone knows; `busy` says that there is some.
    pub(super) fn attachment(&self, busy: bool) -> Vec<u8> {
        let Small { update_id, ordinal, next_number, next_slot, watched, updates, pings } = &self.small;
        let (slots, positions) = self.moved.positions.iter().unzip();
        let attachment = SessionAttachment {
            format: FORMAT,
            version: self.store.version,
            busy,
            behind: self.registry.as_ref().is_some_and(Registry::is_behind),
            dirty: self.moved.dirty_since.is_some(),
            started: self.phase == Phase::Open,
            update_id: *update_id,
            ordinal: *ordinal,
            next_number: *next_number,
            next_slot: *next_slot,
            watched: watched.as_bytes(),
            sent: self.output.sent,
            acked: self.output.acked,
            last_frame: self.output.last_frame,
            nonce: self.output.nonce,
            ping: self.output.ping.map(|Ping { nonce, at, sent, late }| session_attachment::Ping {
                nonce,
                at,
                sent,
                late,
            }),
            updates: Some(session_attachment::Bucket { tokens: updates.tokens, at: updates.at }),
            pings: Some(session_attachment::Bucket { tokens: pings.tokens, at: pings.at }),
            partial: self.partial.tail.clone().freeze(),
            partial_stored: self.partial.stored as u64,
            partial_length: self.partial.length as u64,
            positions: Some(StoredPositions { slots, positions }),
        };
        attachment.encode_to_vec()
    }

    /// Takes up what an instance before this one left.
    pub(super) fn restore(&mut self, attachment: SessionAttachment) {
        let bucket = |bucket: Option<session_attachment::Bucket>| {
            let session_attachment::Bucket { tokens, at } = bucket.unwrap_or_default();
            Bucket { tokens, at }
        };
        self.phase = if attachment.started { Phase::Open } else { Phase::Accepted };
        self.small = Small {
            update_id: attachment.update_id,
            ordinal: attachment.ordinal,
            next_number: attachment.next_number,
            next_slot: attachment.next_slot,
            watched: Watched::of_bytes(&attachment.watched),
            updates: bucket(attachment.updates),
            pings: bucket(attachment.pings),
        };
        self.output = Output {
            sent: attachment.sent,
            acked: attachment.acked,
            last_frame: attachment.last_frame,
            nonce: attachment.nonce,
            ping: attachment.ping.map(|session_attachment::Ping { nonce, at, sent, late }| Ping {
                nonce,
                at,
                sent,
                late,
            }),
            ..Output::default()
        };
        self.partial = Partial {
            length: usize::try_from(attachment.partial_length).unwrap_or(usize::MAX),
            stored: usize::try_from(attachment.partial_stored).unwrap_or(usize::MAX),
            tail: BytesMut::from(attachment.partial.as_ref()),
        };
        let StoredPositions { slots, positions } = attachment.positions.unwrap_or_default();
        self.moved.positions = slots.into_iter().zip(positions).collect::<BTreeMap<_, _>>();
    }
}
