//! Calls between sessions and partitions: lost, repeated, late, out of order.

use bytes::Bytes;
use sealog_log::{Nanos, SECOND};
use sealog_proto::internal::{
    ControlReply, ControlRequest, PullReply, PullRequest, PushReply, PushRequest, TopicHead,
};

use super::stream::{Down, head_named};
use super::world::{Event, Node, World};
use super::{StreamMutation, mutation, partition, session};

/// A request on its way.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Control(u32, ControlRequest),
    Pull(u32, PullRequest),
    Push(usize, PushRequest),
}

/// Its answer.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Control(ControlReply),
    Pull(PullReply),
    Push(PushReply),
}

/// A call, as its caller knows it.
#[derive(Debug)]
pub(super) struct Call {
    from: Node,
    instance: u64,
    what: What,
    /// It was answered, or given up.
    done: bool,
}

#[derive(Debug)]
enum What {
    /// With the heads as they were when it was sent, for a deliberate mistake.
    Control {
        partition: u32,
        number: u64,
        heads: Vec<TopicHead>,
    },
    Pull {
        number: u64,
    },
    /// With the incarnation and the number.
    Push {
        session: Bytes,
        push: (u64, u64),
    },
}

impl World {
    fn call(&mut self, from: Node, what: What, ask: &Ask, deadline: Nanos) {
        let instance = match from {
            Node::Log(index) => self.logs[index as usize].object.instance,
            Node::Session(slot) => {
                self.slots[slot].session.pending += 1;
                self.slots[slot].session.object.instance
            }
        };
        let name = self.calls.len() as u64;
        self.calls.insert(name, Call { from, instance, what, done: false });
        self.run.trace(|| format!("{from:?} asks #{name}: {}", ask.words()));
        self.after(deadline, Event::Timeout(name));
        self.send(|| Event::Ask(name, ask.clone()));
    }

    /// Sends what may be lost, or come twice.
    fn send(&mut self, event: impl Fn() -> Event) {
        if self.run.happens(self.run.faults.drop) {
            return;
        }
        let twice = self.run.happens(self.run.faults.duplicate);
        for _ in 0..=usize::from(twice) {
            let way = self.run.way();
            self.after(way, event());
        }
    }

    pub(super) fn push(&mut self, index: u32, request: PushRequest, deadline: Nanos) {
        let Some(slot) = self.slots.iter().position(|it| it.session.setup.session == request.session) else {
            return self.run.violation("a push to a session that never was");
        };
        let what =
            What::Push { session: request.session.clone(), push: (request.incarnation, request.number) };
        self.call(Node::Log(index), what, &Ask::Push(slot, request), deadline);
    }

    pub(super) fn route_session(&mut self, slot: usize, out: session::Out) {
        match out {
            session::Out::Control { partition, request, deadline } => {
                let heads = if self.run.is(StreamMutation::TargetBeforeRegistration) {
                    let view = self.view();
                    request.add.iter().map(|watch| head_named(&view, &watch.topic)).collect()
                } else {
                    Vec::new()
                };
                let what = What::Control { partition, number: request.number, heads };
                self.call(Node::Session(slot), what, &Ask::Control(partition, request), deadline);
            }
            session::Out::Pull { partition, request, deadline } => {
                let what = What::Pull { number: request.number };
                self.call(Node::Session(slot), what, &Ask::Pull(partition, request), deadline);
            }
            session::Out::Push(call, reply) => self.answer(call, Answer::Push(reply)),
            session::Out::Upgraded => self.upgraded(slot),
            session::Out::Frame(frame) => self.frame_leaves(slot, frame),
            session::Out::Finish(status) => {
                self.run.trace(|| format!("Session({slot}) ends: {status:?}"));
                let session = &mut self.slots[slot].session;
                session.finished = Some(status.clone());
                session.socket = None;
                self.down_soon(slot, Down::Finish(status));
            }
            session::Out::Synced(number) => {
                let session = &mut self.slots[slot].session;
                session.pending += 1;
                let instance = session.object.instance;
                self.after(0, Event::Synced(slot, instance, number));
            }
        }
    }

    pub(super) fn asked(&mut self, call: u64, ask: Ask) {
        match ask {
            Ask::Control(index, request) => self.log(index, partition::Input::Control(call, request)),
            Ask::Pull(index, request) => self.log(index, partition::Input::Pull(call, request)),
            Ask::Push(slot, request) => self.session(slot, session::Input::Push(call, request)),
        }
    }

    pub(super) fn answer(&mut self, call: u64, mut answer: Answer) {
        if let (Answer::Control(reply), Some(What::Control { heads, .. })) =
            (&mut answer, self.calls.get(&call).map(|call| &call.what))
        {
            mutation::control(&self.run, reply, heads);
        }
        self.run.trace(|| format!("answer to #{call}: {}", answer.words()));
        self.send(|| Event::Answer(call, answer.clone()));
    }

