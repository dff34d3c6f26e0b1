//! The watches of a partition on native SQLite, and sessions that obey the rules: each test decides which message
//! arrives, and when.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use sealog_log::native::Native;
use sealog_log::partition::watch::Watch as Machine;
use sealog_log::partition::{Action, Machine as _, Partition};
use sealog_log::{Each, Fault, Nanos, Param, SECOND, Sql, SqlError, blob8};
use sealog_proto::backend::{Cursor, EnvelopeMeta, MessageHash, Topic, message_hash};
use sealog_proto::internal::{
    ControlReply, ControlRequest, PushReply, PushRequest, Watch, control_request::Kind, push_request::Item,
};

pub(crate) const NOON: Nanos = 1_800_000_000 * SECOND;

/// Counts statements.
#[derive(Default)]
pub(crate) struct Storage {
    native: Native,
    /// Rows inserted, updated or deleted by statement.
    pub(crate) writes: Cell<u64>,
    pub(crate) statements: Cell<u64>,
}

impl Sql for Storage {
    fn query(&self, statement: &str, params: &[Param<'_>], each: Each<'_>) -> Result<(), SqlError> {
        self.statements.set(self.statements.get() + 1);
        if ["INSERT", "UPDATE", "DELETE"].iter().any(|verb| statement.starts_with(verb)) {
            self.writes.set(self.writes.get() + 1);
        }
        self.native.query(statement, params, each)
    }

    fn transaction(&self, body: &mut dyn FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
        self.native.transaction(body)
    }
}

/// One partition's watches, its log, and its object's alarm.
pub(crate) struct World {
    pub(crate) now: Nanos,
    pub(crate) storage: Storage,
    pub(crate) machine: Machine,
    /// The stored mark.
    pub(crate) mark: u64,
    /// The newest id.
    pub(crate) highest: u64,
    incarnation: u64,
    /// Pushes that left, oldest first.
    pub(crate) pushes: VecDeque<PushRequest>,
    /// When the object's alarm rings.
    pub(crate) rings_at: Option<Nanos>,
}

impl World {
    pub(crate) fn new() -> Self {
        let storage = Storage::default();
        Partition::load(&storage, NOON, 0).expect("an empty database gets its tables");
        let machine = Machine::new(0, 1, 0);
        let mut world = Self {
            now: NOON,
            storage,
            machine,
            mark: 0,
            highest: 0,
            incarnation: 1,
            pushes: VecDeque::new(),
            rings_at: None,
        };
        world.start();
        world
    }

    /// The instance dies; a new one starts, and does the first piece of its load.
    pub(crate) fn restart(&mut self) {
        self.die();
        self.start();
    }

    /// The instance dies. What was under way is lost; the next one has read nothing yet.
    pub(crate) fn die(&mut self) {
        self.incarnation += 1;
        self.machine = Machine::new(0, self.incarnation, self.mark);
        self.pushes.clear();
    }

    fn start(&mut self) {
        self.event(|world| {
            world.machine.alarm(&world.storage, world.now).expect("it loads");
            let settled = world.machine.settle(world.highest).expect("the mark is sound");
            world.mark = settled.unwrap_or(world.mark);
        });
    }

    /// Runs an event, and does what the machine says at its end.
    fn event<R>(&mut self, run: impl FnOnce(&mut Self) -> R) -> R {
        let answer = run(self);
        let mut actions = Vec::new();
        self.machine.pump(self.now, &mut actions).expect("no invariant breaks");
        for action in actions {
            let Action::Push { request, deadline } = action else { panic!("only pushes: {action:?}") };
            assert_eq!(deadline, 2 * SECOND, "rule 9");
            self.pushes.push_back(request);
        }
        if let Some(after) = self.machine.owes(self.now) {
            let at = self.now + after;
            self.rings_at = Some(self.rings_at.map_or(at, |rings_at| rings_at.min(at)));
        }
        answer
    }

