//! An object: one production state machine on its storage, behind its output gate.
//!
//! What an event sends is held back until what was written before it is flushed. A crash loses what was not flushed,
//! the messages behind it, and everything in memory.

mod durability;

use std::collections::{BTreeMap, VecDeque};

use sealog_log::sequencer::Sequencer;
use sealog_log::{CommandError, Fault, Nanos, SECOND};

use sealog_proto::internal::JoinRequest;

use crate::context::Context;
use crate::history::{Effect, outcome_of, rows_of};
use crate::machine::{Asked, Do, Input, Machine};
use crate::message::{Body, Message, Node, Reply, Request};
use crate::storage::{FailAt, Storage};

/// What a host wants to be woken for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timer {
    /// A call that it made has taken too long.
    Timeout(u64),
    Wake,
    Alarm,
    /// The alarm once more: the platform promises at least once.
    AlarmAgain,
    /// Writes up to this number become durable.
    Flush(u64),
}

/// What leaves a host: messages that passed the gate, and timers.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) messages: Vec<Message>,
    /// From now, in nanoseconds.
    pub(crate) timers: Vec<(Nanos, Timer)>,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) node: Node,
    pub(crate) storage: Storage,
    machine: Option<Machine>,
    /// Its machine's clock against true time.
    pub(crate) skew: i64,
    /// Calls to this object that wait for an answer: who called, and under which name.
    calls: BTreeMap<u64, (Node, u64)>,
    /// Calls that this instance made.
    asked: BTreeMap<u64, Asked>,
    /// What calls were about, also those of earlier instances: their answers may come late.
    asked_once: BTreeMap<u64, Asked>,
    /// Messages behind the gate, with the write that each waits for.
    held: VecDeque<(u64, Message)>,
    /// Messages of the event under way.
    posted: Vec<Message>,
    /// What the checker learns when it is durable.
    effects: VecDeque<(u64, Effect)>,
    /// The alarm as each write left it.
    alarms: Vec<(u64, Option<Nanos>)>,
    wake_at: Option<Nanos>,
    /// The newest row that the checker knows.
    pub(crate) last_row: i64,
    /// A deliberate mistake: the instance before this one, with nowhere to write to.
    predecessor: Option<(Machine, Storage)>,
}

impl Host {
    pub(crate) fn new(node: Node) -> Self {
        Self {
            node,
            storage: Storage::new(),
            machine: None,
            skew: 0,
            calls: BTreeMap::new(),
            asked: BTreeMap::new(),
            asked_once: BTreeMap::new(),
            held: VecDeque::new(),
            posted: Vec::new(),
            effects: VecDeque::new(),
            alarms: Vec::new(),
            wake_at: None,
            last_row: 0,
            predecessor: None,
        }
    }

    /// The deployment's first day: the sequencer learns how many log partitions there are.
    pub(crate) fn found(&mut self, join: JoinRequest) {
        let (mut sequencer, _) = Sequencer::load(&self.storage).expect("an empty database loads");
        sequencer.join(&self.storage, &join).expect("the first join is taken");
        self.storage.flush(0);
    }

    /// A request, or a reply to a call of this object.
    pub(crate) fn deliver(&mut self, context: &mut Context, message: Message) -> Out {
        let Message { from, call, body, .. } = message;
        match body {
            Body::Request(request) => self.event(context, &Input::Call(from, call, request)),
            Body::Reply(Some(reply)) if self.machine.is_some() => {
                self.asked.remove(&call);
                let asked = self.asked_once.get(&call).copied();
                self.event(context, &Input::Reply(from, reply, asked))
            }
            Body::Reply(None) => self.failed(context, call),
            Body::Reply(Some(_)) => Out::default(),
        }
    }

    pub(crate) fn timer(&mut self, context: &mut Context, timer: Timer) -> Out {
        match timer {
            Timer::Timeout(call) => self.failed(context, call),
            Timer::Wake if self.machine.is_some() && self.wake_at.is_some_and(|at| at <= context.now) => {
                self.wake_at = None;
                self.event(context, &Input::Wake)
            }
            Timer::Wake => Out::default(),
            Timer::Alarm if self.alarm().is_none_or(|at| at > context.now) => Out::default(),
            Timer::Alarm | Timer::AlarmAgain => self.event(context, &Input::Alarm),
            Timer::Flush(number) => self.flush(context, number),
        }
    }

    fn failed(&mut self, context: &mut Context, call: u64) -> Out {
        match self.asked.remove(&call) {
            Some(asked) if self.machine.is_some() => self.event(context, &Input::Failed(asked)),
            _ => Out::default(),
        }
    }

    fn event(&mut self, context: &mut Context, input: &Input) -> Out {
        let mut out = Out::default();
        if self.machine.is_none() {
            self.load(context, &mut out);
        }
        if self.overtaken(context, input) {
            self.gate(context, &mut out);
            return out;
        }
        match self.machine.take() {
            Some(machine) => self.run(context, machine, input, &mut out),
            None => self.refuse(input),
        }
        self.gate(context, &mut out);
        out
    }

