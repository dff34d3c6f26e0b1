//! The shell of a participant: it carries out what the machine says, and tells it what came of it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use futures::channel::oneshot;
use prost::Message;
use sealog_log::participant::{Action, CallId, Machine, Reply};
use sealog_log::{CommandError, Fault, MILLISECOND, Nanos, Sql, Txid};
use sealog_proto::internal::{
    AssociateRequest, Failure, PushRequest, ReserveRequest, ResolveRequest, failure::Kind,
};
use worker::{Env, State};

use crate::instance::Instance;
use crate::storage::ObjectStorage;
use crate::{CallError, Objects, clock, command};

/// The pause before each push. Where objects share a thread, as in a development server, one push that follows from the
/// answer to another would go before everything that waits for a socket: the answer to the publish, for a whole pass.
const BREATH: Nanos = MILLISECOND;

type Answer = Result<Reply, Failure>;

#[derive(Debug)]
pub(crate) struct Shell<M> {
    state: State,
    /// The other objects, or which binding is missing.
    objects: Result<Objects, CallError>,
    storage: ObjectStorage,
    machine: Instance<M>,
    /// The calls that wait for the machine's answer.
    waiting: RefCell<HashMap<CallId, oneshot::Sender<Answer>>>,
    last_call: Cell<CallId>,
    /// When the running timer fires; 0 = none runs.
    wakes_at: Cell<Nanos>,
}

