//! A partition and a sequencer on native SQLite, wired by hand: each test decides which message arrives, and when.

#![allow(dead_code, unreachable_pub)] // each suite is a crate of its own and uses its part

use std::cell::Cell;

use bytes::Bytes;
use sealog_log::native::Native;
use sealog_log::participant;
use sealog_log::partition::{Action, CallId, Machine, Partition, Reply};
use sealog_log::sequencer::Sequencer;
use sealog_log::{Each, Fault, Nanos, Param, SECOND, Sql, SqlError};
use sealog_proto::Kind;
use sealog_proto::associations::IdentifierKind;
use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::{
    AssociationChange, Failure, JoinRequest, LookupKey, NewEnvelope, ReserveReply, ReserveRequest,
    StoreReply, StoreRequest,
};

/// Any time well after the epoch.
pub const NOON: Nanos = 1_800_000_000 * SECOND;

/// Counts transactions and writes, and fails when told to.
#[derive(Debug, Default)]
pub struct Storage {
    native: Native,
    /// Statements that write, so far.
    pub writes: Cell<u64>,
    /// The write that fails, counted from the next one; 0 = none.
    pub fail_at: Cell<u64>,
}

impl Sql for Storage {
    fn query(&self, statement: &str, params: &[Param<'_>], each: Each<'_>) -> Result<(), SqlError> {
        if statement.starts_with("INSERT") || statement.starts_with("UPDATE") {
            self.writes.set(self.writes.get() + 1);
            let left = self.fail_at.get();
            self.fail_at.set(left.saturating_sub(1));
            if left == 1 {
                return Err(SqlError("the disk is full".to_owned()));
            }
        }
        self.native.query(statement, params, each)
    }

    fn transaction(&self, body: &mut dyn FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
        self.native.transaction(body)
    }
}

/// A deployment with one partition.
pub struct World {
    pub now: Nanos,
    pub sequencer_storage: Storage,
    pub sequencer: Sequencer,
    pub storage: Storage,
    pub partition: Partition,
    next_publish: CallId,
}

impl World {
    pub fn new() -> Self {
        let sequencer_storage = Storage::default();
        let (mut sequencer, _) = Sequencer::load(&sequencer_storage).expect("an empty database loads");
        sequencer
            .join(&sequencer_storage, &JoinRequest { log_partitions: 1, ..JoinRequest::default() })
            .expect("the first join is taken");
        let storage = Storage::default();
        let (partition, _) = Partition::load(&storage, NOON, 0).expect("an empty database loads");
        Self { now: NOON, sequencer_storage, sequencer, storage, partition, next_publish: 0 }
    }

    pub fn restart_partition(&mut self) -> Vec<Action> {
        let (partition, actions) =
            Partition::load(&self.storage, self.now, 0).expect("the stored state loads");
        self.partition = partition;
        actions
    }

    pub fn restart_sequencer(&mut self) {
        (self.sequencer, _) = Sequencer::load(&self.sequencer_storage).expect("the stored state loads");
    }

    /// Hands a publish to the partition.
    pub fn send(&mut self, envelopes: Vec<NewEnvelope>) -> (CallId, Vec<Action>) {
        self.next_publish += 1;
        let actions = self.partition.publish(self.now, self.next_publish, StoreRequest { envelopes });
        (self.next_publish, actions)
    }

    /// The sequencer's answer.
    pub fn ask(&mut self, request: &ReserveRequest) -> ReserveReply {
        self.sequencer.reserve(&self.sequencer_storage, self.now, request).expect("the request is taken")
    }

    /// Hands a reply to the partition.
    pub fn receive(&mut self, reply: &ReserveReply) -> Vec<Action> {
        self.partition.reserved(&self.storage, self.now, reply).expect("the reply is taken")
    }

    /// Carries messages until none is left; returns the answers.
    pub fn run(&mut self, actions: Vec<Action>) -> Vec<(CallId, Result<StoreReply, Failure>)> {
        let mut answers = Vec::new();
        let mut todo = actions;
        while let Some(action) = todo.pop() {
            match action {
                Action::Answer { call, reply } => answers.push((call, reply.map(store_reply))),
                Action::Reserve { request, .. } => {
                    let reply = self.ask(&request);
                    todo.extend(self.receive(&reply));
                }
                Action::Wake { .. }
                | Action::Alarm { .. }
                | Action::Resolve { .. }
                | Action::Associate { .. }
                | Action::Push { .. } => {}
            }
        }
        answers.sort_by_key(|(publish, _)| *publish);
        answers
    }

    /// Publishes and returns the metadata.
    pub fn store(&mut self, envelopes: Vec<NewEnvelope>) -> Vec<EnvelopeMeta> {
        let (_, actions) = self.send(envelopes);
        let answers = self.run(actions);
        answers.into_iter().next().expect("an answer").1.expect("stored").metas
    }
}

/// An envelope of group `group`, told apart by `text`.
pub fn envelope(group: u8, text: &str) -> NewEnvelope {
    let mut hash = vec![0; 32];
    hash[..text.len()].copy_from_slice(text.as_bytes());
    NewEnvelope {
        topic: topic(group),
        hash: hash.into(),
        body: Bytes::copy_from_slice(text.as_bytes()),
        is_commit_or_proposal: false,
        retention_seconds: 60,
        ..NewEnvelope::default()
    }
}

/// The same, to be stored only on this head.
pub fn envelope_on(group: u8, text: &str, head: u64) -> NewEnvelope {
    NewEnvelope { expected_head: Some(head), ..envelope(group, text) }
}

/// An identity update of an inbox, to be stored on this head, with facts and changes.
pub fn update(inbox: u8, text: &str, head: u64, changes: Vec<AssociationChange>) -> NewEnvelope {
    let mut topic = vec![0; 33];
    (topic[0], topic[32]) = (Kind::IdentityUpdate as u8, inbox);
    NewEnvelope {
        topic: topic.into(),
        retention_seconds: 0,
        expected_head: Some(head),
        facts: Some(Bytes::from(format!("facts of {text}"))),
        changes,
        ..envelope(inbox, text)
    }
}

/// Identifier `number`, which this Directory keeps, comes or goes.
pub fn change(directory: u32, number: u8, live: bool) -> AssociationChange {
    let key = Bytes::from(format!("0x{number:040x}"));
    let key = Some(LookupKey { kind: IdentifierKind::Ethereum.into(), key });
    AssociationChange { directory, key, live }
}

pub fn topic(group: u8) -> Bytes {
    let mut topic = vec![0; 17];
    topic[16] = group;
    topic.into()
}

pub fn id(meta: &EnvelopeMeta) -> u64 {
    meta.cursor.expect("every envelope has a cursor").sequence_id
}

/// The one request among actions.
pub fn request(actions: &[Action]) -> ReserveRequest {
    let mut requests = actions.iter().filter_map(|action| match action {
        Action::Reserve { request, .. } => Some(*request),
        _ => None,
    });
    let request = requests.next().expect("a request");
    assert!(requests.next().is_none(), "one request counts at a time");
    request
}

pub fn store_reply(reply: Reply) -> StoreReply {
    let Reply::Store(reply) = reply else { panic!("the answer to a publish") };
    reply
}

/// Participant 0, as messages name it.
#[allow(clippy::unnecessary_wraps)]
pub fn log() -> Option<sealog_proto::internal::Participant> {
    Some(participant::log(0))
}

pub fn has_request(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Reserve { .. }))
}
