//! The class of the sequencer: one object, named `global`.

use std::rc::Rc;

use futures::StreamExt;
use prost::Message;
use sealog_log::sequencer::{Action, Sequencer as Machine};
use sealog_log::{CommandError, Nanos, Sql};
use sealog_proto::internal::{ApplyRequest, BoundaryReply, BoundaryRequest, Failure, SettleRequest};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::worker_sys::DurableObjectState;
use worker::{Env, State};

use crate::instance::Instance;
use crate::storage::ObjectStorage;
use crate::{CONNECTIONS, CallError, Objects, clock, command};

/// Gives out sequence ids, and decides transactions.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Sequencer(Rc<Shell>);

#[derive(Debug)]
struct Shell {
    state: State,
    /// The other objects, or which binding is missing.
    objects: Result<Objects, CallError>,
    storage: ObjectStorage,
    machine: Instance<Machine>,
}

#[wasm_bindgen]
impl Sequencer {
    /// Called by the platform.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::needless_pass_by_value)] // the platform hands it over
    pub fn new(state: DurableObjectState, env: Env) -> Self {
        let state = State::from(state);
        let storage = ObjectStorage::new(&state);
        Self(Rc::new(Shell {
            storage,
            state,
            objects: Objects::new(&env),
            machine: Instance::new("sequencer"),
        }))
    }

    /// Runs one command. See `sealog_log::sequencer` for what each does, writes, and who repeats it.
    pub async fn call(&self, command: String, body: Vec<u8>) -> Vec<u8> {
        let shell = Rc::clone(&self.0);
        match command.as_str() {
            command::JOIN => {
                shell.run(body, |machine, sql, _, request| Ok((machine.join(sql, &request)?, Vec::new())))
            }
            command::RESERVE => shell.run(body, |machine, sql, now, request| {
                Ok((machine.reserve(sql, now, &request)?, Vec::new()))
            }),
            command::DECIDE => {
                shell.run(body, |machine, sql, now, request| machine.decide(sql, now, &request))
            }
            command::RESOLVE => shell.run(body, |machine, sql, now, request| {
                Ok((machine.resolve(sql, now, &request)?, Vec::new()))
            }),
            command::BOUNDARY => command::answer(&shell.boundary(body).await),
            _ => command::answer::<()>(&Err(command::unknown())),
        }
    }

    /// Called by the platform, at least once for each alarm that was set.
    pub fn alarm(&self) {
        // A fault has reached the log, and the next event starts the machine anew, with its alarm. Nothing is thrown:
        // the platform drops an alarm that throws too often.
        let _ = self.0.with_machine(|machine, _| Ok(((), machine.alarm())));
    }
}

impl Shell {
    fn run<Q: Message + Default, R: Message>(
        self: &Rc<Self>,
        body: Vec<u8>,
        run: impl FnOnce(&mut Machine, &dyn Sql, Nanos, Q) -> Result<(R, Vec<Action>), CommandError>,
    ) -> Vec<u8> {
        let outcome = command::request(body)
            .and_then(|request| self.with_machine(|m, sql| run(m, sql, clock::now(), request)));
        command::answer(&outcome)
    }

    /// The boundary, after whoever holds it back was asked: a partition that died with a request under way is started
    /// by the question.
    async fn boundary(self: &Rc<Self>, body: Vec<u8>) -> Result<BoundaryReply, Failure> {
        let BoundaryRequest {} = command::request(body)?;
        let (lagging, epoch) =
            self.with_machine(|machine, _| Ok(((machine.lagging(), machine.epoch()), Vec::new())))?;
        if !lagging.is_empty() {
            let objects = self.objects.as_ref().map_err(|error| error.clone().into_failure())?;
            let settle = |partition: u32| async move {
                (partition, objects.settle(partition, SettleRequest { epoch }).await)
            };
            let answers: Vec<_> =
                futures::stream::iter(lagging).map(settle).buffer_unordered(CONNECTIONS).collect().await;
            self.with_machine(|machine, _| {
                for (partition, answer) in answers {
                    if let Ok(reply) = answer {
                        machine.settled(partition, reply.epoch);
                    }
                }
                Ok(((), Vec::new()))
            })?;
        }
        let boundary = self.with_machine(|machine, sql| Ok((machine.boundary(sql)?, Vec::new())))?;
        Ok(BoundaryReply { boundary })
    }

    /// Runs `run` on the machine, then does what it says.
    fn with_machine<R>(
        self: &Rc<Self>,
        run: impl FnOnce(&mut Machine, &dyn Sql) -> Result<(R, Vec<Action>), CommandError>,
    ) -> Result<R, Failure> {
        let load = || Machine::load(&self.storage);
        let nobody_waits = |_| Vec::new();
        let (actions, reply) = self.machine.run(load, nobody_waits, |machine| run(machine, &self.storage));
        for action in actions {
            self.perform(action);
        }
        reply
    }

    fn perform(self: &Rc<Self>, action: Action) {
        match action {
            Action::Alarm { after } => self.storage.set_alarm(clock::now() + after),
            Action::Nudge { participant, txid } => {
                let request = ApplyRequest { txid, envelopes: Vec::new() };
                let shell = Rc::clone(self);
                self.state.wait_until(async move {
                    if let Ok(objects) = &shell.objects {
                        // What it applied, it tells with its next `reserve`; if it does not, the alarm asks again.
                        let _ = objects.apply(participant, request).await;
                    }
                });
            }
        }
    }
}
