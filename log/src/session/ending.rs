//! How a stream ends, and how its watches go (rule 22).

use std::collections::BTreeSet;

use bytes::Bytes;
use sealog_proto::status::Code;

use super::store::Stored;
use super::turn::{Status, Stop, Turn};
use super::{Action, Kind, Phase, Session};
use crate::{Fault, Nanos, SECOND};

/// The byes of streams that lost their sockets are spread over so long: a deploy ends all streams at once.
const BYE_JITTER: Nanos = 600 * SECOND;
/// When an object whose byes were cut short by its own end begins them again.
const BYE_AGAIN: Nanos = 30 * SECOND;

/// Partitions that may hold watches of the session: a bit for each, so that it fits the attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Watched(BTreeSet<u32>);

impl Watched {
    pub(super) fn insert(&mut self, partition: u32) {
        self.0.insert(partition);
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let bits = (0..).zip(bytes).flat_map(|(index, byte)| {
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| index * 8 + bit)
        });
        Self(bits.collect())
    }

    pub(super) fn as_bytes(&self) -> Bytes {
        let len = self.0.last().map_or(0, |last| *last as usize / 8 + 1);
        let mut bytes = vec![0; len];
        for partition in &self.0 {
            bytes[*partition as usize / 8] |= 1 << (partition % 8);
        }
        bytes.into()
    }
}

impl Session {
    /// The response ends with the status of a failure, or OK after a half-close.
    pub(super) fn stop(&mut self, turn: &mut Turn<'_>, stop: Stop) {
        let status = match stop {
            Stop::Status(status) => status,
            Stop::Fault(fault) => {
                let code = match fault {
                    Fault::Sql(_) => Code::Unavailable,
                    Fault::Invariant(_) => Code::Internal,
                };
                turn.actions.push(Action::Report(fault));
                Status::new(code, "the stream failed here; open it again from your cursors")
            }
        };
        turn.actions.push(Action::Finish(status));
        self.end(turn);
    }

    /// Nothing is sent any more; the partitions are told.
    pub(super) fn end(&mut self, turn: &mut Turn<'_>) {
        let fresh = Self::new(self.setup.clone(), self.kind);
        let Self { small, store, counters, .. } = std::mem::replace(self, fresh);
        self.phase = Phase::Over;
        self.small = small;
        self.store = store;
        self.counters = counters;
        if self.kind == Kind::Bidirectional {
            let ended = self.store.end(turn.sql, turn.now, &self.small.watched.as_bytes());
            turn.actions.extend(ended.err().map(Action::Report));
            if turn.rang {
                turn.actions.push(Action::Alarm { after: BYE_AGAIN });
            }
        }
        self.say_bye();
    }

    fn say_bye(&mut self) {
        for partition in &self.small.watched.0 {
            self.channels.say_bye(*partition);
        }
        self.closing = true;
    }

    /// An instance that finds no live socket (bidirectional), or no memory (static): there is no stream.
    pub(super) fn load_over(&mut self, turn: &mut Turn<'_>, stored: Stored) -> Result<(), Fault> {
        match stored {
            Stored::Nothing => {}
            Stored::Open => {
                self.phase = Phase::Over;
                self.watched_by_rows(turn)?;
                let after = self.jitter(0, BYE_JITTER);
                self.store.end(turn.sql, turn.now + after, &self.small.watched.as_bytes())?;
                self.byes_at = turn.now + after;
                turn.actions.push(Action::Alarm { after });
            }
            Stored::Ended { byes_at, watched } => {
                self.phase = Phase::Over;
                self.byes_at = byes_at;
                self.small.watched = Watched::of_bytes(&watched);
            }
        }
        Ok(())
    }

    /// Without an attachment, the rows tell who watches: not for an Update that was in work, whose watches the
    /// partitions question by themselves.
    pub(super) fn watched_by_rows(&mut self, turn: &Turn<'_>) -> Result<(), Fault> {
        for partition in self.store.partitions(turn.sql)? {
            self.small.watched.insert(partition);
        }
        Ok(())
    }

    /// The alarm of an object whose stream is over.
    pub(super) fn alarm_over(&mut self, turn: &mut Turn<'_>) {
        // Longer than any jitter is a clock that jumped back.
        let left = self.byes_at.saturating_sub(turn.now);
        if (1..=BYE_JITTER).contains(&left) {
            turn.actions.push(Action::Alarm { after: left });
        } else if !self.deleted {
            turn.actions.push(Action::Alarm { after: BYE_AGAIN });
            if !self.closing {
                self.say_bye();
            }
        }
    }

    /// When every partition was told, or could not be reached, there is nothing left to remember.
    pub(super) fn settle_over(&mut self, turn: &mut Turn<'_>) {
        if self.closing && self.channels.is_empty() && !self.deleted {
            self.deleted = true;
            turn.actions.push(Action::Delete);
        }
    }

    /// A time in [0, span], the same for the same session and salt.
    pub(super) fn jitter(&self, salt: u64, span: Nanos) -> Nanos {
        // FNV-1a: ids are random already, they are only to be mixed with the salt.
        let bytes = self.setup.session.iter().copied().chain(salt.to_le_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        (hash ^ (hash >> 29)) % (span + 1)
    }
}
