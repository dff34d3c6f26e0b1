//! The scheduler: one queue of what is to happen, in true time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use sealog_log::{MILLISECOND, Nanos, SECOND};
use sealog_proto::internal::JoinRequest;

use crate::context::Context;
use crate::host::{Host, Out, Timer};
use crate::message::{Body, Message, Node, Request};
use crate::mutator::Mutator;
use crate::random::Random;
use crate::verdict;
use crate::worker::{Want, Worker};
use crate::workload::{Publish, Shape, Work};
use crate::{Mutation, Report};

/// How long after the last fault everything must have ended. An old staged copy is asked for after 10 s at the latest
/// at the second alarm; a clock that was set back adds its jump.
const REST: Nanos = 150 * SECOND;
/// Events of one run, at most: a machine that spins is a failure as well.
const EVENTS: u64 = 200_000;

/// How old a staged copy may become while others come and go.
const STALE: Nanos = 90 * SECOND;
/// Asks for the boundary when the faults are over.
const PROBER: usize = usize::MAX;

#[derive(Debug)]
enum Event {
    Deliver(Message),
    Timer(Node, Timer),
    /// A worker's call took too long.
    Timeout(usize, u64),
    Wake(usize),
    Start(Work),
    /// Traffic that goes on when the faults are over.
    Steady(Publish),
    /// Faults stop.
    Calm,
    /// Is all quiet? If not, the boundary is asked for, as its readers do.
    Probe,
}

#[derive(Debug)]
pub(crate) struct World {
    context: Context,
    hosts: BTreeMap<Node, Host>,
    workers: Vec<Worker>,
    queue: BinaryHeap<Reverse<(Nanos, u64)>>,
    events: BTreeMap<u64, Event>,
    scheduled: u64,
    /// Messages and starts that are still to come.
    coming: usize,
    /// When the last of them comes, or the faults stop.
    last: Nanos,
    shape: Shape,
    /// Every publish that was begun, once.
    started: Vec<Publish>,
    /// They are under way again.
    again: bool,
}

impl World {
    pub(crate) fn new(seed: u64, mutation: Option<Mutation>, tracing: bool) -> Self {
        let mut random = Random::new(seed);
        let shape = Shape::new(&mut random);
        let mutator = Mutator::new(mutation);
        let context = Context::new(random, shape.faults.clone(), mutator, tracing);
        let mut this = Self {
            context,
            hosts: BTreeMap::new(),
            workers: Vec::new(),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            scheduled: 0,
            coming: 0,
            last: shape.calm_at,
            shape,
            started: Vec::new(),
            again: false,
        };
        let logs = (0..this.shape.partitions).map(Node::Log);
        let directories = (0..this.shape.directories).map(Node::Directory);
        for node in [Node::Sequencer].into_iter().chain(logs).chain(directories) {
            let mut host = Host::new(node);
            host.skew = this.context.random.within(10 * SECOND);
            this.hosts.insert(node, host);
        }
        let join = JoinRequest {
            log_partitions: this.shape.partitions,
            directory_partitions: this.shape.directories,
        };
        this.hosts.get_mut(&Node::Sequencer).expect("there is one").found(join);
        for (at, work) in std::mem::take(&mut this.shape.work) {
            this.schedule(at, Event::Start(work));
        }
        let calm_at = this.shape.calm_at;
        this.schedule(calm_at, Event::Calm);
        this
    }

    /// Runs until all is quiet, something broke, or time is over.
    pub(crate) fn run(&mut self) -> Report {
        while let Some(Reverse((at, number))) = self.queue.pop() {
            let Some(event) = self.events.remove(&number) else { continue };
            self.context.now = self.context.now.max(at);
            self.context.events += 1;
            if self.context.events > EVENTS {
                self.context.history.violation("progress: the run does not end");
            }
            let quiet = self.happen(event);
            if quiet || self.context.history.broken.is_some() {
                break;
            }
        }
        if self.context.history.broken.is_none()
            && let Err(what) = verdict::judge(&self.context.history, &self.hosts, self.shape.directories)
        {
            self.context.history.violation(&what);
        }
        Report {
            broken: self.context.history.broken.take(),
            trace: self.context.take_trace(),
            events: self.context.events,
            rows: self.context.history.rows.len() as u64,
            successes: self.context.history.successes,
            transactions: self.context.history.transactions,
            decided: self.context.history.decided.len() as u64,
            aborted: self.context.history.aborted.len() as u64,
            lookups: self.context.history.identifiers.lookups,
        }
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        if matches!(event, Event::Deliver(_) | Event::Start(_) | Event::Steady(_)) {
            self.coming += 1;
        }
        self.scheduled += 1;
        self.queue.push(Reverse((at, self.scheduled)));
        self.events.insert(self.scheduled, event);
    }

