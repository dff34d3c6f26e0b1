//! People, their streams, and the links between a session and its client.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use prost::Message;
use sealog_log::session::{Setup, Status};
use sealog_log::{MILLISECOND, Nanos, SECOND};
use sealog_proto::backend::subscribe_request::Request;
use sealog_proto::backend::{self, SubscribeResponse, subscribe_response};
use sealog_proto::internal::TopicHead;
use sealog_proto::status::Code;

use super::client::{self, Stream, Truth};
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

/// Somebody who wants to read.
#[derive(Debug)]
pub(super) struct Person {
    is_static: bool,
    /// How far each topic was read.
    cursors: BTreeMap<usize, u64>,
    pub(super) slot: Option<usize>,
}

impl Person {
    pub(super) fn new(is_static: bool) -> Self {
        Self { is_static, cursors: BTreeMap::new(), slot: None }
    }
}

/// One stream: its session, its client, and what is on its way between them, in order.
pub(super) struct Slot {
    pub(super) session: session::Host,
    person: usize,
    /// `None`: the client is gone.
    stream: Option<Stream>,
    pub(super) down: VecDeque<Down>,
    pub(super) up: VecDeque<Up>,
    /// The client does not read until then.
    stalled_until: Nanos,
    /// At the session's end: when the last frame left, and whether a Ping is out or since when none is.
    last_frame: Option<Nanos>,
    ping_out: bool,
    answered_at: Nanos,
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
    /// Somebody does something, and something else a while later.
    pub(super) fn act(&mut self, person: usize) {
        let active = self.run.faults.active;
        match self.people[person].slot {
            None => self.open(person),
            Some(_) if !active => return,
            Some(_) if self.run.happens(self.run.faults.vanish) => self.vanish(person),
            Some(slot) => self.use_stream(slot),
        }
        let pause = self.run.random.between(200, 8_000) * MILLISECOND;
        self.after(pause, Event::Act(person));
    }

    fn open(&mut self, person: usize) {
        let is_static = self.people[person].is_static;
        let mut id = vec![0; 32];
        id[..16].copy_from_slice(&self.run.random.bytes16());
        let limits = self.shape.limits;
        let setup = Setup { session: id.into(), partitions: self.shape.partitions, limits };
        let skew = self.run.random.within(10 * SECOND);
        let slot = self.slots.len();
        self.slots.push(Slot {
            session: session::Host::new(setup, is_static, skew),
            person,
            stream: Some(Stream::new(is_static)),
            down: VecDeque::new(),
            up: VecDeque::new(),
            stalled_until: 0,
            last_frame: None,
            ping_out: false,
            answered_at: self.run.now,
        });
        self.people[person].slot = Some(slot);
        self.run.report.streams += 1;
        let adds = self.choose(person, 1);
        self.run.trace(|| format!("client {person} opens Session({slot}) with {adds:?}"));
        if is_static {
            let request = self.with_stream(slot, |stream, view| stream.open_static(&view, view.topics, adds));
            let asked = self.slots[slot].session.open_static(&mut self.run, request);
            return self.carry_on(slot, asked);
        }
        self.with_stream(slot, |stream, view| {
            stream.first = stream.update(&view, view.topics, adds, Vec::new());
        });
        self.session(slot, session::Input::Accept);
    }

    /// The client has its socket: it sends its header block, and its first Update.
    pub(super) fn upgraded(&mut self, slot: usize) {
        let it = &mut self.slots[slot];
        it.session.upgraded = true;
        let Some(stream) = &mut it.stream else { return };
        let update = std::mem::take(&mut stream.first);
        self.up_soon(slot, Up::Start);
        self.up_soon(slot, Up::Data(update));
    }

