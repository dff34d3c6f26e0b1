//! Workers: one run of one publish, of one read, of one question for the boundary.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use sealog_log::coordinator::{Action, Coordinator, Outcome, Part, Random as Chance};
use sealog_log::directory::partition_of;
use sealog_log::{Nanos, SECOND};
use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::{
    HistoryRequest, LookupKey, LookupRequest, NewEnvelope, NewestRequest, Participant, ReadPosition,
    ReadRequest, StoreReply, StoreRequest, WithdrawRequest, history_request, participant::Kind,
    store_reply::Refusal,
};

use crate::context::Context;
use crate::history::{Key, key};
use crate::identifiers::{Must, handle};
use crate::message::{Message, Node, Reply, Request};
use crate::mutation::Mutation;
use crate::workload::{Draft, Publish, Work, topic};

/// How long a worker works on one publish.
const LIMIT: Nanos = 10 * SECOND;
/// How long it waits for one answer.
const PATIENCE: Nanos = 4 * SECOND;

/// What a call was about.
#[derive(Clone, Debug)]
enum Asked {
    /// Of which inbox, what it must hold, and whether the update was stored before.
    History(usize, BTreeSet<u64>, bool),
    Lookup(LookupKey, Must),
    Store,
    Stage(Participant),
    Withdraw(Participant, WithdrawRequest),
    Decide(Bytes),
    Apply(Participant),
    Read(Bytes, u64, BTreeSet<u64>),
    Newest(BTreeSet<u64>),
    Boundary,
}

/// What is to be done for a worker.
#[derive(Debug)]
pub(crate) enum Want {
    Send(Message, Nanos),
    Sleep(Nanos),
    /// The same publish once more, later.
    Again(Publish),
}

#[derive(Debug)]
pub(crate) struct Worker {
    number: usize,
    pub(crate) skew: i64,
    deadline: Nanos,
    partitions: u32,
    directories: u32,
    work: Work,
    /// Heads that were read, by topic.
    heads: BTreeMap<usize, u64>,
    keys: Vec<Key>,
    stored_before: bool,
    /// Nothing goes wrong any more.
    calm: bool,
    coordinator: Option<Coordinator>,
    asked: BTreeMap<u64, Asked>,
    pub(crate) done: bool,
    wants: Vec<Want>,
}

impl Worker {
    pub(crate) fn new(
        number: usize,
        work: Work,
        skew: i64,
        partitions: u32,
        directories: u32,
        calm: bool,
    ) -> Self {
        Self {
            number,
            skew,
            deadline: 0,
            partitions,
            directories,
            work,
            heads: BTreeMap::new(),
            keys: Vec::new(),
            stored_before: false,
            calm,
            coordinator: None,
            asked: BTreeMap::new(),
            done: false,
            wants: Vec::new(),
        }
    }

    pub(crate) fn start(&mut self, context: &mut Context) -> Vec<Want> {
        self.deadline = context.local(self.skew) + LIMIT;
        match self.work.clone() {
            Work::Boundary => self.ask(context, Node::Sequencer, Request::Boundary, Asked::Boundary),
            Work::Read(index) => {
                let name = Bytes::from(topic(index));
                if context.random.chance(300) {
                    let must = context.history.read_begins(&name);
                    let request =
                        NewestRequest { topics: vec![name], include_envelope: false, max_bytes: 1 << 20 };
                    let to = Node::Log(self.partition(index));
                    self.ask(context, to, Request::Newest(request), Asked::Newest(must));
                    return self.take_wants();
                }
                let after = if context.random.chance(700) { 0 } else { context.random.below(20) };
                let must = context.history.read_begins(&name);
                self.read(context, index, after, Asked::Read(name, after, must));
            }
            Work::Lookup(key) => {
                let to = Node::Directory(partition_of(&key, self.directories));
                let must = context.history.identifiers.lookup_begins(&key);
                let request = Request::Lookup(LookupRequest { keys: vec![key.clone()] });
                self.ask(context, to, request, Asked::Lookup(key, must));
            }
            Work::Publish(publish) => {
                let updates: Vec<&Draft> = publish.drafts.iter().filter(|draft| draft.identity).collect();
                for update in &updates {
                    self.read_history(context, update);
                }
                if updates.is_empty() {
                    self.publish(context, &publish);
                }
            }
        }
        self.take_wants()
    }

    fn read(&mut self, context: &mut Context, index: usize, after: u64, asked: Asked) {
        let position = ReadPosition { topic: topic(index).into(), after };
        let request = ReadRequest { positions: vec![position], limit: 1_000, max_bytes: 1 << 20 };
        self.ask(context, Node::Log(self.partition(index)), Request::Read(request), asked);
    }

    /// The history of the inbox that is to be updated.
    fn read_history(&mut self, context: &mut Context, update: &Draft) {
        let NewEnvelope { topic, hash, .. } = update.envelope(None, self.directories);
        let must = context.history.read_begins(&topic);
        let stored = context.history.is_stored(&[(topic.clone(), hash.clone())]);
        let inboxes = vec![history_request::Inbox { topic, after: 0, hash }];
        let request = Request::History(HistoryRequest { inboxes, max_bytes: 1 << 20 });
        let to = Node::Log(self.partition(update.topic));
        self.ask(context, to, request, Asked::History(update.topic, must, stored));
    }

