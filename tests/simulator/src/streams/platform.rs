//! What the platform does for an object: hands it its events, carries what it says, makes its writes durable, and rings
//! its alarm.

use sealog_log::{Nanos, SECOND};

use super::stream::Down;
use super::wire::Answer;
use super::world::{Event, Node, World, partition_of};
use super::{StreamMutation, partition, session};

impl World {
    /// An event of a partition.
    pub(super) fn log(&mut self, index: u32, input: partition::Input) {
        let log = &mut self.logs[index as usize];
        let asked = log.event(&mut self.run, input);
        let instance = log.object.instance;
        let node = Node::Log(index);
        self.plan_flush(node, asked.flush);
        for after in asked.wakes {
            self.after(after, Event::Wake(node, instance));
        }
        for out in asked.out {
            self.route_log(index, out);
        }
        if self.run.happens(self.run.faults.crash) {
            self.run.trace(|| format!("Log({index}) crashes"));
            self.run.report.crashes += 1;
            self.logs[index as usize].object.lose(&mut self.run);
            self.logs[index as usize].object.skew = self.run.random.within(20 * SECOND);
        }
        self.arm(node);
    }

    fn route_log(&mut self, index: u32, out: partition::Out) {
        match out {
            partition::Out::Reserve(request) => {
                let now = self.run.local(0);
                match self.ids.reserve(now, &request) {
                    Ok(reply) => {
                        let way = self.run.way().min(SECOND / 2);
                        self.after(way, Event::Reserved(index, reply));
                    }
                    Err(what) => self.run.violation(&what),
                }
            }
            partition::Out::Push { request, deadline } => self.push(index, request, deadline),
            partition::Out::Control(call, reply) => self.answer(call, Answer::Control(reply)),
            partition::Out::Pull(call, reply) => self.answer(call, Answer::Pull(reply)),
        }
    }

    /// An event of a session.
    pub(super) fn session(&mut self, slot: usize, input: session::Input) {
        let asked = self.slots[slot].session.event(&mut self.run, input);
        self.carry_on(slot, asked);
    }

    pub(super) fn carry_on(&mut self, slot: usize, asked: session::Asked) {
        let node = Node::Session(slot);
        self.plan_flush(node, asked.flush);
        for after in asked.wakes {
            let session = &mut self.slots[slot].session;
            session.pending += 1;
            let instance = session.object.instance;
            self.after(after, Event::Wake(node, instance));
        }
        for out in asked.out {
            self.route_session(slot, out);
        }
        if std::mem::take(&mut self.slots[slot].session.cut) {
            self.down_soon(slot, Down::Cut);
        }
        let session = &mut self.slots[slot].session;
        if session.is_quiet() && self.run.happens(self.run.faults.sleep) {
            self.run.trace(|| format!("Session({slot}) hibernates"));
            session.object.forget();
        }
        self.arm(node);
    }

    fn plan_flush(&mut self, node: Node, number: Option<u64>) {
        if let Some(number) = number {
            let delay = self.run.flush_delay();
            self.after(delay, Event::Flush(node, number));
        }
    }

    pub(super) fn flush(&mut self, node: Node, number: u64) {
        let fails = self.run.happens(self.run.faults.flush);
        match node {
            Node::Log(index) => {
                let object = &mut self.logs[index as usize].object;
                if fails {
                    self.run.trace(|| format!("{node:?}: a flush fails"));
                    object.lose(&mut self.run);
                } else {
                    object.storage.flush(number);
                }
                let released = object.released();
                if object.is_durable() {
                    self.see(index);
                }
                for out in released {
                    self.route_log(index, out);
                }
            }
            Node::Session(slot) => {
                let session = &mut self.slots[slot].session;
                if fails {
                    self.run.trace(|| format!("{node:?}: a flush fails"));
                    session.lose(&mut self.run);
                } else {
                    session.object.storage.flush(number);
                }
                let asked = session::Asked { out: session.object.released(), ..Default::default() };
                self.carry_on(slot, asked);
            }
        }
        self.arm(node);
    }

    /// Everything in a partition is durable: its heads are what every reader sees from now on.
    fn see(&mut self, index: u32) {
        for topic in 0..self.shape.topics.len() {
            if partition_of(&self.shape.topics[topic], self.shape.partitions) == index {
                self.visible[topic] = self.view().rows_of(topic).last().copied().unwrap_or(0);
            }
        }
    }

    fn alarm_of(&self, node: Node) -> Option<Nanos> {
        match node {
            Node::Log(index) => self.logs[index as usize].object.alarm(),
            Node::Session(slot) => self.slots[slot].session.object.alarm(),
        }
    }

    /// Puts an object's alarm into the queue. One that was missed rings soon.
    fn arm(&mut self, node: Node) {
        let Some(at) = self.alarm_of(node).map(|at| at.max(self.run.now + SECOND / 2)) else { return };
        if self.armed.get(&node).is_none_or(|armed| *armed > at) {
            self.armed.insert(node, at);
            self.schedule(at, Event::Alarm(node));
        }
    }

    pub(super) fn alarm(&mut self, node: Node) {
        if self.armed.get(&node).is_some_and(|at| *at <= self.run.now) {
            self.armed.remove(&node);
        }
        if self.alarm_of(node).is_none_or(|at| at > self.run.now) {
            return self.arm(node);
        }
        match node {
            Node::Log(index) => self.log(index, partition::Input::Alarm),
            Node::Session(_) if self.run.is(StreamMutation::SessionHearsNoAlarm) => {}
            Node::Session(slot) => self.session(slot, session::Input::Alarm),
        }
    }
}