    /// Some topics, each once, with the cursor to read from: where the client is, the beginning, or ahead.
    fn choose(&mut self, person: usize, least: usize) -> Vec<(usize, u64)> {
        let mut topics: Vec<usize> = (0..self.shape.topics.len()).collect();
        let count = self.run.random.index(topics.len() + 1).max(least);
        let mut chosen = Vec::new();
        for _ in 0..count {
            let topic = topics.swap_remove(self.run.random.index(topics.len()));
            let read = self.people[person].cursors.get(&topic).copied().unwrap_or(0);
            let cursor = match self.run.random.below(10) {
                0..4 => read,
                4..8 => 0,
                8 => read / 2,
                _ => read + self.run.random.below(4),
            };
            chosen.push((topic, cursor));
        }
        chosen
    }

    fn with_stream<R>(&mut self, slot: usize, run: impl FnOnce(&mut Stream, View<'_>) -> R) -> R {
        let mut stream = self.slots[slot].stream.take().expect("the client is there");
        let result = run(&mut stream, self.view());
        self.slots[slot].stream = Some(stream);
        result
    }

    fn use_stream(&mut self, slot: usize) {
        let person = self.slots[slot].person;
        let Some(stream) = &self.slots[slot].stream else { return };
        if stream.half_closed || !(stream.is_static || self.slots[slot].session.upgraded) {
            return;
        }
        match (stream.is_static, self.run.random.below(20)) {
            (_, 0) => self.leave(person, true),
            (true, _) => {}
            (false, 1) => {
                self.run.trace(|| format!("client {person} half-closes"));
                self.with_stream(slot, |stream, _| stream.half_closed = true);
                self.up_soon(slot, Up::HalfClose);
            }
            (false, 2..4) => {
                let ping = client::frame(Request::Ping(backend::Ping { nonce: self.run.now }));
                self.up_soon(slot, Up::Data(ping));
            }
            (false, _) => {
                let mut adds = self.choose(person, 0);
                let wanted: Vec<usize> =
                    self.with_stream(slot, |stream, _| stream.wanted().into_iter().collect());
                let mut removes = wanted;
                removes.retain(|_| self.run.random.chance(300));
                adds.retain(|(topic, _)| !removes.contains(topic));
                self.update(slot, adds, removes);
            }
        }
    }

    /// Sends an Update. At times what it removes is added again at once, and what it adds is published to just then.
    fn update(&mut self, slot: usize, adds: Vec<(usize, u64)>, removes: Vec<usize>) {
        let person = self.slots[slot].person;
        self.run.trace(|| format!("client {person} updates: adds {adds:?} removes {removes:?}"));
        if let Some((topic, _)) = adds.first()
            && self.run.happens(200)
        {
            let at = self.run.random.below(60 * MILLISECOND);
            self.after(at, Event::Publish(*topic, 50));
        }
        let again: Vec<(usize, u64)> = removes.iter().map(|topic| (*topic, 0)).collect();
        let update = self.with_stream(slot, |stream, view| stream.update(&view, view.topics, adds, removes));
        self.up_soon(slot, Up::Data(update));
        if !again.is_empty() && self.run.random.chance(250) {
            self.update(slot, again, Vec::new());
        }
    }

    /// The client goes, with a word or without.
    pub(super) fn vanish(&mut self, person: usize) {
        self.run.trace(|| format!("client {person} vanishes"));
        self.leave(person, false);
    }

    fn leave(&mut self, person: usize, closes: bool) {
        let Some(slot) = self.people[person].slot.take() else { return };
        self.end_of_stream(slot);
        if closes {
            self.up_soon(slot, Up::Closed);
        } else if !self.people[person].is_static {
            // The platform may notice, and may say so; or nobody ever hears of it.
            match self.run.random.below(4) {
                0 => self.after(10 * SECOND, Event::Lost(slot, true)),
                1 => self.after(10 * SECOND, Event::Lost(slot, false)),
                _ => {}
            }
        } else {
            self.after(SECOND, Event::Down(slot));
        }
    }

    fn end_of_stream(&mut self, slot: usize) {
        if let Some(stream) = self.slots[slot].stream.take() {
            self.run.report.envelopes += stream.envelopes;
            self.run.report.applied += stream.applied;
        }
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
