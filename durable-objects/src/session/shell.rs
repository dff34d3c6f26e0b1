//! The shell of a session: it carries out what the machine says, and tells it what came of it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use futures::channel::oneshot;
use sealog_log::Nanos;
use sealog_log::session::{Action, Context, Session as Machine, Setup, Status};
use sealog_proto::internal::{Failure, failure::Kind};
use sealog_proto::status::Code;
use wasm_bindgen::JsValue;
use worker::web_sys::{ReadableStream, Response};
use worker::worker_sys::DurableObjectState;
use worker::{Env, State, console_error};

use super::actions::Call;
use super::body::{Body, BodyMode};
use super::budget::Budget;
use super::isolate::{self, Share};
use super::socket::{Phase, Socket};
use crate::grpc_websocket::{self, HeadersError, Input, MessageError};
use crate::storage::ObjectStorage;
use crate::{CallError, Objects, clock, command};

/// Where the response goes.
#[derive(Debug)]
pub(super) enum Output {
    /// Nowhere: there is no stream, or its client is gone.
    None,
    Socket(Socket),
    Body(Body),
}

/// Why a stream was not opened.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The client's request is at fault.
    Request(Status),
    /// The object is.
    Object(Failure),
}

#[derive(Debug)]
pub(super) struct Shell {
    pub(super) state: State,
    sockets: DurableObjectState,
    env: Env,
    /// The other objects, or which binding is missing.
    pub(super) objects: Result<Objects, CallError>,
    pub(super) storage: ObjectStorage,
    /// The object's id.
    id: [u8; 32],
    share: Share,
    /// Loaded by the first event.
    machine: RefCell<Option<Machine>>,
    pub(super) output: RefCell<Output>,
    /// The machine of a static stream sets no alarm: one that rings is the shell's own.
    is_static: Cell<bool>,
    /// Resolves with the end of the body; taken by who waits for it.
    ended: RefCell<Option<oneshot::Receiver<()>>>,
    /// Calls that wait for a connection, or for another event to make them.
    pub(super) calls: RefCell<VecDeque<Call>>,
    pub(super) calling: Cell<usize>,
    /// When the running timer fires; 0 = none runs.
    pub(super) wakes_at: Cell<Nanos>,
}

impl Shell {
    pub(super) fn new(sockets: DurableObjectState, env: Env) -> Rc<Self> {
        let raw: &JsValue = sockets.as_ref();
        let state = State::from(DurableObjectState::from(raw.clone()));
        let id = parse_id(&state.id().to_string());
        Rc::new(Self {
            storage: ObjectStorage::new(&state),
            state,
            sockets,
            objects: Objects::new(&env),
            env,
            id,
            share: Share::new(id),
            machine: RefCell::default(),
            output: RefCell::new(Output::None),
            is_static: Cell::default(),
            ended: RefCell::default(),
            calls: RefCell::default(),
            calling: Cell::default(),
            wakes_at: Cell::default(),
        })
    }

    /// Accepts the socket of a new stream. The headers of the answer leave at once; Started follows the client's.
    pub(super) fn upgrade(self: &Rc<Self>, request_id: &str) -> Result<Response, Refusal> {
        let budget = Budget::new();
        self.event(&budget, |_, _| ((), Vec::new()))?;
        self.check_unused()?;
        let (socket, response) = Socket::accept(&self.sockets).map_err(|error| platform(&error))?;
        self.output.replace(Output::Socket(socket));
        self.event(&budget, |machine, ctx| ((), machine.accept(ctx)))?;
        if let Output::Socket(socket) = &*self.output.borrow() {
            socket.send(&grpc_websocket::headers(request_id));
        }
        Ok(response)
    }

    /// Opens a static stream, and gives the body of its response.
    pub(super) fn open_static(
        self: &Rc<Self>,
        request: Bytes,
        mode: BodyMode,
    ) -> Result<ReadableStream, Refusal> {
        self.check_unused()?;
        let ctx = self.context();
        let (machine, actions) =
            Machine::open_static(&ctx, self.setup()?, request).map_err(Refusal::Request)?;
        let (body, readable, ended) = Body::new(mode).map_err(|error| platform(&error))?;
        self.output.replace(Output::Body(body));
        self.is_static.set(true);
        self.ended.replace(Some(ended));
        self.machine.replace(Some(machine));
        self.settle(&Budget::new(), actions);
        Ok(readable)
    }

    /// Waits for the end of a static stream's body.
    pub(super) async fn finished(&self) {
        let ended = self.ended.take();
        if let Some(ended) = ended {
            let _ = ended.await; // it is never sent: the sender is dropped
        }
    }

    fn check_unused(&self) -> Result<(), Failure> {
        // One that is over has no output either: its machine knows (rule 1).
        let is_absent = self.machine.borrow().as_ref().is_none_or(Machine::is_absent);
        if is_absent && matches!(*self.output.borrow(), Output::None) {
            return Ok(());
        }
        Err(Failure {
            kind: Kind::BadCommand.into(),
            message: "a session serves one stream: open another".to_owned(),
        })
    }

    /// A message of the client: `None` for text.
    pub(super) fn message(self: &Rc<Self>, message: Option<Bytes>) {
        let handled = self.event(&Budget::new(), |machine, ctx| {
            let actions = match &*self.output.borrow() {
                Output::Socket(socket) => {
                    if let Some(bytes) = machine.reading() {
                        attach(socket, &bytes);
                    }
                    read(machine, ctx, socket, message)
                }
                Output::None | Output::Body(_) => Vec::new(),
            };
            ((), actions)
        });
        if handled.is_err() {
            // The message is lost, and the stream must not go on without it.
            if let Ok(Some((socket, _))) = Socket::find(&self.sockets) {
                let message = "the stream's state could not be read: open another, from the last cursor";
                socket.finish(&Status::new(Code::Unavailable, message));
            }
        }
    }

