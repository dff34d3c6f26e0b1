//! One session, driven by hand: small honest partitions, a client that writes down what it gets, a clock that the test
//! turns. Each test decides which message arrives, and when.

mod frames;
mod partition;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use prost::Message;
use sealog_log::native::Native;
use sealog_log::session::{Action, Context, Limits, Session, Setup, Status};
use sealog_log::{Fault, Nanos, SECOND};
use sealog_proto::backend::{
    Ping, Pong, SubscribeRequest, SubscribeStaticRequest, subscribe_request::Request,
};
use sealog_proto::internal::{
    ControlReply, ControlRequest, PullReply, PullRequest, PushReply, PushRequest, push_request,
};
use sealog_proto::status::Code;

pub use frames::{bytes, grpc, update};
use frames::{parsed, queries, read, read_static, row};
pub use partition::Log;

/// Any time well after the epoch.
pub const NOON: Nanos = 1_800_000_000 * SECOND;

/// What the client got: one entry for each frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    Started,
    /// Of a static stream, with its targets.
    StartedAt(Vec<(u32, u64)>),
    /// Id, then topic and target.
    Applied(u64, Vec<(u32, u64)>),
    /// Topic and id.
    Rows(Vec<(u32, u64)>),
    Ping(u64),
    Pong(u64),
    Keepalive,
}

/// A call that was sent and not answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent<T> {
    pub partition: u32,
    pub request: T,
    pub deadline: Nanos,
}

pub struct World {
    pub now: Nanos,
    pub elsewhere: u64,
    pub setup: Setup,
    pub sql: Native,
    pub is_static: bool,
    pub session: Session,
    /// What the live socket keeps.
    pub attachment: Option<Vec<u8>>,
    /// Attachments in the order written, of the last event.
    pub attached: Vec<Vec<u8>>,
    pub got: Vec<Got>,
    /// Bytes of each frame that was sent.
    pub frames: Vec<Bytes>,
    pub controls: VecDeque<Sent<ControlRequest>>,
    pub pulls: VecDeque<Sent<PullRequest>>,
    pub syncs: VecDeque<u64>,
    pub alarm_at: Option<Nanos>,
    pub alarms_set: usize,
    pub wakes: Vec<Nanos>,
    pub finished: Option<Status>,
    pub deleted: bool,
    pub faults: Vec<Fault>,
    pub logs: BTreeMap<u32, Log>,
    pub last_id: u64,
    /// Actions of the last event.
    pub last: Vec<Action>,
}

impl World {
    /// An object that holds no stream.
    pub fn idle(partitions: u32, limits: Limits) -> Self {
        let setup = Setup { session: Bytes::from(vec![7; 32]), partitions, limits };
        let sql = Native::new();
        let ctx = Context { sql: &sql, now: NOON, elsewhere: 0 };
        let (session, actions) = Session::load(&ctx, setup.clone(), None).expect("empty storage loads");
        assert!(actions.is_empty());
        Self {
            now: NOON,
            elsewhere: 0,
            setup,
            sql,
            is_static: false,
            session,
            attachment: None,
            attached: Vec::new(),
            got: Vec::new(),
            frames: Vec::new(),
            controls: VecDeque::new(),
            pulls: VecDeque::new(),
            syncs: VecDeque::new(),
            alarm_at: None,
            alarms_set: 0,
            wakes: Vec::new(),
            finished: None,
            deleted: false,
            faults: Vec::new(),
            logs: (0..partitions).map(|partition| (partition, Log::default())).collect(),
            last_id: 0,
            last: Vec::new(),
        }
    }

    /// An open stream without topics, all of whose writes are durable.
    pub fn open() -> Self {
        Self::with(1, Limits::default())
    }

    pub fn with(partitions: u32, limits: Limits) -> Self {
        let mut world = Self::idle(partitions, limits);
        world.event(Session::accept);
        world.event(Session::start);
        world.sync();
        assert_eq!(std::mem::take(&mut world.got), [Got::Started], "API-250");
        world
    }

    /// A static stream of these topics.
    pub fn open_static(partitions: u32, limits: Limits, topics: &[(u32, u64)]) -> Result<Self, Status> {
        let mut world = Self::idle(partitions, limits);
        let request = SubscribeStaticRequest { topics: queries(topics) }.encode_to_vec();
        let ctx = Context { sql: &world.sql, now: world.now, elsewhere: 0 };
        let (session, actions) = Session::open_static(&ctx, world.setup.clone(), request.into())?;
        world.session = session;
        world.is_static = true;
        world.absorb(actions);
        Ok(world)
    }

