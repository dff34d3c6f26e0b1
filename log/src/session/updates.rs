//! Updates: taken one at a time, in order, each answered by its Applied (rule 12).

use std::collections::VecDeque;

use bytes::Bytes;
use sealog_proto::Topic;
use sealog_proto::backend::{
    self, CatchupTarget, Pong, SubscribeResponse, SubscribeStaticResponse, subscribe_response,
    subscribe_static_response,
};
use sealog_proto::status::Code;

use super::registry::Registration;
use super::request::{Frame, Update, invalid};
use super::turn::{Status, Stop, Turn};
use super::{Kind, Session};
use crate::Fault;
use crate::key::{Key, shared};

/// The Update that is in work.
#[derive(Debug)]
pub(super) struct Current {
    id: u64,
    /// What it newly registers, in the order of its adds.
    added: Vec<Key>,
    /// Slots of what it removed.
    removed: Vec<u32>,
    /// Partitions that owe heads.
    pub(super) missing: usize,
}

/// What the client asked for and was not answered.
#[derive(Debug, Default)]
pub(super) struct Updates {
    pub(super) current: Option<Current>,
    /// Accepted frames. Copies, so that none keeps more alive than itself.
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
    /// Id of the last Applied.
    applied_id: u64,
    /// How the stream ends when all of these are answered. Nothing is read any more.
    pub(super) end: Option<Status>,
}

impl Updates {
    /// Whether nobody waits for an answer.
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.waiting.is_empty()
    }
}

impl Session {
    /// Takes a frame of the client. What is wrong with it is judged now, and fails the stream in turn.
    pub(super) fn take_frame(&mut self, turn: &mut Turn<'_>, frame: &Bytes) -> Result<(), Stop> {
        match self.judge(turn, frame) {
            Ok(Frame::Ping(nonce)) => {
                let pong = subscribe_response::Response::Pong(Pong { nonce });
                self.send(turn, &SubscribeResponse { response: Some(pong) })
            }
            Ok(Frame::Pong(nonce)) => self.take_pong(turn, nonce),
            Ok(Frame::Update(update)) if self.updates.is_idle() => self.take_update(turn, update),
            Ok(Frame::Update(_)) => {
                self.updates.waiting_bytes += frame.len();
                self.updates.waiting.push_back(Bytes::copy_from_slice(frame));
                Ok(())
            }
            Err(status) => {
                self.updates.end.get_or_insert(status);
                Ok(())
            }
        }
    }

    fn judge(&mut self, turn: &Turn<'_>, frame: &Bytes) -> Result<Frame, Status> {
        let limits = &self.setup.limits;
        let read = Frame::read(frame.clone(), limits)?;
        match &read {
            Frame::Ping(_) if !self.small.pings.take(limits.pings, turn.now) => Err(too_often("Pings")),
            Frame::Update(_) if !self.small.updates.take(limits.updates, turn.now) => {
                Err(too_often("Updates"))
            }
            Frame::Update(update) if update.id <= self.small.update_id => {
                Err(invalid("an Update's id must be greater than 0 and than the ids before it"))
            }
            Frame::Update(update) => {
                let waiting = self.updates.waiting_bytes + frame.len();
                if !self.updates.is_idle() && waiting > limits.max_request_bytes {
                    return Err(Status::new(
                        Code::ResourceExhausted,
                        "too many Updates wait for their Applied; wait for some before sending more",
                    ));
                }
                self.small.update_id = update.id;
                Ok(read)
            }
            Frame::Ping(_) | Frame::Pong(_) => Ok(read),
        }
    }

