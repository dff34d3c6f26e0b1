//! People: what each of them does with a stream, and when they open the next.

use std::collections::BTreeMap;

use sealog_log::session::Setup;
use sealog_log::{MILLISECOND, SECOND};
use sealog_proto::backend;
use sealog_proto::backend::subscribe_request::Request;

use super::client::{self, Stream};
use super::session;
use super::stream::{Slot, Up};
use super::world::{Event, World};

/// Somebody who wants to read.
#[derive(Debug)]
pub(super) struct Person {
    is_static: bool,
    /// How far each topic was read.
    pub(super) cursors: BTreeMap<usize, u64>,
    pub(super) slot: Option<usize>,
}

impl Person {
    pub(super) fn new(is_static: bool) -> Self {
        Self { is_static, cursors: BTreeMap::new(), slot: None }
    }
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
        let session = session::Host::new(setup, is_static, skew);
        self.slots.push(Slot::new(session, person, Stream::new(is_static), self.run.now));
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
}
