//! A log partition as an object.

use std::ops::ControlFlow;

use bytes::Bytes;
use sealog_log::partition::{self, Action, Machine, Partition};
use sealog_log::sequencer::Sequencer;
use sealog_log::{Fault, Nanos, Param, Sql, blob8};
use sealog_proto::internal::{
    ControlReply, ControlRequest, NewEnvelope, PullReply, PullRequest, PushReply, PushRequest,
    ReserveRequest, StoreRequest,
};

use super::StreamMutation;
use super::object::Object;
use super::run::Run;
use crate::storage::Storage;

/// What a partition sends.
#[derive(Clone, Debug)]
pub(super) enum Out {
    Reserve(ReserveRequest),
    Push {
        request: PushRequest,
        deadline: Nanos,
    },
    /// The answer to a session's call of this name.
    Control(u64, ControlReply),
    Pull(u64, PullReply),
}

/// What happens to a partition.
#[derive(Clone, Debug)]
pub(super) enum Input {
    Publish(NewEnvelope),
    Reserved(sealog_proto::internal::ReserveReply),
    Control(u64, ControlRequest),
    Pull(u64, PullRequest),
    Pushed { session: Bytes, push: (u64, u64), reply: Option<PushReply> },
    Wake,
    Alarm,
}

/// What an event asks of the world.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// What has passed the gate.
    pub(super) out: Vec<Out>,
    pub(super) flush: Option<u64>,
    pub(super) wakes: Vec<Nanos>,
}

pub(super) struct Host {
    pub(super) index: u32,
    pub(super) object: Object<Partition, Out>,
    publishes: u64,
}

impl Host {
    pub(super) fn new(index: u32, skew: i64) -> Self {
        Self { index, object: Object::new(skew), publishes: 0 }
    }

    /// Runs one event. An instance that ends by a fault leaves whoever called without an answer.
    pub(super) fn event(&mut self, run: &mut Run, input: Input) -> Asked {
        let now = run.local(self.object.skew);
        self.object.begin(run);
        if matches!(input, Input::Alarm) {
            self.object.ring();
        }
        let mut asked = Asked::default();
        match self.handle(now, input) {
            Ok((reply, actions)) => {
                let mut sent: Vec<Out> = reply.into_iter().collect();
                for action in actions {
                    match action {
                        Action::Reserve { request, .. } => sent.push(Out::Reserve(request)),
                        Action::Push { request, deadline } => sent.push(Out::Push { request, deadline }),
                        Action::Wake { after } => asked.wakes.push(after),
                        Action::Alarm { .. } if run.is(StreamMutation::PartitionSetsNoAlarm) => {}
                        Action::Alarm { after } => self.object.set_alarm(Some(run.now + after)),
                        // Publishers repeat, and are not of interest here.
                        Action::Answer { .. } => {}
                        Action::Resolve { .. } | Action::Associate { .. } => {
                            run.violation("a partition without transactions asks about one");
                        }
                    }
                }
                asked.flush = self.object.end();
                if run.is(StreamMutation::WatchToldBeforeDurable) {
                    asked.out.extend(sent.extract_if(.., |out| matches!(out, Out::Control(..))));
                }
                for out in sent {
                    self.object.send(out);
                }
                asked.out.extend(self.object.released());
            }
            Err(fault) => {
                run.fault(&format!("Log({})", self.index), &fault);
                self.object.undo();
                self.object.forget();
            }
        }
        asked
    }

    fn handle(&mut self, now: Nanos, input: Input) -> Result<(Option<Out>, Vec<Action>), Fault> {
        let sql = &self.object.storage;
        let mut actions = Vec::new();
        if self.object.machine.is_none() {
            let (machine, first) = Partition::load(sql, now, self.index)?;
            self.object.machine = Some(machine);
            actions = first;
        }
        let Some(machine) = &mut self.object.machine else { return Ok((None, actions)) };
        let mut reply = None;
        actions.extend(match input {
            Input::Publish(envelope) => {
                self.publishes += 1;
                machine.publish(now, self.publishes, StoreRequest { envelopes: vec![envelope] })
            }
            Input::Reserved(reserved) => machine.reserved(sql, now, &reserved)?,
            Input::Control(call, request) => match machine.control(sql, now, &request) {
                Ok((control, more)) => {
                    reply = Some(Out::Control(call, control));
                    more
                }
                Err(sealog_log::CommandError::Fault(fault)) => return Err(fault),
                Err(sealog_log::CommandError::Refused(_)) => Vec::new(),
            },
            Input::Pull(call, request) => {
                reply = Some(Out::Pull(call, partition::pull(sql, &request)?));
                Vec::new()
            }
            Input::Pushed { session, push, reply } => {
                machine.pushed(sql, now, &session, push, reply.as_ref())?
            }
            Input::Wake => machine.wake(now),
            Input::Alarm => machine.alarm(sql, now)?,
        });
        Ok((reply, actions))
    }

    /// Ids of a topic above `after`, whether they are durable yet or not: what a reader saw is.
    pub(super) fn rows(&self, topic: &[u8], after: u64) -> Vec<u64> {
        let mut rows = Vec::new();
        let statement =
            "SELECT sequence_id FROM envelopes WHERE topic = ? AND sequence_id > ? ORDER BY sequence_id";
        // A partition that was never called has no tables.
        let _ = self.object.storage.query(
            statement,
            &[Param::Blob(topic), Param::Blob(&blob8(after))],
            &mut |row| {
                rows.push(row[0].uint8()?);
                Ok(ControlFlow::Continue(()))
            },
        );
        rows
    }

    /// Which sessions have watches here.
    pub(super) fn watchers(&self) -> Vec<Bytes> {
        let mut sessions = Vec::new();
        let _ = self.object.storage.query("SELECT DISTINCT session FROM watches", &[], &mut |row| {
            sessions.push(row[0].blob()?);
            Ok(ControlFlow::Continue(()))
        });
        sessions
    }
}

/// The sequencer, whose own failures another simulator looks into: here it answers at once.
#[derive(Debug)]
pub(super) struct Ids {
    storage: Storage,
    machine: Sequencer,
}

impl Ids {
    pub(super) fn new(partitions: u32) -> Self {
        let storage = Storage::new();
        let (mut machine, _) = Sequencer::load(&storage).expect("an empty database loads");
        let join = sealog_proto::internal::JoinRequest { log_partitions: partitions, ..Default::default() };
        machine.join(&storage, &join).expect("the first to join fixes the number");
        Self { storage, machine }
    }

    pub(super) fn reserve(
        &mut self,
        now: Nanos,
        request: &ReserveRequest,
    ) -> Result<sealog_proto::internal::ReserveReply, String> {
        self.machine.reserve(&self.storage, now, request).map_err(|error| format!("the sequencer: {error:?}"))
    }
}
