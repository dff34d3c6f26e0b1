//! The streams, and the links between a session and its client: what is on its way, and what both ends make of it.

use std::collections::VecDeque;

use bytes::Bytes;
use prost::Message;
use sealog_log::session::Status;
use sealog_log::{MILLISECOND, Nanos, SECOND};
use sealog_proto::backend::{SubscribeResponse, subscribe_response};
use sealog_proto::internal::TopicHead;
use sealog_proto::status::Code;

use super::client::{Stream, Truth};
use super::wire::SLOW_PONG;
use super::world::{Event, World, partition_of};
use super::{partition, session};

/// How late a keepalive may be: flushes, and what else a simulated platform takes its time for.
const SLACK: Nanos = 8 * SECOND;

/// From a session to its client.
#[derive(Debug)]
pub(super) enum Down {
    Frame(Bytes),
    Finish(Status),
    /// The body ends without trailers.
    Cut,
}

/// From a client to its session.
#[derive(Debug)]
pub(super) enum Up {
    Start,
    Data(Bytes),
    Pong(Bytes),
    HalfClose,
    Closed,
    /// A write of a static stream's body has resolved.
    Written(u64),
}

/// One stream: its session, its client, and what is on its way between them, in order.
pub(super) struct Slot {
    pub(super) session: session::Host,
    pub(super) person: usize,
    /// `None`: the client is gone.
    pub(super) stream: Option<Stream>,
    pub(super) down: VecDeque<Down>,
    pub(super) up: VecDeque<Up>,
    /// The client does not read until then.
    stalled_until: Nanos,
    /// At the session's end: when the last frame left, and whether a Ping is out or since when none is.
    last_frame: Option<Nanos>,
    ping_out: bool,
    answered_at: Nanos,
}

impl Slot {
    pub(super) fn new(session: session::Host, person: usize, stream: Stream, now: Nanos) -> Self {
        Self {
            session,
            person,
            stream: Some(stream),
            down: VecDeque::new(),
            up: VecDeque::new(),
            stalled_until: 0,
            last_frame: None,
            ping_out: false,
            answered_at: now,
        }
    }
}

/// What is stored, as the checker sees it.
pub(super) struct View<'a> {
    pub(super) logs: &'a [partition::Host],
    pub(super) topics: &'a [Bytes],
    pub(super) visible: &'a [u64],
}

impl View<'_> {
    pub(super) fn rows_of(&self, topic: usize) -> Vec<u64> {
        self.rows(topic, 0)
    }
}

impl Truth for View<'_> {
    fn rows(&self, topic: usize, after: u64) -> Vec<u64> {
        let partitions = u32::try_from(self.logs.len()).expect("few partitions");
        let index = partition_of(&self.topics[topic], partitions);
        self.logs[index as usize].rows(&self.topics[topic], after)
    }

    fn visible(&self, topic: usize) -> u64 {
        self.visible[topic]
    }
}

/// The head of a topic, as it is now.
pub(super) fn head_named(view: &View<'_>, topic: &Bytes) -> TopicHead {
    let at = view.topics.iter().position(|known| known == topic).expect("a topic of the run");
    TopicHead { topic: topic.clone(), head: view.rows_of(at).last().copied().unwrap_or(0) }
}

impl World {
    /// The client has its socket: it sends its header block, and its first Update.
    pub(super) fn upgraded(&mut self, slot: usize) {
        let it = &mut self.slots[slot];
        it.session.upgraded = true;
        let Some(stream) = &mut it.stream else { return };
        let update = std::mem::take(&mut stream.first);
        self.up_soon(slot, Up::Start);
        self.up_soon(slot, Up::Data(update));
    }