impl<M: Machine + 'static> Shell<M> {
    pub(crate) fn new(state: State, env: &Env) -> Rc<Self> {
        Rc::new(Self {
            storage: ObjectStorage::new(&state),
            state,
            objects: Objects::new(env),
            machine: Instance::new(M::NAME),
            waiting: RefCell::default(),
            last_call: Cell::default(),
            wakes_at: Cell::default(),
        })
    }

    /// A command that is answered at once.
    pub(crate) fn now<Q: Message + Default, R>(
        self: &Rc<Self>,
        body: Vec<u8>,
        run: impl FnOnce(&mut M, &dyn Sql, Nanos, Q) -> Result<(R, Vec<Action>), CommandError>,
    ) -> Result<R, Failure> {
        let request = command::request(body)?;
        self.with_machine(|machine, storage| run(machine, storage, clock::now(), request))
    }

    /// A command whose answer is an [`Action::Answer`], now or later.
    pub(crate) async fn later<Q: Message + Default>(
        self: &Rc<Self>,
        body: Vec<u8>,
        run: impl FnOnce(&mut M, &dyn Sql, Nanos, CallId, Q) -> Result<Vec<Action>, CommandError>,
    ) -> Answer {
        let request = command::request(body)?;
        let call = self.last_call.get() + 1;
        self.last_call.set(call);
        let (sender, answer) = oneshot::channel();
        self.waiting.borrow_mut().insert(call, sender);
        let begun = self
            .with_machine(|machine, storage| Ok(((), run(machine, storage, clock::now(), call, request)?)));
        if let Err(failure) = begun {
            self.waiting.borrow_mut().remove(&call);
            return Err(failure);
        }
        // The machine answers every call that it took, even when it ends; a lost sender is a bug.
        answer.await.unwrap_or_else(|_| {
            let message = "the call was forgotten; publish the same bytes again".to_owned();
            Err(Failure { kind: Kind::Unavailable.into(), message })
        })
    }

    /// The commands that every participant has: those of transactions.
    pub(crate) async fn call(self: &Rc<Self>, command: &str, body: Vec<u8>) -> Vec<u8> {
        match command {
            command::STAGE => command::answer(
                &self.now(body, |machine, sql, now, request| machine.stage(sql, now, &request)),
            ),
            command::WITHDRAW => command::answer(
                &self.now(body, |machine, sql, now, request| machine.withdraw(sql, now, &request)),
            ),
            command::APPLY => {
                let answer = self
                    .later(body, |machine, sql, now, call, request| machine.apply(sql, now, call, request))
                    .await;
                command::answer(&only(answer, |reply| match reply {
                    Reply::Apply(reply) => Some(reply),
                    Reply::Store(_) => None,
                }))
            }
            _ => command::answer::<()>(&Err(command::unknown())),
        }
    }

    pub(crate) fn alarm(self: &Rc<Self>) {
        // A fault has reached the log, and the next event starts the machine anew, with its alarm. Nothing is thrown:
        // the platform drops an alarm that throws too often.
        let _ = self.with_machine(|machine, storage| Ok(((), machine.alarm(storage, clock::now())?)));
    }

    /// Runs `run` on the machine, then does what it says.
    fn with_machine<R>(
        self: &Rc<Self>,
        run: impl FnOnce(&mut M, &dyn Sql) -> Result<(R, Vec<Action>), CommandError>,
    ) -> Result<R, Failure> {
        let load = || M::load(&self.storage, clock::now(), self.index()?);
        let (actions, reply) = self.machine.run(load, M::abandon, |machine| run(machine, &self.storage));
        for action in actions {
            self.perform(action);
        }
        reply
    }

    fn index(&self) -> Result<u32, Fault> {
        let name = self.state.id().name();
        name.and_then(|name| name.parse().ok()).ok_or(Fault::Invariant("a participant is named by its index"))
    }

    fn perform(self: &Rc<Self>, action: Action) {
        match action {
            Action::Answer { call, reply } => {
                if let Some(sender) = self.waiting.borrow_mut().remove(&call) {
                    // A caller that went away needs no answer.
                    let _ = sender.send(reply);
                }
            }
            Action::Reserve { request, deadline } => {
                self.state.wait_until(Rc::clone(self).reserve(request, deadline));
            }
            Action::Resolve { txid } => self.state.wait_until(Rc::clone(self).resolve(txid)),
            Action::Associate { directory, request, through } => {
                self.state.wait_until(Rc::clone(self).associate(directory, request, through));
            }
            Action::Push { request, deadline } => {
                self.state.wait_until(Rc::clone(self).push(request, deadline));
            }
            Action::Wake { after } => {
                let at = clock::now() + after;
                let running = self.wakes_at.get();
                if running == 0 || at < running {
                    self.wakes_at.set(at);
                    self.state.wait_until(Rc::clone(self).wake(at, after));
                }
            }
            Action::Alarm { after } => self.storage.set_alarm(clock::now() + after),
        }
    }

    async fn reserve(self: Rc<Self>, request: ReserveRequest, deadline: Nanos) {
        let outcome = match &self.objects {
            Ok(objects) => objects.reserve(request, deadline).await,
            Err(error) => Err(error.clone()),
        };
        // A fault has answered its calls and reached the log; nobody else waits for this reply.
        let _ = self.with_machine(|machine, storage| {
            let now = clock::now();
            let actions = match outcome {
                Ok(reply) if !reply.superseded => machine.reserved(storage, now, &reply)?,
                Ok(_) | Err(_) => machine.reserve_failed(now, request.number),
            };
            Ok(((), actions))
        });
    }

    async fn resolve(self: Rc<Self>, txid: Txid) {
        let decided = match &self.objects {
            Ok(objects) => objects.resolve(ResolveRequest { txid: txid.to_bytes() }).await.ok(),
            Err(_) => None,
        };
        let _ = self.with_machine(|machine, storage| {
            let decided = decided.map(|reply| reply.decided);
            Ok(((), machine.resolved(storage, clock::now(), txid, decided)?))
        });
    }

    async fn associate(self: Rc<Self>, directory: u32, request: AssociateRequest, through: u64) {
        let delivered = match &self.objects {
            Ok(objects) => objects.associate(directory, request).await.is_ok(),
            Err(_) => false,
        };
        let _ = self.with_machine(|machine, storage| {
            Ok(((), machine.associated(storage, clock::now(), directory, through, delivered)?))
        });
    }

    async fn push(self: Rc<Self>, request: PushRequest, deadline: Nanos) {
        let (session, push) = (request.session.clone(), (request.incarnation, request.number));
        clock::sleep(BREATH).await;
        let reply = match &self.objects {
            Ok(objects) => objects.push(request, deadline).await.ok(),
            Err(_) => None,
        };
        let _ = self.with_machine(|machine, storage| {
            Ok(((), machine.pushed(storage, clock::now(), &session, push, reply.as_ref())?))
        });
    }

    async fn wake(self: Rc<Self>, at: Nanos, after: Nanos) {
        clock::sleep(after.max(MILLISECOND)).await;
        if self.wakes_at.get() != at {
            return; // a sooner timer took its place
        }
        self.wakes_at.set(0);
        let _ = self.with_machine(|machine, _| Ok(((), machine.wake(clock::now()))));
    }
}

/// The part of an answer that its command returns.
pub(crate) fn only<R>(answer: Answer, pick: impl FnOnce(Reply) -> Option<R>) -> Result<R, Failure> {
    pick(answer?).ok_or_else(|| Failure {
        kind: Kind::Invariant.into(),
        message: "a call was answered with another command's reply".to_owned(),
    })
}