    fn partition(&self, index: usize) -> u32 {
        u32::try_from(index).expect("few topics") % self.partitions
    }

    /// The heads are known: the publish itself.
    fn publish(&mut self, context: &mut Context, publish: &Publish) {
        let mut parts: BTreeMap<(Kind, u32), Part> = BTreeMap::new();
        let mut envelopes = Vec::new();
        for draft in &publish.drafts {
            let head = draft.identity.then(|| self.heads.get(&draft.topic).copied().unwrap_or(0));
            let envelope = draft.envelope(head, self.directories);
            part(&mut parts, Kind::Log, self.partition(draft.topic)).envelopes.push(envelope.clone());
            envelopes.push(envelope);
        }
        for claim in &publish.claims {
            let index = partition_of(&handle(&claim.handle), self.directories);
            part(&mut parts, Kind::Directory, index).claims.push(claim.clone());
        }
        context.history.began(&envelopes, &publish.claims);
        self.keys = envelopes.iter().map(key).collect();
        self.stored_before = context.history.is_stored(&self.keys);
        if parts.len() == 1 {
            let partition = self.partition(publish.drafts[0].topic);
            let request = Request::Store(StoreRequest { envelopes });
            return self.ask(context, Node::Log(partition), request, Asked::Store);
        }
        context.history.transactions += 1;
        for part in parts.values_mut() {
            let mut seen = BTreeSet::new();
            part.envelopes.retain(|envelope| seen.insert(key(envelope)));
        }
        let now = context.local(self.skew);
        let chance = chance(context);
        let (coordinator, actions) =
            Coordinator::new(parts.into_values().collect(), now, self.deadline, chance);
        self.coordinator = Some(coordinator);
        self.carry_out(context, actions);
    }

    fn ask(&mut self, context: &mut Context, to: Node, request: Request, asked: Asked) {
        let call = context.next_call();
        let wait = if matches!(asked, Asked::Store) { LIMIT } else { PATIENCE };
        self.asked.insert(call, asked);
        let body = crate::message::Body::Request(request);
        self.wants.push(Want::Send(Message { from: Node::Worker(self.number), to, call, body }, wait));
    }

    fn take_wants(&mut self) -> Vec<Want> {
        std::mem::take(&mut self.wants)
    }

    /// An answer, or none (`None`): a failure, or too long a wait. The first counts.
    pub(crate) fn answer(&mut self, context: &mut Context, call: u64, reply: Option<Reply>) -> Vec<Want> {
        let Some(asked) = self.asked.remove(&call) else { return Vec::new() };
        if self.done {
            return Vec::new();
        }
        let now = context.local(self.skew);
        match (asked, reply) {
            (Asked::History(index, must, stored), Some(Reply::History(reply))) => {
                self.heads.insert(index, reply.inboxes[0].head);
                context.history.history_ends(topic(index).into(), &reply.inboxes[0], &must, stored);
                let waiting = self.asked.values().any(|asked| matches!(asked, Asked::History(..)));
                if let Work::Publish(publish) = self.work.clone()
                    && !waiting
                {
                    self.publish(context, &publish);
                }
            }
            (Asked::Read(topic, after, must), Some(Reply::Read(reply))) => {
                context.history.read_ends(topic, after, reply, &must);
                self.done = true;
            }
            (Asked::Newest(must), Some(Reply::Newest(reply))) => {
                context.history.newest_ends(&reply, &must);
                self.done = true;
            }
            (Asked::Lookup(key, must), Some(Reply::Lookup(reply))) => {
                let answer = reply.results[0].inbox_id.as_ref();
                if let Err(what) = context.history.identifiers.lookup_ends(&key, &must, answer) {
                    context.history.violation(&what);
                }
                self.done = true;
            }
            (Asked::Store, Some(Reply::Store(reply))) => self.stored(context, &reply),
            (Asked::History(..) | Asked::Store, _) => self.again(context),
            (Asked::Read(..) | Asked::Newest(_) | Asked::Lookup(..) | Asked::Boundary, _) => self.done = true,
            (Asked::Withdraw(participant, request), None) if now < self.deadline => {
                let to = Node::of(participant);
                let asked = Asked::Withdraw(participant, request.clone());
                self.ask(context, to, Request::Withdraw(request), asked);
            }
            (asked, reply) => self.coordinate(context, now, asked, reply),
        }
        self.take_wants()
    }