    /// A call was answered, or took too long. The platform pairs answers and calls; an answer that comes late, or again,
    /// reaches the machine too, whose rules do not rest on that.
    pub(super) fn answered(&mut self, name: u64, answer: Option<Answer>) {
        let Some(call) = self.calls.get_mut(&name) else { return };
        let first = !std::mem::replace(&mut call.done, true);
        let from = call.from;
        let same = match from {
            Node::Log(index) => self.logs[index as usize].object.instance == call.instance,
            Node::Session(slot) => {
                let session = &mut self.slots[slot].session;
                let same = session.object.instance == call.instance;
                if first && same {
                    session.pending -= 1;
                }
                same
            }
        };
        let stray = !first || !same;
        if stray && (answer.is_none() || !self.run.random.chance(400)) {
            return;
        }
        match (&call.what, answer) {
            (What::Control { partition, number, .. }, answer) => {
                let (partition, mut number) = (*partition, *number);
                let mut reply = if let Some(Answer::Control(reply)) = answer { Some(reply) } else { None };
                if stray && self.run.is(StreamMutation::ReplyToOlderControl) {
                    number = self.newest_control(from, partition);
                    if let Some(reply) = &mut reply {
                        reply.number = number;
                    }
                }
                let Node::Session(slot) = from else { return };
                self.session(slot, session::Input::Control { partition, number, reply });
            }
            (What::Pull { number }, answer) => {
                let number = *number;
                let reply = if let Some(Answer::Pull(reply)) = answer { Some(reply) } else { None };
                let Node::Session(slot) = from else { return };
                self.session(slot, session::Input::Pull { number, reply });
            }
            (What::Push { session, push }, answer) => {
                let reply = if let Some(Answer::Push(reply)) = answer { Some(reply) } else { None };
                let (session, push) = (session.clone(), *push);
                let reply = mutation::pushed(&self.run, push, reply);
                let Node::Log(index) = from else { return };
                self.log(index, partition::Input::Pushed { session, push, reply });
            }
        }
    }

    fn newest_control(&self, from: Node, partition: u32) -> u64 {
        let numbers =
            self.calls.values().filter(|call| call.from == from).filter_map(|call| match call.what {
                What::Control { partition: to, number, .. } if to == partition => Some(number),
                _ => None,
            });
        // Byes have a number above all others.
        numbers.filter(|number| *number < 1 << 32).max().unwrap_or(0)
    }
}

/// How long a client takes to answer a Ping, at worst.
pub(super) const SLOW_PONG: Nanos = 40 * SECOND;

fn id(row: &sealog_proto::internal::StoredEnvelope) -> u64 {
    row.meta.as_ref().and_then(|meta| meta.cursor).map_or(0, |cursor| cursor.sequence_id)
}

fn name(topic: &[u8]) -> u8 {
    topic.last().copied().unwrap_or(0)
}

impl Ask {
    fn words(&self) -> String {
        match self {
            Self::Control(index, request) => {
                let watches = |watches: &[sealog_proto::internal::Watch]| {
                    watches.iter().map(|it| (name(&it.topic), it.generation)).collect::<Vec<_>>()
                };
                let (add, remove) = (watches(&request.add), watches(&request.remove));
                format!(
                    "Log({index}) control {} {:?} add {add:?} remove {remove:?}",
                    request.number,
                    request.kind()
                )
            }
            Self::Pull(index, request) => {
                let all: Vec<_> = request.positions.iter().map(|it| (name(&it.topic), it.after)).collect();
                format!("Log({index}) pull {} {all:?}", request.number)
            }
            Self::Push(slot, request) => {
                let item = |it: &sealog_proto::internal::push_request::Item| {
                    let rows: Vec<u64> = it.rows.iter().map(id).collect();
                    (name(&it.topic), it.generation, it.previous, rows, it.head)
                };
                let items: Vec<_> = request.items.iter().map(item).collect();
                format!("Session({slot}) push {}.{} {items:?}", request.incarnation, request.number)
            }
        }
    }
}

impl Answer {
    fn words(&self) -> String {
        match self {
            Self::Control(reply) => {
                let heads: Vec<_> = reply.heads.iter().map(|it| (name(&it.topic), it.head)).collect();
                format!("control {} {:?} {heads:?}", reply.number, reply.verdict())
            }
            Self::Pull(reply) => {
                let item = |it: &sealog_proto::internal::pull_reply::Item| {
                    (
                        name(&it.topic),
                        it.after,
                        it.rows.iter().map(id).collect::<Vec<_>>(),
                        it.through,
                        it.head,
                    )
                };
                format!("pull {} {:?}", reply.number, reply.items.iter().map(item).collect::<Vec<_>>())
            }
            Self::Push(reply) => {
                format!("push {} gone={} unwanted={}", reply.number, reply.gone, reply.unwanted.len())
            }
        }
    }
}
