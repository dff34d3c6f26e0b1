//! Frames to the client: handed over in order, counted, bounded (rules 15, 18, 23).

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use sealog_proto::backend::{
    self, SubscribeResponse, SubscribeStaticResponse, subscribe_response, subscribe_static_response,
};
use sealog_proto::internal::{RawMessages, RawSubscribeResponse, RawSubscribeStaticResponse, StoredEnvelope};
use sealog_proto::status::Code;

use super::history::id;
use super::output::Look;
use super::partial::HEADER;
use super::turn::{Status, Stop, Turn};
use super::{Action, Kind, Limits, Session};
use crate::key::Key;
use crate::{Fault, MILLISECOND, Nanos};

/// A frame of envelopes, with its header, is no longer, unless it has only one.
const FRAME: usize = 2 << 20;
/// Keys and lengths around the envelopes of a frame.
const AROUND: usize = 16;
/// Key and length of one envelope.
const PREFIX: usize = 6;

/// What a page may hold, so that it is one frame.
pub(super) fn budget(limits: &Limits) -> u64 {
    most(limits) as u64
}

fn most(limits: &Limits) -> usize {
    FRAME.min(limits.max_response_bytes + HEADER).saturating_sub(HEADER + AROUND)
}

impl Session {
    pub(super) fn interval(&self) -> Nanos {
        u64::from(self.setup.limits.keepalive_interval_ms) * MILLISECOND
    }

    pub(super) fn wait(&self) -> Nanos {
        u64::from(self.setup.limits.max_pong_wait_ms) * MILLISECOND
    }

    /// Puts rows of a registration into the frame, and moves its position to `through`: what lies between is handed
    /// over, or is not there.
    pub(super) fn hand_over(
        &mut self,
        turn: &mut Turn<'_>,
        key: &Key,
        rows: Vec<StoredEnvelope>,
        through: u64,
        frame: &mut Vec<StoredEnvelope>,
    ) -> Result<(), Stop> {
        let registry = self.registry(turn)?;
        let it = registry.get(key).ok_or(Fault::Invariant("rows are of a registration"))?;
        Fault::assert(it.applied, "no envelope leaves before its Applied")?;
        Fault::assert(it.position >= it.cursor, "a position is not below its cursor")?;
        if let Some(first) = rows.first() {
            Fault::assert(id(first) > it.position, "ids rise strictly")?;
            let fair = id(first) > it.target || it.is_unserved() || !registry.has_unserved();
            Fault::assert(fair, "no second helping while a registration had none")?;
        }
        if through > it.position {
            let slot = it.slot;
            registry.change(key, |it| it.position = through);
            if self.kind == Kind::Bidirectional {
                self.moved.note(slot, through, turn.now); // a static stream has nothing to come back to
            }
        }
        frame.extend(rows);
        Ok(())
    }

    /// Sends envelopes in order, in as few frames as may be.
    pub(super) fn send_messages(
        &mut self,
        turn: &mut Turn<'_>,
        rows: Vec<StoredEnvelope>,
    ) -> Result<(), Stop> {
        let most = most(&self.setup.limits);
        let (mut envelopes, mut bytes) = (Vec::new(), 0);
        for row in rows {
            let length = row.encoded_len() + PREFIX;
            if !envelopes.is_empty() && bytes + length > most {
                self.send_batch(turn, std::mem::take(&mut envelopes))?;
                bytes = 0;
            }
            bytes += length;
            envelopes.push(row);
        }
        if envelopes.is_empty() { Ok(()) } else { self.send_batch(turn, envelopes) }
    }

    fn send_batch(&mut self, turn: &mut Turn<'_>, envelopes: Vec<StoredEnvelope>) -> Result<(), Stop> {
        self.counters.envelopes += envelopes.len() as u64;
        let messages = Some(RawMessages { envelopes });
        match self.kind {
            Kind::Bidirectional => self.send(turn, &RawSubscribeResponse { messages }),
            Kind::Static => self.send(turn, &RawSubscribeStaticResponse { messages }),
        }
    }

