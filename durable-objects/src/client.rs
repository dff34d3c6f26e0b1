//! The calls to objects: which command goes where, and how long it may take.

use prost::Message;
use sealog_log::{Nanos, SECOND};
use sealog_proto::internal::{
    ApplyReply, ApplyRequest, AssociateReply, AssociateRequest, BoundaryReply, BoundaryRequest, ControlReply,
    ControlRequest, DecideReply, DecideRequest, HistoryReply, HistoryRequest, InboxesReply, InboxesRequest,
    JoinReply, JoinRequest, KnownReply, KnownRequest, LookupReply, LookupRequest, NewestReply, NewestRequest,
    Participant, PullReply, PullRequest, PushReply, PushRequest, ReadReply, ReadRequest, ReserveReply,
    ReserveRequest, ResolveReply, ResolveRequest, SettleReply, SettleRequest, StageReply, StageRequest,
    StoreReply, StoreRequest, WithdrawReply, WithdrawRequest, failure::Kind, participant::Kind as Role,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use worker::{Env, ObjectNamespace};

use crate::call::{Address, CallError, Name, call};
use crate::{NewSession, command};

/// The binding of each class, as wrangler.toml names it.
const SEQUENCER: &str = "SEQUENCER";
const LOG_PARTITION: &str = "LOG_PARTITION";
const DIRECTORY: &str = "DIRECTORY";
const SESSION: &str = "SESSION";
/// The one sequencer's name. A partition's name is its index. Names are never changed: another name is another object.
const GLOBAL: &str = "global";

/// How long a read may take. Well under the worker's own limit, so that a retry fits.
const READ_DEADLINE: Nanos = 5 * SECOND;
/// How long one step of a transaction may take. Short enough that several fit a publish.
const STEP_DEADLINE: Nanos = 3 * SECOND;
/// How long a publish may wait for its flush: the limit of the worker, which answers first.
const STORE_DEADLINE: Nanos = 10 * SECOND;
/// Attempts at a call whose object went away under it (a deploy, a move, a panic). Every command is safe to repeat.
const ATTEMPTS: u32 = 3;

thread_local! {
    /// Calls of everybody who ran in this isolate, by command.
    static CALLS: RefCell<BTreeMap<&'static str, u64>> = RefCell::default();
}

/// Calls to objects so far, by command: those of the worker and of all objects that ran in this isolate.
pub fn isolate_calls() -> BTreeMap<&'static str, u64> {
    CALLS.with_borrow(BTreeMap::clone)
}

/// The objects of the deployment.
#[derive(Debug)]
pub struct Objects {
    sequencer: ObjectNamespace,
    partitions: ObjectNamespace,
    directories: ObjectNamespace,
    sessions: ObjectNamespace,
    /// Calls so far, by command.
    calls: RefCell<BTreeMap<&'static str, u64>>,
}

impl Objects {
    /// Finds the bindings.
    pub fn new(env: &Env) -> Result<Self, CallError> {
        let namespace = |binding: &str| {
            env.durable_object(binding).map_err(|_| CallError {
                kind: Kind::Configuration,
                message: format!("the Durable Object binding {binding} is missing in wrangler.toml"),
            })
        };
        Ok(Self {
            sequencer: namespace(SEQUENCER)?,
            partitions: namespace(LOG_PARTITION)?,
            directories: namespace(DIRECTORY)?,
            sessions: namespace(SESSION)?,
            calls: RefCell::default(),
        })
    }