    fn coordinate(&mut self, context: &mut Context, now: Nanos, asked: Asked, reply: Option<Reply>) {
        let Some(coordinator) = &mut self.coordinator else { return };
        let actions = match (asked, reply) {
            (Asked::Stage(from), Some(Reply::Stage(reply))) => coordinator.staged(now, from, Some(&reply)),
            (Asked::Stage(from), _) => coordinator.staged(now, from, None),
            (Asked::Withdraw(from, _), _) => coordinator.withdrawn(now, from),
            (Asked::Decide(txid), Some(Reply::Decide(reply))) => {
                if reply.decided {
                    context.history.told_decided(&txid);
                    if context.is(Mutation::AnsweredBeforeAllApplied) {
                        let keys = self.keys.clone();
                        let stored = context.history.is_stored(&keys);
                        context.history.require(stored, || "API-202: acknowledged, not stored".to_owned());
                    }
                }
                coordinator.decided(now, Some(reply))
            }
            (Asked::Decide(txid), _) => {
                if context.is(Mutation::WithdrawAfterDecide) {
                    let participants: Vec<Participant> = coordinator.participants().collect();
                    for participant in participants {
                        let request = WithdrawRequest { txid: txid.clone() };
                        let asked = Asked::Withdraw(participant, request.clone());
                        self.ask(context, Node::of(participant), Request::Withdraw(request), asked);
                    }
                }
                let Some(coordinator) = &mut self.coordinator else { return };
                coordinator.decided(now, None)
            }
            (Asked::Apply(from), Some(Reply::Apply(reply))) => coordinator.applied(now, from, Some(reply)),
            (Asked::Apply(from), _) => coordinator.applied(now, from, None),
            _ => Vec::new(),
        };
        self.carry_out(context, actions);
    }

    pub(crate) fn woke(&mut self, context: &mut Context) -> Vec<Want> {
        let now = context.local(self.skew);
        let chance = chance(context);
        if let Some(coordinator) = &mut self.coordinator {
            let actions = coordinator.woke(now, chance);
            self.carry_out(context, actions);
        }
        self.take_wants()
    }

    fn carry_out(&mut self, context: &mut Context, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Stage(to, request) => {
                    self.ask(context, Node::of(to), Request::Stage(request), Asked::Stage(to));
                }
                Action::Withdraw(to, request) => {
                    let asked = Asked::Withdraw(to, request.clone());
                    self.ask(context, Node::of(to), Request::Withdraw(request), asked);
                }
                Action::Decide(request) => {
                    let asked = Asked::Decide(request.txid.clone());
                    self.ask(context, Node::Sequencer, Request::Decide(request), asked);
                }
                Action::Apply(to, request) => {
                    self.ask(context, Node::of(to), Request::Apply(request), Asked::Apply(to));
                }
                Action::Sleep(after) => self.wants.push(Want::Sleep(after)),
                Action::Done(outcome) => self.end(context, outcome),
            }
        }
    }

    fn stored(&mut self, context: &mut Context, reply: &StoreReply) {
        match reply.refusal() {
            Refusal::Unspecified => self.succeed(context, &reply.metas),
            Refusal::HeadMoved => self.end(context, Outcome::HeadMoved),
            Refusal::Busy => self.again(context),
        }
    }

    fn end(&mut self, context: &mut Context, outcome: Outcome) {
        context.trace(|| format!("Worker({}) ends: {}", self.number, name(&outcome)));
        match outcome {
            Outcome::Stored(metas) => {
                let metas: Vec<EnvelopeMeta> = metas.into_iter().flatten().collect();
                self.succeed(context, &metas);
            }
            Outcome::HeadMoved => {
                context.history.head_moved(&self.keys, self.stored_before);
                self.done = true;
            }
            Outcome::Taken => {
                context.history.require(!self.stored_before, || "API-222: TAKEN for stored bytes".to_owned());
                if let Work::Publish(publish) = &self.work {
                    context.history.taken.push(publish.claims.clone());
                }
                self.done = true;
            }
            Outcome::Unavailable | Outcome::DeadlineExceeded => self.again(context),
        }
    }

    fn succeed(&mut self, context: &mut Context, metas: &[EnvelopeMeta]) {
        context.history.acknowledged(metas, &self.keys);
        self.done = true;
    }

    /// The outcome is unknown: the same bytes may be sent again (API-224).
    fn again(&mut self, context: &mut Context) {
        self.done = true;
        let refused = self.calm && self.stored_before;
        context.history.require(!refused, || "API-222: stored bytes sent again, and no success".to_owned());
        if let Work::Publish(publish) = &self.work
            && publish.retries > 0
        {
            context.trace(|| format!("Worker({}) will try again", self.number));
            self.wants.push(Want::Again(Publish { retries: publish.retries - 1, ..publish.clone() }));
        }
    }
}

fn part(parts: &mut BTreeMap<(Kind, u32), Part>, kind: Kind, index: u32) -> &mut Part {
    let participant = Participant { kind: kind.into(), index };
    let new = || Part { participant, envelopes: Vec::new(), claims: Vec::new() };
    parts.entry((kind, index)).or_insert_with(new)
}

fn chance(context: &mut Context) -> Chance {
    let txid = context.random.bytes16();
    let part = f64::from(context.random.small(0, 1_000)) / 1_000.0;
    Chance { txid, part }
}

fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Stored(_) => "stored",
        Outcome::HeadMoved => "head moved",
        Outcome::Taken => "taken",
        Outcome::Unavailable => "unavailable",
        Outcome::DeadlineExceeded => "deadline exceeded",
    }
}