    pub fn event(&mut self, event: impl FnOnce(&mut Session, &Context<'_>) -> Vec<Action>) {
        let ctx = Context { sql: &self.sql, now: self.now, elsewhere: self.elsewhere };
        let actions = event(&mut self.session, &ctx);
        self.absorb(actions);
    }

    fn absorb(&mut self, actions: Vec<Action>) {
        let calls =
            actions.iter().filter(|it| matches!(it, Action::Control { .. } | Action::Pull { .. })).count();
        assert!(calls <= 500, "rule 17");
        self.attached.clear();
        self.last.clone_from(&actions);
        for action in actions {
            match action {
                Action::Attach(bytes) => {
                    assert!(bytes.len() <= 13 << 10, "assertion (l)");
                    self.attachment = Some(bytes.clone());
                    self.attached.push(bytes);
                }
                Action::Send(frame) => {
                    assert!(self.finished.is_none(), "nothing follows the trailers");
                    self.got.push(if self.is_static { read_static(&frame) } else { read(&frame) });
                    self.frames.push(frame);
                }
                Action::Control { partition, request, deadline } => {
                    self.controls.push_back(Sent { partition, request, deadline });
                }
                Action::Pull { partition, request, deadline } => {
                    self.pulls.push_back(Sent { partition, request, deadline });
                }
                Action::Alarm { after } => {
                    self.alarm_at = Some(self.now + after);
                    self.alarms_set += 1;
                }
                Action::Wake { after } => self.wakes.push(self.now + after),
                Action::Sync { number } => self.syncs.push_back(number),
                Action::Finish(status) => {
                    assert!(self.finished.is_none(), "a stream ends once");
                    self.finished = Some(status);
                    self.attachment = None;
                }
                Action::Delete => self.deleted = true,
                Action::Report(fault) => self.faults.push(fault),
            }
        }
    }

    /// All writes become durable.
    pub fn sync(&mut self) {
        while let Some(number) = self.syncs.pop_front() {
            self.event(|session, ctx| session.synced(ctx, number));
        }
    }

    /// The object hibernates, or loses its memory, and an event brings it back.
    pub fn restart(&mut self) {
        self.controls.clear();
        self.pulls.clear();
        self.syncs.clear();
        self.wakes.clear();
        let ctx = Context { sql: &self.sql, now: self.now, elsewhere: self.elsewhere };
        let (session, actions) =
            Session::load(&ctx, self.setup.clone(), self.attachment.as_deref()).expect("storage loads");
        self.session = session;
        self.absorb(actions);
    }

    // ---- the client ----

    pub fn frame(&mut self, request: Option<Request>) {
        let bytes = grpc(&SubscribeRequest { request }.encode_to_vec());
        self.event(|session, ctx| session.data(ctx, bytes));
    }

    pub fn update(&mut self, id: u64, adds: &[(u32, u64)], removes: &[u32]) {
        self.frame(Some(Request::Update(update(id, adds, removes))));
    }

    pub fn ping(&mut self, nonce: u64) {
        self.frame(Some(Request::Ping(Ping { nonce })));
    }

    pub fn pong(&mut self, nonce: u64) {
        self.frame(Some(Request::Pong(Pong { nonce })));
    }

    /// What came since the last call.
    pub fn take(&mut self) -> Vec<Got> {
        std::mem::take(&mut self.got)
    }

    /// Rows that came since the last call, with all frames joined; other frames are dropped.
    pub fn rows(&mut self) -> Vec<(u32, u64)> {
        self.take()
            .into_iter()
            .flat_map(|got| if let Got::Rows(rows) = got { rows } else { Vec::new() })
            .collect()
    }

    pub fn code(&self) -> Option<Code> {
        self.finished.as_ref().map(|status| status.code)
    }

    /// Whether the attachment says that memory alone knows something.
    pub fn busy(&self) -> bool {
        busy(self.attachment.as_deref().expect("a live socket"))
    }

    // ---- the partitions ----

    pub fn partition(&self, topic: u32) -> u32 {
        parsed(topic).partition(self.setup.partitions)
    }

    pub fn log(&mut self, topic: u32) -> &mut Log {
        let partition = self.partition(topic);
        self.logs.get_mut(&partition).expect("a partition")
    }

    /// Stores a row; returns its id.
    pub fn store(&mut self, topic: u32) -> u64 {
        self.store_of(topic, 8)
    }

    pub fn store_of(&mut self, topic: u32, bytes: usize) -> u64 {
        self.last_id += 1;
        let row = row(topic, self.last_id, bytes);
        self.log(topic).rows.entry(topic).or_default().push(row);
        self.last_id
    }

    pub fn head(&mut self, topic: u32) -> u64 {
        self.log(topic).head(topic)
    }

    /// What a partition answers to a call, as it does it.
    pub fn answer_control(&mut self, sent: &Sent<ControlRequest>) -> ControlReply {
        self.logs.get_mut(&sent.partition).expect("a partition").control(&sent.request)
    }

    pub fn answer_pull(&mut self, sent: &Sent<PullRequest>) -> PullReply {
        self.logs.get_mut(&sent.partition).expect("a partition").pull(&sent.request)
    }

    pub fn control_reply(&mut self, sent: &Sent<ControlRequest>, reply: Option<&ControlReply>) {
        self.event(|session, ctx| session.control_reply(ctx, sent.partition, sent.request.number, reply));
    }

    pub fn pull_reply(&mut self, sent: &Sent<PullRequest>, reply: Option<PullReply>) {
        self.event(|session, ctx| session.pull_reply(ctx, sent.request.number, reply));
    }

    /// Answers the oldest control.
    pub fn control(&mut self) -> ControlRequest {
        let sent = self.controls.pop_front().expect("a control is in flight");
        let reply = self.answer_control(&sent);
        self.control_reply(&sent, Some(&reply));
        sent.request
    }

    /// Answers the oldest pull.
    pub fn pull(&mut self) -> PullRequest {
        let sent = self.pulls.pop_front().expect("a pull is in flight");
        let reply = self.answer_pull(&sent);
        self.pull_reply(&sent, Some(reply));
        sent.request
    }

    /// Carries messages until none is left; the client answers Pings.
    pub fn run(&mut self) {
        loop {
            if !self.controls.is_empty() {
                self.control();
            } else if !self.pulls.is_empty() {
                self.pull();
            } else if !self.syncs.is_empty() {
                self.sync();
            } else if let Some(nonce) = self.unanswered_ping() {
                self.pong(nonce);
            } else {
                return;
            }
            assert!(self.faults.is_empty(), "{:?}", self.faults);
        }
    }

    fn unanswered_ping(&mut self) -> Option<u64> {
        let at = self.got.iter().position(|got| matches!(got, Got::Ping(_)))?;
        let Got::Ping(nonce) = self.got.remove(at) else { return None };
        Some(nonce)
    }

    /// What a partition pushes of a topic: the rows above `previous`.
    pub fn item(&mut self, topic: u32, generation: u32, previous: u64) -> push_request::Item {
        let rows: Vec<_> = self.log(topic).above(topic, previous).cloned().collect();
        let head = self.head(topic);
        push_request::Item { topic: bytes(topic), generation, previous, rows, head }
    }

    /// Pushes items, as number 1 of incarnation 1 of partition 0.
    pub fn push(&mut self, items: Vec<push_request::Item>) -> PushReply {
        let request = PushRequest {
            session: self.setup.session.clone(),
            partition: 0,
            incarnation: 1,
            number: 1,
            items,
        };
        let mut answer = None;
        self.event(|session, ctx| {
            let (reply, actions) = session.push(ctx, request);
            answer = Some(reply);
            actions
        });
        answer.expect("rule 11: answered in the event")
    }

    /// Stores a row and pushes it under this generation.
    pub fn publish(&mut self, topic: u32, generation: u32) -> u64 {
        let previous = self.head(topic);
        let id = self.store(topic);
        let item = self.item(topic, generation, previous);
        let reply = self.push(vec![item]);
        assert_eq!((reply.gone, reply.unwanted.len()), (false, 0));
        id
    }

    /// The clock goes on, and the alarm and the timers that are due ring.
    pub fn pass(&mut self, time: Nanos) {
        let end = self.now + time;
        loop {
            let wake = self.wakes.iter().copied().min();
            let next = self.alarm_at.into_iter().chain(wake).min().filter(|at| *at <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            if self.alarm_at == Some(next) {
                self.alarm_at = None;
                self.event(Session::alarm);
            } else {
                self.wakes.retain(|at| *at != next);
                self.event(Session::wake);
            }
        }
        self.now = end;
    }
}

pub fn busy(attachment: &[u8]) -> bool {
    sealog_proto::internal::SessionAttachment::decode(attachment).expect("an attachment").busy
}

/// Rows and tables in storage.
pub fn row_count(world: &World) -> i64 {
    use sealog_log::Sql;
    let row = world.sql.first("SELECT count(*) FROM sqlite_schema", &[]).unwrap().unwrap();
    row[0].integer().unwrap()
}
