//! The scheduler: one queue of what is to happen, in true time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bytes::Bytes;
use sealog_log::{Nanos, SECOND};
use sealog_proto::Topic;

use super::partition::{self, Ids};
use super::people::Person;
use super::run::Run;
use super::shape::Shape;
use super::stream::{Slot, Up, View};
use super::wire::{Answer, Ask, Call};
use super::{StreamMutation, StreamReport, session};
use crate::random::Random;

/// How long after the last fault everything must have been delivered: a Pong may take 90 s, and a partition asks a
/// session that failed again after a minute at the latest.
const REST: Nanos = 330 * SECOND;
const DAY: Nanos = 86_400 * SECOND;
/// Events of one run, at most: a machine that spins is a failure as well.
const EVENTS: u64 = 300_000;

/// An object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Log(u32),
    Session(usize),
}

#[derive(Debug)]
pub(super) enum Event {
    /// Of a topic, so many bytes long.
    Publish(usize, usize),
    Reserved(u32, sealog_proto::internal::ReserveReply),
    /// A call reaches an object.
    Ask(u64, Ask),
    /// Its answer reaches the caller.
    Answer(u64, Answer),
    /// It took too long.
    Timeout(u64),
    /// A write becomes durable, or not.
    Flush(Node, u64),
    /// Of this instance.
    Wake(Node, u64),
    Synced(usize, u64, u64),
    Alarm(Node),
    /// The next frame reaches the client.
    Down(usize),
    /// The next thing that the client said reaches the session.
    Up(usize),
    /// A client says something.
    Say(usize, Up),
    /// The platform notices that a socket is lost; it tells the object, or it does not.
    Lost(usize, bool),
    /// A client does something.
    Act(usize),
    Calm,
    Check,
    /// Nobody was there for a day.
    Empty,
}

pub(super) struct World {
    pub(super) run: Run,
    pub(super) shape: Shape,
    pub(super) ids: Ids,
    pub(super) logs: Vec<partition::Host>,
    pub(super) slots: Vec<Slot>,
    pub(super) people: Vec<Person>,
    /// Calls between objects, by name.
    pub(super) calls: BTreeMap<u64, Call>,
    queue: BinaryHeap<Reverse<(Nanos, u64)>>,
    events: BTreeMap<u64, Event>,
    scheduled: u64,
    /// Which alarms are in the queue.
    pub(super) armed: BTreeMap<Node, Nanos>,
    /// Durable heads of the topics.
    pub(super) visible: Vec<u64>,
    published: u64,
    done: bool,
}

impl World {
    pub(super) fn new(seed: u64, mutation: Option<StreamMutation>, tracing: bool) -> Self {
        let mut random = Random::new(seed);
        let shape = Shape::new(&mut random);
        let mut run = Run::new(random, shape.faults.clone(), mutation, tracing);
        let logs = (0..shape.partitions)
            .map(|index| partition::Host::new(index, run.random.within(10 * SECOND)))
            .collect();
        let (both_ways, one_way) = shape.clients;
        let people = (0..both_ways + one_way).map(|number| Person::new(number >= both_ways)).collect();
        let mut this = Self {
            ids: Ids::new(shape.partitions),
            logs,
            slots: Vec::new(),
            people,
            calls: BTreeMap::new(),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            scheduled: 0,
            armed: BTreeMap::new(),
            visible: vec![0; shape.topics.len()],
            published: 0,
            done: false,
            run,
            shape,
        };
        for (at, topic, bytes) in std::mem::take(&mut this.shape.publishes) {
            this.schedule(at, Event::Publish(topic, bytes));
        }
        for person in 0..this.people.len() {
            let at = this.run.random.below(5 * SECOND);
            this.schedule(at, Event::Act(person));
        }
        this.schedule(this.shape.calm_at, Event::Calm);
        this.schedule(this.shape.calm_at + REST, Event::Check);
        this
    }

    /// Runs until all is well, or something broke.
    pub(super) fn run(mut self) -> StreamReport {
        while let Some(Reverse((at, number))) = self.queue.pop() {
            let Some(event) = self.events.remove(&number) else { continue };
            self.run.now = self.run.now.max(at);
            self.run.report.events += 1;
            if self.run.report.events > EVENTS {
                self.run.violation("progress: the run does not end");
            }
            self.happen(event);
            if self.done || self.run.report.broken.is_some() {
                break;
            }
        }
        let topics = self.shape.topics.iter().enumerate();
        self.run.report.rows = topics.map(|(nth, _)| self.view().rows_of(nth).len() as u64).sum();
        self.run.report
    }

