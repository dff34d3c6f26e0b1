//! The class of the log partitions: `LOG_PARTITIONS` objects, each named by its index.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use futures::channel::oneshot;
use sealog_log::partition::{self, Action, Partition, PublishId};
use sealog_log::{Fault, Nanos};
use sealog_proto::internal::{Failure, ReserveRequest, SettleReply, StoreReply, failure::Kind};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::worker_sys::DurableObjectState;
use worker::{Env, State};

use crate::storage::ObjectStorage;
use crate::{Objects, clock, command};

type Answer = Result<StoreReply, Failure>;

/// Keeps the logs of its topics.
#[wasm_bindgen]
#[derive(Debug)]
pub struct LogPartition(Rc<Shell>);

#[derive(Debug)]
struct Shell {
    state: State,
    env: Env,
    storage: ObjectStorage,
    /// Loaded by the first command, and again after a fault.
    machine: RefCell<Option<Partition>>,
    /// The publishes that wait for the machine's answer.
    waiting: RefCell<HashMap<PublishId, oneshot::Sender<Answer>>>,
    last_publish: Cell<PublishId>,
    /// When the running timer fires; 0 = none runs.
    wakes_at: Cell<Nanos>,
}

#[wasm_bindgen]
impl LogPartition {
    /// Called by the platform.
    #[wasm_bindgen(constructor)]
    pub fn new(state: DurableObjectState, env: Env) -> Self {
        let state = State::from(state);
        Self(Rc::new(Shell {
            storage: ObjectStorage::new(&state),
            state,
            env,
            machine: RefCell::default(),
            waiting: RefCell::default(),
            last_publish: Cell::default(),
            wakes_at: Cell::default(),
        }))
    }

    /// Runs one command. See `sealog_log::partition` for what each does, writes, and who repeats it.
    pub async fn call(&self, command: String, body: Vec<u8>) -> Vec<u8> {
        let shell = Rc::clone(&self.0);
        match command.as_str() {
            command::STORE => command::answer(&shell.store(body).await),
            command::READ => command::answer(&shell.read(body, partition::read)),
            command::NEWEST => command::answer(&shell.read(body, partition::newest)),
            command::SETTLE => command::answer(&shell.settle(body)),
            _ => command::answer::<()>(&Err(command::unknown())),
        }
    }
}

impl Shell {
    async fn store(self: Rc<Self>, body: Vec<u8>) -> Answer {
        let request = command::request(body)?;
        let publish = self.last_publish.get() + 1;
        self.last_publish.set(publish);
        let (sender, answer) = oneshot::channel();
        self.waiting.borrow_mut().insert(publish, sender);
        self.with_machine(|machine, _| Ok(((), machine.publish(clock::now(), publish, request))))?;
        // The machine answers every publish it took, even when it ends; a lost sender is a bug.
        answer.await.unwrap_or_else(|_| {
            let message = "the publish was forgotten; publish the same bytes again".to_owned();
            Err(Failure { kind: Kind::Unavailable.into(), message })
        })
    }

    fn read<Q: prost::Message + Default, R>(
        self: &Rc<Self>,
        body: Vec<u8>,
        read: impl FnOnce(&dyn sealog_log::Sql, &Q) -> Result<R, Fault>,
    ) -> Result<R, Failure> {
        let request = command::request(body)?;
        self.with_machine(|_, storage| Ok((read(storage, &request)?, Vec::new())))
    }

    fn settle(self: &Rc<Self>, body: Vec<u8>) -> Result<SettleReply, Failure> {
        let request = command::request(body)?;
        self.with_machine(|machine, storage| machine.settle(storage, clock::now(), &request))
    }

    /// Runs `run` on the machine, then does what it says. A fault ends the machine: its publishes are answered, memory
    /// is forgotten, and the next command loads it anew.
    fn with_machine<R>(
        self: &Rc<Self>,
        run: impl FnOnce(&mut Partition, &ObjectStorage) -> Result<(R, Vec<Action>), Fault>,
    ) -> Result<R, Failure> {
        let mut slot = self.machine.borrow_mut();
        let loaded = slot.take().map_or_else(|| Partition::load(&self.storage, self.index()?), Ok);
        let outcome = loaded.and_then(|machine| run(slot.insert(machine), &self.storage));
        let (reply, actions) = match outcome {
            Ok((reply, actions)) => (Ok(reply), actions),
            Err(fault) => {
                let actions = slot.take().map(Partition::abandon).unwrap_or_default();
                (Err(command::fault("log partition", &fault)), actions)
            }
        };
        drop(slot);
        for action in actions {
            self.perform(action);
        }
        reply
    }

    fn index(&self) -> Result<u32, Fault> {
        let name = self.state.id().name();
        name.and_then(|name| name.parse().ok())
            .ok_or(Fault::Invariant("a log partition is named by its index"))
    }

    fn perform(self: &Rc<Self>, action: Action) {
        match action {
            Action::Answer { publish, reply } => {
                if let Some(sender) = self.waiting.borrow_mut().remove(&publish) {
                    // A caller that went away needs no answer.
                    let _ = sender.send(reply);
                }
            }
            Action::Reserve { request, deadline } => {
                self.state.wait_until(Rc::clone(self).reserve(request, deadline));
            }
            Action::Wake { after } => {
                let at = clock::now() + after;
                let running = self.wakes_at.get();
                if running == 0 || at < running {
                    self.wakes_at.set(at);
                    self.state.wait_until(Rc::clone(self).wake(at, after));
                }
            }
        }
    }

    async fn reserve(self: Rc<Self>, request: ReserveRequest, deadline: Nanos) {
        let outcome = match Objects::new(&self.env) {
            Ok(objects) => objects.reserve(request, deadline).await,
            Err(error) => Err(error),
        };
        // A fault has answered its publishes and reached the log; nobody else waits for this reply.
        let _ = self.with_machine(|machine, storage| {
            let now = clock::now();
            let actions = match outcome {
                Ok(reply) if !reply.superseded => machine.reserved(storage, now, &reply)?,
                Ok(_) | Err(_) => machine.reserve_failed(now, request.number),
            };
            Ok(((), actions))
        });
    }

    async fn wake(self: Rc<Self>, at: Nanos, after: Nanos) {
        clock::sleep(after).await;
        if self.wakes_at.get() != at {
            return; // a sooner timer took its place
        }
        self.wakes_at.set(0);
        let _ = self.with_machine(|machine, _| Ok(((), machine.wake(clock::now()))));
    }
}
