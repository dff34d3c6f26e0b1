//! Watching topics at their partitions (rules 3, 20, 22): one call at a time to each, in an order of their own.

use std::collections::BTreeMap;

use sealog_proto::internal::{ControlReply, ControlRequest, Watch, control_reply::Verdict, control_request};
use sealog_proto::status::Code;

use super::turn::{Status, Stop, Turn};
use super::{Action, Kind, Session};
use crate::key::{Key, shared};
use crate::{Fault, MILLISECOND, Nanos, SECOND};

/// Calls at once, over all partitions: the platform opens no more connections.
const AT_ONCE: usize = 6;
/// The time limit of one attempt.
pub(super) const DEADLINE: Nanos = 5 * SECOND;
/// The time limit of all attempts together: then the stream fails (rule 3).
pub(super) const PATIENCE: Nanos = 30 * SECOND;
/// The first pause before a retry; it doubles, and half of it is jitter.
const FIRST_PAUSE: Nanos = 250 * MILLISECOND;
const LAST_PAUSE: Nanos = 4 * SECOND;
/// Attempts of a bye.
const BYES: u32 = 2;
/// The number of a bye: it is above all others, also for an instance that does not know them any more. Exact in any
/// number format that it may pass through.
const BYE: u64 = (1 << 53) - 1;

/// The calls to one partition.
#[derive(Debug, Default)]
struct Channel {
    /// The heads of all watches are to be asked for.
    sync: bool,
    /// What the next call is to watch, and what it is to leave.
    add: Vec<(Key, u32)>,
    remove: Vec<(Key, u32)>,
    /// The stream is over.
    bye: bool,
    current: Option<Call>,
}

/// The call that counts: in flight, or waiting for its next attempt.
#[derive(Debug)]
struct Call {
    request: ControlRequest,
    since: Nanos,
    /// Failed attempts.
    failures: u32,
    /// When the next attempt is due; `None` while one is in flight.
    retry_at: Option<Nanos>,
}

/// The calls to all partitions. A channel that has nothing to say is not here.
#[derive(Debug, Default)]
pub(super) struct Channels(BTreeMap<u32, Channel>);

impl Channels {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, partition: u32, key: Key, generation: u32) {
        self.0.entry(partition).or_default().add.push((key, generation));
    }

    pub(super) fn remove(&mut self, partition: u32, key: Key, generation: u32) {
        self.0.entry(partition).or_default().remove.push((key, generation));
    }

    pub(super) fn sync(&mut self, partition: u32) {
        self.0.entry(partition).or_default().sync = true;
    }

    pub(super) fn say_bye(&mut self, partition: u32) {
        self.0.insert(partition, Channel { bye: true, ..Channel::default() });
    }

    fn in_flight(&self) -> usize {
        self.0
            .values()
            .filter_map(|channel| channel.current.as_ref())
            .filter(|it| it.retry_at.is_none())
            .count()
    }

    /// Whether a call is under way.
    pub(super) fn is_calling(&self) -> bool {
        self.in_flight() > 0
    }

    /// When the next attempt of a call that failed is due.
    pub(super) fn next_retry(&self) -> Option<Nanos> {
        self.0.values().filter_map(|channel| channel.current.as_ref()?.retry_at).min()
    }
}

/// How long to wait before another attempt.
pub(super) fn pause(failures: u32, jitter: impl FnOnce(Nanos) -> Nanos) -> Nanos {
    let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(LAST_PAUSE);
    pause / 2 + jitter(pause / 2)
}

impl Session {
    /// Sends what is due, as far as calls may be opened.
    pub(super) fn send_controls(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        if self.channels.is_empty() {
            return Ok(()); // nearly every event
        }
        let mut free = AT_ONCE.saturating_sub(self.channels.in_flight());
        let partitions: Vec<u32> = self.channels.0.keys().copied().collect();
        for partition in partitions {
            if free == 0 {
                break;
            }
            free -= usize::from(self.send_control(turn, partition)?);
        }
        Ok(())
    }

    /// Sends what is due to one partition; `true` when that was something.
    fn send_control(&mut self, turn: &mut Turn<'_>, partition: u32) -> Result<bool, Stop> {
        let Some(channel) = self.channels.0.get_mut(&partition) else { return Ok(false) };
        if channel.current.is_none() {
            let request = self.next_control(partition)?;
            let call = Call { request, since: turn.now, failures: 0, retry_at: Some(turn.now) };
            self.channels.0.entry(partition).or_default().current = Some(call);
        }
        let current = self.channels.0.get_mut(&partition).and_then(|channel| channel.current.as_mut());
        let Some(call) = current.filter(|call| call.retry_at.is_some_and(|at| at <= turn.now)) else {
            return Ok(false);
        };
        call.retry_at = None;
        let left = (call.since + PATIENCE).saturating_sub(turn.now);
        let request = call.request.clone();
        turn.actions.push(Action::Control { partition, request, deadline: DEADLINE.min(left).max(1) });
        Ok(true)
    }