    /// Says whether all is quiet.
    fn happen(&mut self, event: Event) -> bool {
        match event {
            Event::Deliver(message) => {
                self.coming -= 1;
                self.deliver(message);
            }
            Event::Start(work) => {
                self.coming -= 1;
                self.start(work);
            }
            Event::Timer(node, timer) => self.host(node, |host, context| host.timer(context, timer)),
            Event::Timeout(number, call) => {
                let wants = self.workers[number].answer(&mut self.context, call, None);
                self.carry_out(number, wants);
            }
            Event::Wake(number) if !self.workers[number].done => {
                let wants = self.workers[number].woke(&mut self.context);
                self.carry_out(number, wants);
            }
            Event::Wake(_) => {}
            Event::Steady(publish) => {
                self.coming -= 1;
                self.begin(Work::Publish(publish));
            }
            Event::Calm => self.calm(),
            Event::Probe => return self.probe(),
        }
        false
    }

    fn host(&mut self, node: Node, act: impl FnOnce(&mut Host, &mut Context) -> Out) {
        let Some(host) = self.hosts.get_mut(&node) else { return };
        let out = act(host, &mut self.context);
        for (after, timer) in out.timers {
            self.schedule(self.context.now + after, Event::Timer(node, timer));
        }
        for message in out.messages {
            self.send(&message);
        }
    }

    fn send(&mut self, message: &Message) {
        let copies = if self.context.happens(self.context.faults.drop) {
            self.context.trace(|| format!("lost: {message}"));
            0
        } else {
            1 + usize::from(self.context.happens(self.context.faults.duplicate))
        };
        for copy in 0..copies {
            let mut at = self.context.now + self.context.way();
            if copy > 0 && self.context.happens(200) {
                at += self.context.random.below(100 * SECOND);
            }
            if self.context.faults.active {
                self.last = self.last.max(at);
            }
            self.schedule(at, Event::Deliver(message.clone()));
        }
    }

    fn deliver(&mut self, mut message: Message) {
        let to = message.to;
        if let Node::Worker(number) = to {
            self.context.mutate_delivery(&mut message, None);
            self.context.trace(|| message.to_string());
            if number == PROBER {
                return;
            }
            if let Body::Reply(reply) = message.body {
                let wants = self.workers[number].answer(&mut self.context, message.call, reply);
                self.carry_out(number, wants);
            }
            if self.context.happens(self.context.faults.death) {
                self.context.trace(|| format!("Worker({number}) dies"));
                self.workers[number].done = true;
            }
            return;
        }
        let crash = self.context.happens(self.context.faults.crash);
        let first = crash && self.context.random.chance(500);
        if first {
            self.crash(to);
        }
        if self.context.happens(self.context.faults.jump) {
            let most = if self.context.random.chance(200) { 15 } else { 3 };
            let jump = self.context.random.within(most * SECOND);
            self.hosts.get_mut(&to).expect("an object").skew += jump;
        }
        self.context.trace(|| message.to_string());
        let storage = &self.hosts[&to].storage;
        if let Some(reply) = self.context.mutate_store(&message, storage) {
            return self.send(&reply);
        }
        self.context.mutate_delivery(&mut message, Some(storage));
        self.host(to, |host, context| host.deliver(context, message));
        if crash && !first {
            self.crash(to);
        }
        self.check_decisions();
    }

    /// The object starts anew, perhaps on another machine with another clock.
    fn crash(&mut self, node: Node) {
        self.host(node, Host::crash);
        if self.context.random.chance(300) {
            let skew = self.context.random.within(30 * SECOND);
            self.hosts.get_mut(&node).expect("an object").skew = skew;
        }
    }