    /// Sends one frame, and a Ping behind it when enough is out.
    pub(super) fn send(&mut self, turn: &mut Turn<'_>, message: &impl Message) -> Result<(), Stop> {
        self.put(turn, message)?;
        if self.kind == Kind::Bidirectional && self.output.wants_ping() {
            self.send_ping(turn)
        } else {
            Ok(())
        }
    }

    fn put(&mut self, turn: &mut Turn<'_>, message: &impl Message) -> Result<(), Stop> {
        let length = message.encoded_len();
        let most = self.setup.limits.max_response_bytes;
        if length > most {
            return Err(exhausted(format!(
                "a response frame of {length} bytes does not fit; at most {most} are sent"
            )));
        }
        let mut frame = BytesMut::with_capacity(HEADER + length);
        frame.put_u8(0);
        frame.put_u32(
            u32::try_from(length).map_err(|_| Fault::Invariant("a frame's length fits its header"))?,
        );
        message.encode(&mut frame).map_err(|_| Fault::Invariant("a buffer grows"))?;
        let frame: Bytes = frame.freeze();
        let bytes = frame.len() as u64;
        if !self.output.admit(turn.now, bytes, turn.elsewhere) {
            return Err(exhausted(
                "the client does not read; read faster, and open the stream again from your cursors",
            ));
        }
        if self.kind == Kind::Static {
            self.output.writing(turn.now, bytes);
        }
        self.counters.frames += 1;
        turn.actions.push(Action::Send(frame));
        Ok(())
    }

    /// One is out at a time; its nonce is fresh (API-257).
    pub(super) fn send_ping(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let nonce = self.output.ping(turn.now)?;
        let ping = subscribe_response::Response::Ping(backend::Ping { nonce });
        self.put(turn, &SubscribeResponse { response: Some(ping) })
    }

    /// A Pong: what was sent before its Ping is read.
    pub(super) fn take_pong(&mut self, turn: &mut Turn<'_>, nonce: u64) -> Result<(), Stop> {
        let answered = self.output.pong(nonce);
        if answered && (self.output.wants_ping() || self.output.is_idle(turn.now, self.interval())) {
            return self.send_ping(turn);
        }
        Ok(())
    }

    /// The alarm of an open stream (rule 18).
    pub(super) fn alarm_open(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let (interval, wait) = (self.interval(), self.wait());
        let after = match self.output.look(turn.now, wait) {
            Look::Again(after) => after,
            Look::Missed => {
                return Err(Status::new(Code::DeadlineExceeded, "no Pong came in time; answer Pings").into());
            }
            Look::Ping => {
                self.send_ping(turn)?;
                self.output.next_alarm(turn.now, interval, wait)
            }
            Look::Fine => self.output.next_alarm(turn.now, interval, wait),
        };
        turn.actions.push(Action::Alarm { after });
        Ok(())
    }

    /// When a static stream has something to do by itself.
    pub(super) fn next_beat(&self) -> Option<Nanos> {
        let keepalive = (self.phase == super::Phase::Open).then(|| self.output.last_frame + self.interval());
        let stuck = self.output.oldest_write().map(|since| since + self.wait());
        keepalive.into_iter().chain(stuck).min()
    }

    /// Keepalive of a static stream, and the end of one that nobody reads (rule 23).
    pub(super) fn beat(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        if self.output.oldest_write().is_some_and(|since| turn.now >= since + self.wait()) {
            return Err(exhausted("the client does not read; open the stream again from your cursors"));
        }
        if self.phase == super::Phase::Open && self.output.is_idle(turn.now, self.interval()) {
            let keepalive = subscribe_static_response::Keepalive {};
            let response = Some(subscribe_static_response::Response::Keepalive(keepalive));
            return self.send(turn, &SubscribeStaticResponse { response });
        }
        Ok(())
    }
}

fn exhausted(message: impl Into<std::borrow::Cow<'static, str>>) -> Stop {
    Status::new(Code::ResourceExhausted, message).into()
}