    fn run(&mut self, context: &mut Context, mut machine: Machine, input: &Input, out: &mut Out) {
        self.begin(context);
        if matches!(input, Input::Alarm) {
            self.set_alarm(None);
        }
        let local = context.local(self.skew);
        match machine.handle(context, &self.storage, local, input) {
            Ok((reply, todo)) => {
                self.machine = Some(machine);
                if let (Input::Call(from, call, request), Some(reply)) = (input, reply) {
                    self.observe(request, &reply);
                    let body = Body::Reply(Some(reply));
                    self.posted.push(Message { from: self.node, to: *from, call: *call, body });
                } else if let Input::Call(from, call, _) = input {
                    self.calls.insert(context.calls, (*from, *call));
                }
                self.carry_out(context, todo, out);
                context.mutate_event(self.node, &self.storage);
                self.end(context, out);
            }
            Err(CommandError::Refused(failure)) => {
                self.machine = Some(machine);
                context.trace(|| format!("{:?} refuses: {}", self.node, failure.message));
                self.end(context, out);
                self.refuse(input);
            }
            Err(CommandError::Fault(fault)) => {
                self.fault(context, machine, &fault, out);
                self.refuse(input);
            }
        }
    }

    /// A deliberate mistake: the instance before this one answers.
    fn overtaken(&mut self, context: &mut Context, input: &Input) -> bool {
        let local = context.local(self.skew);
        let Some((machine, storage)) = &mut self.predecessor else { return false };
        if !matches!(input, Input::Call(_, _, Request::Reserve(_))) || !context.happens(300) {
            return false;
        }
        storage.begin();
        let handled = machine.handle(context, storage, local, input);
        storage.end();
        if let (Input::Call(to, call, _), Ok((Some(reply), _))) = (input, handled) {
            context.trace(|| format!("overtaken: {reply}"));
            let body = Body::Reply(Some(reply));
            self.posted.push(Message { from: self.node, to: *to, call: *call, body });
        }
        true
    }

    fn load(&mut self, context: &mut Context, out: &mut Out) {
        self.begin(context);
        let local = context.local(self.skew);
        match Machine::load(self.node, &self.storage, local) {
            Ok((machine, todo)) => {
                context.trace(|| format!("{:?} starts", self.node));
                context.mutate_statements(&self.storage);
                self.machine = Some(machine);
                self.carry_out(context, todo, out);
                self.end(context, out);
            }
            Err(fault) => {
                context.fault(self.node, &fault);
                self.storage.undo();
                self.rearm(context, out);
            }
        }
    }

    fn begin(&self, context: &mut Context) {
        self.storage.begin();
        self.storage.fail_at(match context.random.below(2) {
            _ if !context.happens(context.faults.statement) => FailAt::Never,
            0 => FailAt::Before(context.random.small(1, 4)),
            _ => FailAt::After(context.random.small(1, 4)),
        });
    }

    /// The event is over: its writes wait for their flush.
    fn end(&mut self, context: &mut Context, out: &mut Out) {
        let wrote = self.storage.end();
        if wrote {
            let number = self.storage.written();
            for effect in rows_of(self.node, &self.storage, &mut self.last_row) {
                self.effects.push_back((number, effect));
            }
            if context.faults.gate {
                out.timers.push((context.flush_delay(), Timer::Flush(number)));
            } else {
                let flushed = self.flush(context, number);
                out.messages.extend(flushed.messages);
            }
        }
    }

    /// The machine is over. Statements outside of a transaction may have reached the disk, or not.
    fn fault(&mut self, context: &mut Context, machine: Machine, fault: &Fault, out: &mut Out) {
        context.fault(self.node, fault);
        let written = self.storage.written();
        self.alarms.retain(|(number, _)| *number <= written);
        if context.random.chance(500) {
            self.storage.undo();
        } else {
            self.end(context, out);
        }
        self.forget();
        self.carry_out(context, machine.abandon(), out);
        self.calls.clear();
        self.rearm(context, out);
    }

    /// The caller hears that its call came to nothing.
    fn refuse(&mut self, input: &Input) {
        if let Input::Call(from, call, _) = input {
            let message = Message { from: self.node, to: *from, call: *call, body: Body::Reply(None) };
            self.posted.push(message);
        }
    }

    fn carry_out(&mut self, context: &mut Context, todo: Vec<Do>, out: &mut Out) {
        for action in todo {
            match action {
                Do::Ask { to, request, asked, deadline } => {
                    let call = context.next_call();
                    self.asked_once.insert(call, asked);
                    self.asked.insert(call, asked);
                    context.mutate_request(&request, &self.storage);
                    out.timers.push((deadline, Timer::Timeout(call)));
                    let body = Body::Request(request);
                    self.posted.push(Message { from: self.node, to, call, body });
                }
                Do::Answer { call, reply } => {
                    if let Some((to, call)) = self.calls.remove(&call) {
                        let body = Body::Reply(reply);
                        self.posted.push(Message { from: self.node, to, call, body });
                    }
                }
                Do::Wake { after } => {
                    let at = context.now + after;
                    if self.wake_at.is_none_or(|earlier| at < earlier) && !context.loses_wakes() {
                        self.wake_at = Some(at);
                        out.timers.push((after, Timer::Wake));
                    }
                }
                Do::Alarm { after } if !context.loses_alarm(self.node, &self.storage) => {
                    self.set_alarm(Some(context.now + after));
                    let late = if context.happens(100) { context.random.below(4 * SECOND) } else { 0 };
                    out.timers.push((after + late, Timer::Alarm));
                    if context.happens(50) {
                        out.timers.push((after + context.random.below(9 * SECOND), Timer::AlarmAgain));
                    }
                }
                Do::Alarm { .. } => {}
            }
        }
    }

    /// What the sequencer recorded about a transaction.
    fn observe(&mut self, request: &Request, reply: &Reply) {
        if let Some(effect) = outcome_of(&self.storage, request, reply) {
            self.effects.push_back((self.storage.next_write(), effect));
        }
    }

    /// Whether nothing here waits for anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.held.is_empty()
    }
}