    /// Time passes until the alarm rings.
    pub(crate) fn ring(&mut self) {
        let at = self.rings_at.take().expect("an alarm is set");
        self.now = self.now.max(at);
        self.start();
    }

    /// Lets alarms ring until none is due at once.
    pub(crate) fn settle(&mut self) {
        while self.rings_at.is_some_and(|at| at <= self.now) {
            self.ring();
        }
    }

    pub(crate) fn try_control(
        &mut self,
        request: &ControlRequest,
    ) -> Result<ControlReply, sealog_log::CommandError> {
        self.event(|world| world.machine.control(&world.storage, world.now, request))
    }

    pub(crate) fn control(&mut self, request: &ControlRequest) -> ControlReply {
        self.try_control(request).expect("the call is taken")
    }

    /// A session adds topics, each under the call's number as its generation.
    pub(crate) fn add(&mut self, session: u32, number: u64, topics: &[Bytes]) -> ControlReply {
        self.control(&call(session, Kind::Bidi, number, &watches(topics, number), &[]))
    }

    /// What one step does: rows on topics, and the mark with them.
    pub(crate) fn commit(&mut self, rows: &[(Bytes, usize)]) {
        self.event(|world| {
            let mut news = world.machine.news();
            for (topic, size) in rows {
                world.highest += 1;
                let (meta, body) = row(topic, world.highest, *size);
                news.before(&world.storage, topic).expect("the head is read");
                insert(&world.storage, topic, world.highest, &body);
                news.stored(world.highest, &meta, &body).expect("the row is gathered");
            }
            world.mark = news.mark(world.highest).expect("the mark is sound");
            let gathered = news.finish();
            world.machine.stored(gathered, world.mark).expect("the rows are owed");
        });
    }

    /// One small row.
    pub(crate) fn publish(&mut self, topic: &Bytes) {
        self.commit(&[(topic.clone(), 10)]);
    }

    /// The answer to a push, or that there was none.
    pub(crate) fn answer(&mut self, push: &PushRequest, reply: Option<&PushReply>) {
        self.event(|world| {
            let done = world.machine.pushed(
                &world.storage,
                world.now,
                &push.session,
                (push.incarnation, push.number),
                reply,
            );
            done.expect("the answer is taken");
        });
    }

    pub(crate) fn acknowledge(&mut self, push: &PushRequest) {
        self.answer(push, Some(&PushReply { incarnation: push.incarnation, number: push.number, ..reply() }));
    }

    pub(crate) fn refuse(&mut self, push: &PushRequest, unwanted: Vec<Watch>) {
        self.answer(
            push,
            Some(&PushReply { incarnation: push.incarnation, number: push.number, gone: false, unwanted }),
        );
    }

    pub(crate) fn gone(&mut self, push: &PushRequest) {
        let reply = PushReply { incarnation: push.incarnation, number: push.number, gone: true, ..reply() };
        self.answer(push, Some(&reply));
    }

    /// The next push.
    pub(crate) fn push(&mut self) -> PushRequest {
        self.pushes.pop_front().expect("a push")
    }

    /// Acknowledges all pushes, those that follow too. Says how many there were.
    pub(crate) fn drain(&mut self) -> usize {
        let mut count = 0;
        while let Some(push) = self.pushes.pop_front() {
            self.acknowledge(&push);
            count += 1;
        }
        count
    }

    pub(crate) fn count(&self, statement: &str) -> i64 {
        self.storage.first(statement, &[]).unwrap().unwrap()[0].integer().unwrap()
    }

    /// Rows of watches.
    pub(crate) fn watch_rows(&self) -> i64 {
        self.count("SELECT count(*) FROM watches")
    }
}

pub(crate) fn reply() -> PushReply {
    PushReply::default()
}

/// A session that obeys rules 12 to 14, as far as pushes go: what it has delivered of each topic.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) topics: BTreeMap<Bytes, Registration>,
}

#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) generation: u32,
    /// Where it began.
    pub(crate) target: u64,
    pub(crate) position: u64,
    pub(crate) known: u64,
    pub(crate) delivered: Vec<u64>,
}