    pub(super) fn view(&self) -> View<'_> {
        View { logs: &self.logs, topics: &self.shape.topics, visible: &self.visible }
    }

    pub(super) fn schedule(&mut self, at: Nanos, event: Event) {
        self.scheduled += 1;
        self.queue.push(Reverse((at, self.scheduled)));
        self.events.insert(self.scheduled, event);
    }

    pub(super) fn after(&mut self, delay: Nanos, event: Event) {
        self.schedule(self.run.now + delay, event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Publish(topic, bytes) => self.publish(topic, bytes),
            Event::Reserved(index, reply) => self.log(index, partition::Input::Reserved(reply)),
            Event::Ask(call, ask) => self.asked(call, ask),
            Event::Answer(call, answer) => self.answered(call, Some(answer)),
            Event::Timeout(call) => self.answered(call, None),
            Event::Flush(node, number) => self.flush(node, number),
            Event::Wake(Node::Log(index), instance) => {
                if self.logs[index as usize].object.instance == instance {
                    self.log(index, partition::Input::Wake);
                }
            }
            Event::Wake(Node::Session(slot), instance) => {
                let session = &mut self.slots[slot].session;
                if session.object.instance == instance {
                    session.pending -= 1;
                    self.session(slot, session::Input::Wake);
                }
            }
            Event::Synced(slot, instance, number) => {
                let session = &mut self.slots[slot].session;
                if session.object.instance == instance {
                    session.pending -= 1;
                    self.session(slot, session::Input::Synced(number));
                }
            }
            Event::Alarm(node) => self.alarm(node),
            Event::Down(slot) => self.down(slot),
            Event::Up(slot) => self.up(slot),
            Event::Say(slot, up) => self.up_soon(slot, up),
            Event::Lost(slot, told) => self.lost(slot, told),
            Event::Act(person) => self.act(person),
            Event::Calm => {
                self.run.faults.active = false;
                self.run.trace(|| "faults stop".to_owned());
            }
            Event::Check => self.check(),
            Event::Empty => {
                if let Some(log) = self.logs.iter().find(|log| !log.watchers().is_empty()) {
                    let index = log.index;
                    self.run
                        .violation(&format!("rule 22: Log({index}) still has a watch of an ended session"));
                }
                self.done = true;
            }
        }
    }

    fn publish(&mut self, topic: usize, bytes: usize) {
        use prost::Message;
        use sealog_proto::backend::{ClientEnvelope, GroupMessage, client_envelope::Payload};
        self.published += 1;
        let message = GroupMessage { data: vec![1; bytes].into(), ..GroupMessage::default() };
        let body = ClientEnvelope { payload: Some(Payload::GroupMessage(message)) }.encode_to_vec();
        let mut hash = vec![0; 32];
        hash[..8].copy_from_slice(&self.published.to_be_bytes());
        let envelope = sealog_proto::internal::NewEnvelope {
            topic: self.shape.topics[topic].clone(),
            hash: hash.into(),
            body: body.into(),
            ..Default::default()
        };
        let index = partition_of(&self.shape.topics[topic], self.shape.partitions);
        self.run.trace(|| format!("publish to topic {topic} at Log({index})"));
        self.log(index, partition::Input::Publish(envelope));
    }

    /// Long after the last fault, every client has a stream, and every stream is complete.
    fn check(&mut self) {
        for number in 0..self.people.len() {
            let lacks = match self.people[number].slot {
                None => Some("API-259: there is no stream".to_owned()),
                Some(slot) => self.lacks(slot),
            };
            if let Some(what) = lacks {
                return self.run.violation(&format!("progress: client {number}: {what}"));
            }
        }
        if !self.shape.a_day_later {
            self.done = true;
            return;
        }
        self.run.trace(|| "everybody leaves".to_owned());
        for person in 0..self.people.len() {
            self.vanish(person);
        }
        self.after(DAY + 7_200 * SECOND, Event::Empty);
    }
}

/// Which partition keeps a topic.
pub(super) fn partition_of(topic: &Bytes, partitions: u32) -> u32 {
    Topic::parse(topic.clone()).expect("a topic").partition(partitions)
}