    /// The client is gone, or goes. The next event finds it again when this one cannot be handled.
    pub(super) fn closed(self: &Rc<Self>) {
        let _ = self.event(&Budget::new(), |machine, ctx| ((), machine.closed(ctx)));
        if let Output::Socket(socket) = self.output.replace(Output::None) {
            socket.close();
        }
    }

    /// Command `push`.
    pub(super) fn push(self: &Rc<Self>, body: Vec<u8>) -> Vec<u8> {
        let outcome = command::request(body)
            .and_then(|request| self.event(&Budget::new(), |machine, ctx| machine.push(ctx, request)));
        command::answer(&outcome)
    }

    pub(super) fn alarm(self: &Rc<Self>) {
        let budget = Budget::new();
        // The machine hears of the shell's own alarms, too: they have replaced the one that it had set.
        let rings = !self.is_static.get();
        if rings && self.event(&budget, |machine, ctx| ((), machine.alarm(ctx))).is_err() {
            // Nothing is thrown: the platform drops an alarm that throws too often.
            self.storage.set_alarm(clock::now() + RETRY);
        }
        self.make_calls(&budget);
    }

    /// Runs `run` on the machine, then does what it says.
    pub(super) fn event<R>(
        self: &Rc<Self>,
        budget: &Budget,
        run: impl FnOnce(&mut Machine, &Context<'_>) -> (R, Vec<Action>),
    ) -> Result<R, Failure> {
        let ctx = self.context();
        let mut slot = self.machine.borrow_mut();
        let mut actions = Vec::new();
        let machine = if let Some(machine) = slot.take() {
            machine
        } else {
            let (machine, first) = self.load(&ctx)?;
            actions = first;
            machine
        };
        let (result, more) = run(slot.insert(machine), &ctx);
        drop(slot);
        actions.extend(more);
        self.settle(budget, actions);
        Ok(result)
    }

    fn load(&self, ctx: &Context<'_>) -> Result<(Machine, Vec<Action>), Failure> {
        let found = Socket::find(&self.sockets).map_err(|error| platform(&error))?;
        let kept = found.as_ref().map(|(_, kept)| kept.as_slice());
        let loaded = Machine::load(ctx, self.setup()?, kept);
        let loaded = loaded.map_err(|fault| command::fault("session", &fault))?;
        if let Some((socket, _)) = found {
            self.output.replace(Output::Socket(socket));
        }
        Ok(loaded)
    }

    fn setup(&self) -> Result<Setup, Failure> {
        let settings = isolate::settings(&self.env)?;
        Ok(Setup {
            session: Bytes::copy_from_slice(&self.id),
            partitions: settings.log_partitions,
            limits: settings.limits,
        })
    }

    fn context(&self) -> Context<'_> {
        Context { sql: &self.storage, now: clock::now(), elsewhere: self.share.elsewhere() }
    }

    /// What follows every event.
    fn settle(self: &Rc<Self>, budget: &Budget, actions: Vec<Action>) {
        if let Some(machine) = &mut *self.machine.borrow_mut() {
            self.share.report(machine.unacked(), &machine.take_counters());
        }
        for action in actions {
            self.perform(budget, action);
        }
        self.make_calls(budget);
    }
}

/// How long after an alarm that could not be handled the next one rings.
const RETRY: Nanos = sealog_log::SECOND;

pub(super) fn attach(socket: &Socket, bytes: &[u8]) {
    if let Err(error) = socket.attach(bytes) {
        console_error!("session: {} bytes could not be kept with the socket: {error:?}", bytes.len());
    }
}

/// Hands what the client sent to the machine.
fn read(machine: &mut Machine, ctx: &Context<'_>, socket: &Socket, message: Option<Bytes>) -> Vec<Action> {
    if socket.phase() == Phase::Finished {
        return Vec::new();
    }
    let Some(message) = message else { return machine.fail(ctx, refused(MessageError::Text)) };
    if socket.phase() == Phase::Opening {
        return match grpc_websocket::check_headers(&message) {
            Ok(()) => {
                socket.open();
                machine.start(ctx)
            }
            Err(error) => {
                let code = match error {
                    HeadersError::Compressed => Code::Unimplemented,
                    HeadersError::TooLong | HeadersError::Malformed => Code::InvalidArgument,
                };
                machine.fail(ctx, Status::new(code, error.to_string()))
            }
        };
    }
    match grpc_websocket::read(message) {
        Ok(Input::Data(bytes)) => machine.data(ctx, bytes),
        Ok(Input::HalfClose) => machine.half_close(ctx),
        Err(error) => machine.fail(ctx, refused(error)),
    }
}

#[allow(clippy::needless_pass_by_value)] // small
fn refused(error: MessageError) -> Status {
    Status::new(Code::InvalidArgument, error.to_string())
}

fn platform(error: &JsValue) -> Failure {
    Failure { kind: Kind::Unavailable.into(), message: format!("the platform refused: {error:?}") }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Object(failure)
    }
}

/// The 32 bytes of an object's id, which the platform writes as 64 hexadecimal digits.
fn parse_id(text: &str) -> [u8; 32] {
    let id = base16ct::mixed::decode_vec(text).unwrap_or_default();
    id.try_into().unwrap_or_default()
}