    /// The next Update's turn. What is judged against the registrations is judged here.
    pub(super) fn take_update(&mut self, turn: &mut Turn<'_>, update: Update) -> Result<(), Stop> {
        let partitions = self.setup.partitions;
        self.small.ordinal += 1;
        let generation = self.small.ordinal;
        let mut current = Current { id: update.id, added: Vec::new(), removed: Vec::new(), missing: 0 };
        for key in update.removes {
            if let Some(it) = self.registry(turn)?.remove(&key) {
                self.moved.forget(it.slot);
                self.channels.remove(it.partition, key, it.generation);
                current.removed.push(it.slot);
            }
        }
        let mut asked = vec![false; partitions as usize];
        for (key, cursor) in update.adds {
            let slot = self.small.next_slot;
            let registry = self.registry(turn)?;
            if registry.get(&key).is_some() {
                continue; // API-253
            }
            let topic = Topic::parse(Bytes::copy_from_slice(key.as_slice()));
            let partition = topic.map_err(|_| Fault::Invariant("a key is a topic"))?.partition(partitions);
            registry.insert(key, Registration::new(slot, generation, partition, cursor));
            self.small.next_slot = slot.checked_add(1).ok_or(Status::new(
                Code::ResourceExhausted,
                "the stream has registered topics too often; open it again from your cursors",
            ))?;
            self.channels.add(partition, key, generation);
            asked[partition as usize] = true;
            current.added.push(key);
        }
        let most = match self.kind {
            Kind::Bidirectional => self.setup.limits.max_stream_topics,
            Kind::Static => self.setup.limits.max_static_topics,
        };
        if self.registry(turn)?.len() > most {
            return Err(invalid(format!(
                "a stream has at most {most} topics; remove some before adding more"
            ))
            .into());
        }
        current.missing = asked.into_iter().filter(|asked| *asked).count();
        self.updates.current = Some(current);
        Ok(())
    }

    /// Answers the Update in work when all heads are there, and takes the next ones; ends the stream when that was
    /// asked for and all are answered.
    pub(super) fn settle_updates(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        loop {
            match self.updates.current.take_if(|current| current.missing == 0) {
                Some(current) => self.apply(turn, current)?,
                None if self.updates.current.is_some() => return Ok(()),
                None => {}
            }
            let Some(frame) = self.updates.waiting.pop_front() else { break };
            self.updates.waiting_bytes -= frame.len();
            match Frame::read(frame, &self.setup.limits)? {
                Frame::Update(update) => self.take_update(turn, update)?,
                Frame::Ping(_) | Frame::Pong(_) => Err(Fault::Invariant("only Updates wait"))?,
            }
        }
        match self.updates.end.take() {
            Some(status) => Err(status.into()),
            None => Ok(()),
        }
    }

    /// In one event: the rows, the targets, Applied (or Started of a static stream).
    fn apply(&mut self, turn: &mut Turn<'_>, current: Current) -> Result<(), Stop> {
        let Current { id, added, removed, .. } = current;
        Fault::assert(
            id > self.updates.applied_id || self.kind == Kind::Static,
            "Updates are applied in the order of their ids",
        )?;
        self.updates.applied_id = id;
        let registry = self.registry(turn)?;
        let mut targets = Vec::with_capacity(added.len());
        for (key, topic) in added.iter().zip(shared(added.iter())) {
            registry.apply(key)?;
            let through_sequence_id = registry.get(key).map_or(0, |it| it.target);
            targets.push(CatchupTarget { topic: Some(backend::Topic { topic }), through_sequence_id });
        }
        match self.kind {
            Kind::Bidirectional => {
                if let Some(registry) = &self.registry
                    && !(added.is_empty() && removed.is_empty())
                {
                    self.store.add_update(turn.sql, registry, &added, &removed)?;
                }
                let applied = subscribe_response::Applied { id, added_targets: targets };
                let response = Some(subscribe_response::Response::Applied(applied));
                self.send(turn, &SubscribeResponse { response })
            }
            Kind::Static => {
                self.phase = super::Phase::Open;
                let keepalive_interval_ms = self.setup.limits.keepalive_interval_ms;
                let started = subscribe_static_response::Started { keepalive_interval_ms, targets };
                let response = Some(subscribe_static_response::Response::Started(started));
                self.send(turn, &SubscribeStaticResponse { response })
            }
        }
    }
}

fn too_often(what: &str) -> Status {
    Status::new(
        Code::ResourceExhausted,
        format!("the stream sent {what} too often; send fewer, after a pause"),
    )
}