    /// The next call to a partition that has something to hear, under a new number.
    fn next_control(&mut self, partition: u32) -> Result<ControlRequest, Stop> {
        let mut number = self.small.next_number;
        let channel = self.channels.0.get_mut(&partition).ok_or(Fault::Invariant("a channel with work"))?;
        let (kind, add, remove) = if channel.bye {
            number = BYE;
            (control_request::Kind::Bye, Vec::new(), Vec::new())
        } else if channel.sync {
            channel.sync = false;
            let registry = self.registry.as_ref().ok_or(Fault::Invariant("a sync has registrations"))?;
            let all = registry.iter().filter(|(_, it)| it.partition == partition && it.applied);
            (control_request::Kind::Sync, all.map(|(key, it)| (*key, it.generation)).collect(), Vec::new())
        } else {
            let kind = match self.kind {
                Kind::Bidirectional => control_request::Kind::Bidi,
                Kind::Static => control_request::Kind::Static,
            };
            (kind, std::mem::take(&mut channel.add), std::mem::take(&mut channel.remove))
        };
        if number != BYE {
            self.small.next_number += 1;
            self.small.watched.insert(partition);
        }
        Ok(ControlRequest {
            session: self.setup.session.clone(),
            kind: kind.into(),
            number,
            add: watches(&add),
            remove: watches(&remove),
        })
    }

    /// The reply to a call, or its failure.
    pub(super) fn controlled(
        &mut self,
        turn: &mut Turn<'_>,
        partition: u32,
        number: u64,
        reply: Option<&ControlReply>,
    ) -> Result<(), Stop> {
        let Some(channel) = self.channels.0.get_mut(&partition) else { return Ok(()) };
        // Only the current number, once (traps 9, 14).
        let Some(call) = channel.current.take_if(|it| it.request.number == number && it.retry_at.is_none())
        else {
            return Ok(());
        };
        match reply.filter(|reply| reply.number == number).map(|reply| (reply, reply.verdict())) {
            Some((reply, Verdict::Done)) => {
                let done = !channel.sync && channel.add.is_empty() && channel.remove.is_empty();
                if done {
                    self.channels.0.remove(&partition);
                }
                self.take_heads(&call.request, reply)
            }
            Some((_, Verdict::Full)) if !channel.bye => Err(Stop::Status(Status::new(
                Code::Unavailable,
                "a partition holds as many streams as it can; try again later",
            ))),
            _ => self.retry_control(turn, partition, call),
        }
    }

    fn retry_control(&mut self, turn: &mut Turn<'_>, partition: u32, mut call: Call) -> Result<(), Stop> {
        let pause =
            pause(call.failures, |span| self.jitter(call.request.number + u64::from(partition), span));
        call.failures += 1;
        let bye = call.request.kind() == control_request::Kind::Bye;
        if bye && call.failures >= BYES {
            self.channels.0.remove(&partition);
            return Ok(());
        }
        // Nothing is given up without failing the stream. A call that began in the future: the clock jumped back.
        call.since = call.since.min(turn.now);
        if !bye && turn.now + pause >= call.since + PATIENCE {
            return Err(silent());
        }
        call.retry_at = Some(turn.now + pause);
        self.channels.0.entry(partition).or_default().current = Some(call);
        Ok(())
    }

    /// Heads of the topics that a call watches.
    fn take_heads(&mut self, request: &ControlRequest, reply: &ControlReply) -> Result<(), Stop> {
        if request.kind() == control_request::Kind::Bye {
            return Ok(());
        }
        let asked = request.add.iter().map(|watch| &watch.topic);
        let named = asked.eq(reply.heads.iter().map(|head| &head.topic));
        Fault::assert(named, "a reply has the heads that were asked for")?;
        let Some(registry) = self.registry.as_mut() else { return Ok(()) };
        let sync = request.kind() == control_request::Kind::Sync;
        if sync {
            self.counters.sync_repairs += u64::from(reply.repaired);
        }
        for (watch, head) in request.add.iter().zip(&reply.heads) {
            let key = Key::parse(&watch.topic).ok_or(Fault::Invariant("a watch is of a topic"))?;
            let Some(it) = registry.get(&key).filter(|it| it.generation == watch.generation) else {
                continue; // removed meanwhile
            };
            // A push of what came after it may have been delivered already.
            Fault::assert(!sync || head.head >= it.target, "heads never fall")?;
            registry.change(&key, |it| {
                if !it.applied {
                    it.target = head.head;
                }
                it.known = it.known.max(head.head);
            });
        }
        if let Some(current) = self.updates.current.as_mut()
            && !sync
            && !request.add.is_empty()
        {
            current.missing -= 1;
        }
        Ok(())
    }
}

/// A partition was asked again and again, and does not answer.
pub(super) fn silent() -> Stop {
    Stop::Status(Status::new(
        Code::Unavailable,
        "a partition does not answer; open the stream again from your cursors",
    ))
}

fn watches(watches: &[(Key, u32)]) -> Vec<Watch> {
    let topics = shared(watches.iter().map(|(key, _)| key));
    topics
        .into_iter()
        .zip(watches)
        .map(|(topic, (_, generation))| Watch { topic, generation: *generation })
        .collect()
}