    /// Calls so far, by command; a repeated attempt is not another call.
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.calls.borrow().clone()
    }

    fn count(&self, command: &'static str) {
        *self.calls.borrow_mut().entry(command).or_default() += 1;
        CALLS.with_borrow_mut(|calls| *calls.entry(command).or_default() += 1);
    }

    /// `join` at the sequencer.
    pub async fn join(&self, request: JoinRequest) -> Result<JoinReply, CallError> {
        self.sequencer(command::JOIN, request, READ_DEADLINE, ATTEMPTS).await
    }

    /// `reserve` at the sequencer. One attempt: a partition's retry is a new request (rule 1).
    pub(crate) async fn reserve(
        &self,
        request: ReserveRequest,
        deadline: Nanos,
    ) -> Result<ReserveReply, CallError> {
        self.sequencer(command::RESERVE, request, deadline, 1).await
    }

    /// `store` at a log partition.
    pub(crate) async fn store(&self, partition: u32, request: StoreRequest) -> Result<StoreReply, CallError> {
        self.partition(partition, command::STORE, request, STORE_DEADLINE).await
    }

    /// `read` at a log partition.
    pub async fn read(&self, partition: u32, request: ReadRequest) -> Result<ReadReply, CallError> {
        self.partition(partition, command::READ, request, READ_DEADLINE).await
    }

    /// `newest` at a log partition.
    pub async fn newest(&self, partition: u32, request: NewestRequest) -> Result<NewestReply, CallError> {
        self.partition(partition, command::NEWEST, request, READ_DEADLINE).await
    }

    /// `history` at a log partition: identity logs, in one snapshot (API-232).
    pub async fn history(&self, partition: u32, request: HistoryRequest) -> Result<HistoryReply, CallError> {
        self.partition(partition, command::HISTORY, request, READ_DEADLINE).await
    }

    /// `known` at a log partition: which envelopes are stored (API-222).
    pub async fn known(&self, partition: u32, request: KnownRequest) -> Result<KnownReply, CallError> {
        self.partition(partition, command::KNOWN, request, READ_DEADLINE).await
    }

    /// `inboxes` at a log partition: its identity topics, in order.
    pub async fn inboxes(&self, partition: u32, request: InboxesRequest) -> Result<InboxesReply, CallError> {
        self.partition(partition, command::INBOXES, request, READ_DEADLINE).await
    }

    /// `lookup` at a Directory: the inbox of each key (API-270, API-299).
    pub async fn lookup(&self, directory: u32, request: LookupRequest) -> Result<LookupReply, CallError> {
        self.directory(directory, command::LOOKUP, request, READ_DEADLINE).await
    }

    /// `associate` at a Directory: what identity updates did to identifiers.
    pub async fn associate(
        &self,
        directory: u32,
        request: AssociateRequest,
    ) -> Result<AssociateReply, CallError> {
        self.directory(directory, command::ASSOCIATE, request, STEP_DEADLINE).await
    }

    /// The closed allocation boundary (API-203).
    pub async fn boundary(&self) -> Result<BoundaryReply, CallError> {
        self.sequencer(command::BOUNDARY, BoundaryRequest {}, READ_DEADLINE, ATTEMPTS).await
    }

    pub(crate) async fn decide(&self, request: DecideRequest) -> Result<DecideReply, CallError> {
        self.sequencer(command::DECIDE, request, STEP_DEADLINE, ATTEMPTS).await
    }

    pub(crate) async fn resolve(&self, request: ResolveRequest) -> Result<ResolveReply, CallError> {
        self.sequencer(command::RESOLVE, request, STEP_DEADLINE, ATTEMPTS).await
    }

    pub(crate) async fn settle(
        &self,
        partition: u32,
        request: SettleRequest,
    ) -> Result<SettleReply, CallError> {
        self.partition(partition, command::SETTLE, request, STEP_DEADLINE).await
    }

    pub(crate) async fn stage(
        &self,
        to: Participant,
        request: StageRequest,
    ) -> Result<StageReply, CallError> {
        self.participant(to, command::STAGE, request).await
    }

    pub(crate) async fn withdraw(
        &self,
        to: Participant,
        request: WithdrawRequest,
    ) -> Result<WithdrawReply, CallError> {
        self.participant(to, command::WITHDRAW, request).await
    }

    pub(crate) async fn apply(
        &self,
        to: Participant,
        request: ApplyRequest,
    ) -> Result<ApplyReply, CallError> {
        self.participant(to, command::APPLY, request).await
    }

    /// `control` at a log partition. One attempt: the session repeats it (stream-protocol rule 3).
    pub(crate) async fn control(
        &self,
        partition: u32,
        request: ControlRequest,
        deadline: Nanos,
    ) -> Result<ControlReply, CallError> {
        self.count(command::CONTROL);
        call(self.log(partition), command::CONTROL, request, deadline, 1).await
    }

    /// `pull` at a log partition. One attempt, as above (rule 14).
    pub(crate) async fn pull(
        &self,
        partition: u32,
        request: PullRequest,
        deadline: Nanos,
    ) -> Result<PullReply, CallError> {
        self.count(command::PULL);
        call(self.log(partition), command::PULL, request, deadline, 1).await
    }

    /// `push` at a session. One attempt: what is not acknowledged is owed, and sent again (rule 7).
    pub(crate) async fn push(&self, request: PushRequest, deadline: Nanos) -> Result<PushReply, CallError> {
        self.count(command::PUSH);
        let id = base16ct::lower::encode_string(&request.session);
        call(Address { namespace: &self.sessions, name: Name::Id(id) }, command::PUSH, request, deadline, 1)
            .await
    }

    /// A session that never was: the stream of one client.
    pub fn new_session(&self) -> Result<NewSession, CallError> {
        let stub = self.sessions.unique_id().and_then(|id| id.get_stub()).map_err(|error| CallError {
            kind: Kind::Unavailable,
            message: format!("no session could be made: {error}"),
        })?;
        Ok(NewSession::new(stub.into_rpc()))
    }

    fn log(&self, partition: u32) -> Address<'_> {
        Address { namespace: &self.partitions, name: Name::Given(partition.to_string()) }
    }

    async fn sequencer<Q: Message, R: Message + Default>(
        &self,
        command: &'static str,
        request: Q,
        deadline: Nanos,
        attempts: u32,
    ) -> Result<R, CallError> {
        self.count(command);
        let sequencer = Address { namespace: &self.sequencer, name: Name::Given(GLOBAL.to_owned()) };
        call(sequencer, command, request, deadline, attempts).await
    }

    async fn participant<Q: Message, R: Message + Default>(
        &self,
        to: Participant,
        command: &'static str,
        request: Q,
    ) -> Result<R, CallError> {
        match to.kind() {
            Role::Log => self.partition(to.index, command, request, STEP_DEADLINE).await,
            Role::Directory => self.directory(to.index, command, request, STEP_DEADLINE).await,
        }
    }

    async fn partition<Q: Message, R: Message + Default>(
        &self,
        partition: u32,
        command: &'static str,
        request: Q,
        deadline: Nanos,
    ) -> Result<R, CallError> {
        self.count(command);
        call(self.log(partition), command, request, deadline, ATTEMPTS).await
    }

    async fn directory<Q: Message, R: Message + Default>(
        &self,
        directory: u32,
        command: &'static str,
        request: Q,
        deadline: Nanos,
    ) -> Result<R, CallError> {
        self.count(command);
        let address = Address { namespace: &self.directories, name: Name::Given(directory.to_string()) };
        call(address, command, request, deadline, ATTEMPTS).await
    }
}