    /// A decided transaction is staged or applied at every participant, at any time.
    fn check_decisions(&mut self) {
        for (txid, decision) in &self.context.history.decided {
            let participants: Vec<_> = decision.shares.iter().filter_map(|share| share.participant).collect();
            if let Err(what) = verdict::stands(txid, &participants, &self.hosts) {
                return self.context.history.violation(&what);
            }
        }
    }

    fn start(&mut self, work: Work) {
        if !self.context.faults.active && self.shape.workers_die {
            return;
        }
        if let Work::Publish(publish) = &work
            && !self.again
            && self.started.iter().all(|known| known.drafts != publish.drafts)
        {
            self.started.push(Publish { retries: 0, ..publish.clone() });
        }
        self.begin(work);
    }

    fn begin(&mut self, work: Work) {
        let number = self.workers.len();
        let skew = self.context.random.within(10 * SECOND);
        let worker =
            Worker::new(number, work, skew, self.shape.partitions, self.shape.directories, self.again);
        self.workers.push(worker);
        let wants = self.workers[number].start(&mut self.context);
        self.carry_out(number, wants);
    }

    fn carry_out(&mut self, number: usize, wants: Vec<Want>) {
        for want in wants {
            match want {
                Want::Send(message, limit) => {
                    let at = self.context.now + limit;
                    self.schedule(at, Event::Timeout(number, message.call));
                    self.send(&message);
                }
                Want::Sleep(after) => self.schedule(self.context.now + after, Event::Wake(number)),
                Want::Again(publish) => {
                    let after = self.context.random.below(3_000) * MILLISECOND;
                    self.schedule(self.context.now + after, Event::Start(Work::Publish(publish)));
                }
            }
        }
    }

    fn calm(&mut self) {
        self.context.trace(|| "faults stop".to_owned());
        self.context.faults.active = false;
        if self.shape.workers_die {
            for worker in &mut self.workers {
                worker.done = true;
            }
        }
        for (publish, after) in std::mem::take(&mut self.shape.steady).into_iter().zip((1..).step_by(4)) {
            self.last = self.context.now + after * SECOND;
            self.schedule(self.last, Event::Steady(publish));
        }
        self.schedule(self.context.now + SECOND, Event::Probe);
    }

    /// Once, when all is quiet: every publish is sent again. Whatever is stored must then answer success (API-222).
    fn encore(&mut self) -> bool {
        let publishes = std::mem::take(&mut self.started);
        if publishes.is_empty() {
            return false;
        }
        self.context.trace(|| "everything once more".to_owned());
        self.shape.workers_die = false;
        for (publish, after) in publishes.into_iter().zip((0..).step_by(200)) {
            self.schedule(self.context.now + after * MILLISECOND, Event::Start(Work::Publish(publish)));
        }
        self.last = self.context.now;
        self.again = true;
        self.schedule(self.context.now + SECOND, Event::Probe);
        true
    }

    fn probe(&mut self) -> bool {
        let unrest = verdict::unrest(&self.context.history, &self.hosts)
            .or_else(|| (self.coming > 0).then(|| "messages are under way".to_owned()))
            .or_else(|| {
                let waits = self.workers.iter().any(|worker| !worker.done);
                waits.then(|| "a worker has no answer".to_owned())
            });
        let Some(what) = unrest else { return !self.encore() };
        if self.context.now > self.shape.calm_at + STALE {
            for host in self.hosts.values() {
                let oldest = verdict::oldest_staged(host);
                let stale = oldest.is_some_and(|since| since + STALE < self.context.local(host.skew));
                self.context.history.require(!stale, || {
                    format!("progress: {:?} holds a transaction that nobody asks about", host.node)
                });
            }
        }
        if self.context.now > self.last.max(self.shape.calm_at) + REST {
            self.context.history.violation(&format!("progress: {what}"));
            return true;
        }
        let call = self.context.next_call();
        let from = Node::Worker(PROBER);
        let message = Message { from, to: Node::Sequencer, call, body: Body::Request(Request::Boundary) };
        self.host(Node::Sequencer, |host, context| host.deliver(context, message));
        self.schedule(self.context.now + SECOND, Event::Probe);
        false
    }
}