impl Reader {
    pub(crate) fn register(&mut self, topic: &Bytes, generation: u32, head: u64) {
        let fresh =
            Registration { generation, target: head, position: head, known: head, delivered: Vec::new() };
        self.topics.insert(topic.clone(), fresh);
    }

    /// Rule 13. What it does not have is unwanted.
    pub(crate) fn take(&mut self, push: &PushRequest) -> Vec<Watch> {
        let mut unwanted = Vec::new();
        for item in &push.items {
            check(item);
            match self.topics.get_mut(&item.topic).filter(|it| it.generation == item.generation) {
                None => unwanted.push(Watch { topic: item.topic.clone(), generation: item.generation }),
                Some(it) if it.position < item.previous => it.known = it.known.max(item.head),
                Some(it) => {
                    it.delivered.extend(ids(item).into_iter().filter(|id| *id > it.position));
                    it.position = it.position.max(item.head);
                    it.known = it.known.max(item.head);
                }
            }
        }
        unwanted
    }
}

/// What must be true of every item (assertion f of a session).
pub(crate) fn check(item: &Item) {
    let ids = ids(item);
    assert!(ids.is_sorted_by(|one, next| one < next), "ascending");
    match (ids.first(), ids.last()) {
        (Some(first), Some(last)) => assert!(*first > item.previous && *last == item.head),
        _ => assert_eq!(item.previous, item.head, "a hint"),
    }
}

pub(crate) fn ids(item: &Item) -> Vec<u64> {
    item.rows.iter().map(|row| row.meta.as_ref().unwrap().cursor.unwrap().sequence_id).collect()
}

pub(crate) fn session_id(session: u32) -> Bytes {
    let mut id = vec![0; 32];
    id[28..].copy_from_slice(&session.to_be_bytes());
    id.into()
}

pub(crate) fn topic(number: u32) -> Bytes {
    let mut topic = vec![0; 17];
    topic[13..].copy_from_slice(&number.to_be_bytes());
    topic.into()
}

pub(crate) fn watches(topics: &[Bytes], generation: u64) -> Vec<Watch> {
    let generation = u32::try_from(generation).unwrap();
    topics.iter().map(|topic| Watch { topic: topic.clone(), generation }).collect()
}

pub(crate) fn call(session: u32, kind: Kind, number: u64, add: &[Watch], remove: &[Watch]) -> ControlRequest {
    ControlRequest {
        session: session_id(session),
        kind: kind.into(),
        number,
        add: add.to_vec(),
        remove: remove.to_vec(),
    }
}

fn row(topic: &Bytes, id: u64, size: usize) -> (EnvelopeMeta, Bytes) {
    let meta = EnvelopeMeta {
        cursor: Some(Cursor { sequence_id: id }),
        server_ns: NOON,
        message_hash: Some(MessageHash { hash: Some(message_hash::Hash::Sha256(hash(id))) }),
        topic: Some(Topic { topic: topic.clone() }),
        expiry_ns: 0,
        is_commit_or_proposal: false,
    };
    (meta, vec![7; size].into())
}

fn hash(id: u64) -> Bytes {
    let mut hash = vec![0; 32];
    hash[..8].copy_from_slice(&blob8(id));
    hash.into()
}

fn insert(sql: &dyn Sql, topic: &[u8], id: u64, body: &[u8]) {
    sql.run(
        "INSERT INTO envelopes (topic, sequence_id, hash, server_ns, expiry_ns, is_commit_or_proposal, body)
         VALUES (?, ?, ?, zeroblob(8), zeroblob(8), 0, ?)",
        &[Param::Blob(topic), Param::Blob(&blob8(id)), Param::Blob(&hash(id)), Param::Blob(body)],
    )
    .unwrap();
    sql.run(
        "INSERT INTO topics (topic, head) VALUES (?, ?) ON CONFLICT (topic) DO UPDATE SET head = excluded.head",
        &[Param::Blob(topic), Param::Blob(&blob8(id))],
    )
    .unwrap();
}