    pub(super) fn with_stream<R>(&mut self, slot: usize, run: impl FnOnce(&mut Stream, View<'_>) -> R) -> R {
        let mut stream = self.slots[slot].stream.take().expect("the client is there");
        let result = run(&mut stream, self.view());
        self.slots[slot].stream = Some(stream);
        result
    }

    pub(super) fn end_of_stream(&mut self, slot: usize) {
        if let Some(stream) = self.slots[slot].stream.take() {
            self.run.report.envelopes += stream.envelopes;
            self.run.report.applied += stream.applied;
        }
    }

    pub(super) fn down_soon(&mut self, slot: usize, down: Down) {
        self.slots[slot].down.push_back(down);
        let way = self.run.random.between(SECOND / 2_000, SECOND / 50);
        self.after(way, Event::Down(slot));
    }

    pub(super) fn up_soon(&mut self, slot: usize, up: Up) {
        self.slots[slot].up.push_back(up);
        let way = self.run.random.between(SECOND / 2_000, SECOND / 50);
        self.after(way, Event::Up(slot));
    }

    pub(super) fn lost(&mut self, slot: usize, told: bool) {
        let session = &mut self.slots[slot].session;
        session.socket = None;
        if told {
            self.session(slot, session::Input::Closed);
        } else if session.is_quiet() {
            session.object.forget();
        }
    }

    /// A frame leaves the session. API-255: it does not come after a silence.
    pub(super) fn frame_leaves(&mut self, slot: usize, frame: Bytes) {
        if let Some(late) = self.silence(slot) {
            self.run.violation(&format!("API-255: Session({slot}) was silent {} s too long", late / SECOND));
        }
        let now = self.run.now;
        let it = &mut self.slots[slot];
        it.last_frame = Some(now);
        if !it.session.is_static
            && let Ok(SubscribeResponse { response: Some(subscribe_response::Response::Ping(_)) }) =
                SubscribeResponse::decode(&frame[5..])
        {
            it.ping_out = true;
        }
        self.down_soon(slot, Down::Frame(frame));
    }

    /// By how much an open stream is silent for longer than its keepalive allows.
    fn silence(&self, slot: usize) -> Option<Nanos> {
        let it = &self.slots[slot];
        let over = it.ping_out || it.session.finished.is_some() || it.session.socket.is_none();
        let interval = u64::from(self.shape.limits.keepalive_interval_ms) * MILLISECOND;
        let due = (it.last_frame? + interval).max(it.answered_at) + SLACK;
        (!over && self.run.now > due).then(|| self.run.now - due)
    }

    pub(super) fn lacks(&self, slot: usize) -> Option<String> {
        let silent = self.silence(slot).map(|late| format!("API-255: silent {} s too long", late / SECOND));
        let stream = self.slots[slot].stream.as_ref()?;
        silent.or_else(|| stream.lacks(&self.view()))
    }

    /// The client reads the next frame, unless it does not read.
    pub(super) fn down(&mut self, slot: usize) {
        let now = self.run.now;
        let stalls = self.run.happens(self.run.faults.stall);
        if stalls {
            let time = self.run.random.between(1, 150) * SECOND;
            self.slots[slot].stalled_until = now + time;
        }
        let it = &mut self.slots[slot];
        if it.stream.is_some() && it.stalled_until > now {
            let at = it.stalled_until;
            return self.schedule(at, Event::Down(slot));
        }
        let Some(down) = it.down.pop_front() else {
            if it.session.is_static && it.stream.is_none() && it.session.socket.is_some() {
                self.up_soon(slot, Up::Closed); // a write was rejected
            }
            return;
        };
        if it.stream.is_none() {
            if it.session.is_static {
                self.up_soon(slot, Up::Closed);
            }
            return;
        }
        match down {
            Down::Frame(frame) => self.read(slot, &frame),
            Down::Finish(status) => self.finished(slot, &status),
            Down::Cut => self.finished(slot, &Status::new(Code::Unavailable, "no trailers")),
        }
    }

    fn read(&mut self, slot: usize, frame: &Bytes) {
        let read = self.with_stream(slot, |stream, view| stream.read(&view, view.topics, frame));
        let person = self.slots[slot].person;
        if let Some(stream) = &self.slots[slot].stream {
            let cursors = stream.registered.iter().map(|(topic, it)| (*topic, it.last));
            self.people[person].cursors.extend(cursors);
        }
        match read {
            Err(what) => self.run.violation(&format!("{what}, on Session({slot})")),
            Ok(Some(pong)) => {
                let late = self.run.random.chance(200) && self.run.faults.active;
                let delay = if late { self.run.random.below(SLOW_PONG) } else { 0 };
                self.after(delay, Event::Say(slot, Up::Pong(pong)));
            }
            Ok(None) if self.slots[slot].session.is_static => {
                self.up_soon(slot, Up::Written(frame.len() as u64));
            }
            Ok(None) => {}
        }
    }

    /// A stream ends: only the client ends a healthy one (API-259), and a failure has a code that it may have.
    fn finished(&mut self, slot: usize, status: &Status) {
        let Some(stream) = &self.slots[slot].stream else { return };
        let lacks = stream.unanswered();
        let allowed = match status.code {
            Code::Ok => stream.half_closed && lacks.is_none(),
            Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded => {
                !self.shape.faults.are_harmless()
            }
            _ => false,
        };
        if status.code != Code::Ok {
            self.run.report.failures += 1;
        }
        if !allowed {
            self.run.violation(&format!("API-259: Session({slot}) ended with {status:?}, {lacks:?}"));
        }
        self.end_of_stream(slot);
        let person = self.slots[slot].person;
        self.people[person].slot = None;
        if !self.run.faults.active {
            self.after(SECOND, Event::Act(person));
        }
    }

    /// The next thing that the client said reaches the session.
    pub(super) fn up(&mut self, slot: usize) {
        let Some(up) = self.slots[slot].up.pop_front() else { return };
        if self.slots[slot].session.socket.is_none() {
            return;
        }
        let input = match up {
            Up::Start => session::Input::Start,
            Up::Data(bytes) => session::Input::Data(bytes),
            Up::Pong(bytes) => {
                let now = self.run.now;
                let it = &mut self.slots[slot];
                (it.ping_out, it.answered_at) = (false, now);
                if let Some(stream) = &mut it.stream {
                    stream.ping = None;
                }
                session::Input::Data(bytes)
            }
            Up::HalfClose => session::Input::HalfClose,
            Up::Written(bytes) => session::Input::Written(bytes),
            Up::Closed => {
                self.slots[slot].session.socket = None;
                session::Input::Closed
            }
        };
        self.session(slot, input);
    }
}
