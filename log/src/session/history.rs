//! History, and whatever else a stream lacks: pulled page by page, in rounds (rules 14 to 16).

use std::collections::{BTreeMap, HashMap};

use sealog_proto::internal::{PullReply, PullRequest, StoredEnvelope, pull_reply, pull_request};

use super::control::{DEADLINE, PATIENCE, pause, silent};
use super::turn::{Stop, Turn};
use super::{Action, Session};
use crate::key::{Key, shared};
use crate::{Fault, Nanos};

/// Pulls at once. They go to different partitions, so that one that does not answer holds up only its own topics.
const AT_ONCE: usize = 2;
/// Topics of a pull.
const MAX_TOPICS: usize = 256;

/// A pull that is in flight.
#[derive(Debug)]
struct Pull {
    partition: u32,
    since: Nanos,
    budget: u64,
    asked: Vec<Asked>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    key: Key,
    generation: u32,
    after: u64,
    known: u64,
}

/// A partition that did not answer its last pulls.
#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Nanos,
    failures: u32,
    retry_at: Nanos,
}

#[derive(Debug, Default)]
pub(super) struct Pulls {
    in_flight: BTreeMap<u64, Pull>,
    silent: BTreeMap<u32, Silence>,
}

impl Pulls {
    /// Whether a call is under way.
    pub(super) fn is_calling(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// When a partition that did not answer is asked again.
    pub(super) fn next_retry(&self, now: Nanos) -> Option<Nanos> {
        self.silent.values().map(|silence| silence.retry_at).filter(|at| *at > now).min()
    }

    fn reserved(&self) -> u64 {
        self.in_flight.values().map(|pull| pull.budget).sum()
    }
}

impl Session {
    /// Asks for pages while there is room for them.
    pub(super) fn send_pulls(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let Some(registry) = self.registry.as_mut() else { return Ok(()) };
        while registry.is_behind()
            && self.pulls.in_flight.len() < AT_ONCE
            && self.output.has_room(self.pulls.reserved())
        {
            let Pulls { in_flight, silent } = &self.pulls;
            let closed = |partition| {
                in_flight.values().any(|pull| pull.partition == partition)
                    || silent.get(&partition).is_some_and(|silence| silence.retry_at > turn.now)
            };
            let Some((partition, keys)) = registry.next(closed, MAX_TOPICS) else { break };
            let mut asked = Vec::with_capacity(keys.len());
            for key in keys {
                let it = registry.get(&key).ok_or(Fault::Invariant("who waits is registered"))?;
                Fault::assert(it.applied && !it.pulling, "a registration is pulled once at a time")?;
                asked.push(Asked { key, generation: it.generation, after: it.position, known: it.known });
                registry.change(&key, |it| it.pulling = true);
            }
            let topics = shared(asked.iter().map(|asked| &asked.key)).into_iter().zip(&asked);
            let request = PullRequest {
                number: self.small.next_number,
                budget: super::sending::budget(&self.setup.limits),
                positions: topics
                    .map(|(topic, asked)| pull_request::Position {
                        topic,
                        generation: asked.generation,
                        after: asked.after,
                    })
                    .collect(),
            };
            self.small.next_number += 1;
            let deadline = silent.get(&partition).map_or(DEADLINE, |silence| {
                DEADLINE.min((silence.since + PATIENCE).saturating_sub(turn.now)).max(1)
            });
            let pull = Pull { partition, since: turn.now, budget: request.budget, asked };
            self.pulls.in_flight.insert(request.number, pull);
            turn.actions.push(Action::Pull { partition, request, deadline });
        }
        Ok(())
    }

    /// A page, or the failure of a pull.
    pub(super) fn pulled(
        &mut self,
        turn: &mut Turn<'_>,
        number: u64,
        reply: Option<PullReply>,
    ) -> Result<(), Stop> {
        let Some(pull) = self.pulls.in_flight.remove(&number) else { return Ok(()) };
        let registry = self.registry(turn)?;
        // Whoever is not served below keeps its turn, and is the next (rule 16).
        for asked in &pull.asked {
            if registry.get(&asked.key).is_some_and(|it| it.generation == asked.generation) {
                registry.change(&asked.key, |it| it.pulling = false);
            }
        }
        match reply.filter(|reply| reply.number == number) {
            Some(page) => {
                self.pulls.silent.remove(&pull.partition);
                self.take_page(turn, &pull, page)
            }
            None => self.pull_failed(turn, number, &pull),
        }
    }

    fn pull_failed(&mut self, turn: &Turn<'_>, number: u64, pull: &Pull) -> Result<(), Stop> {
        let before = self.pulls.silent.get(&pull.partition);
        let (since, failures) = before.map_or((pull.since, 0), |silence| (silence.since, silence.failures));
        let pause = pause(failures, |span| self.jitter(number, span));
        // A silence that began in the future: the clock jumped back.
        let since = since.min(turn.now);
        if turn.now + pause >= since + PATIENCE {
            return Err(silent());
        }
        let silence = Silence { since, failures: failures + 1, retry_at: turn.now + pause };
        self.pulls.silent.insert(pull.partition, silence);
        Ok(())
    }

    fn take_page(&mut self, turn: &mut Turn<'_>, pull: &Pull, page: PullReply) -> Result<(), Stop> {
        let mut asked: HashMap<Key, &Asked> = pull.asked.iter().map(|asked| (asked.key, asked)).collect();
        let mut frame = Vec::new();
        for item in page.items {
            self.counters.pages += 1;
            let key = Key::parse(&item.topic).and_then(|key| asked.remove(&key));
            let asked = key.ok_or(Fault::Invariant("a page has each topic once, of those asked for"))?;
            check(&item, asked)?;
            self.take_item(turn, asked, item, &mut frame)?;
        }
        self.send_messages(turn, frame)
    }

    fn take_item(
        &mut self,
        turn: &mut Turn<'_>,
        asked: &Asked,
        item: pull_reply::Item,
        frame: &mut Vec<StoredEnvelope>,
    ) -> Result<(), Stop> {
        let registry = self.registry(turn)?;
        let key = &asked.key;
        let Some(it) = registry.get(key).filter(|it| it.generation == asked.generation) else {
            return Ok(()); // a page of an older registration (trap 6)
        };
        let (served, target, position) = (!it.is_unserved(), it.target, it.position);
        registry.change(key, |it| it.known = it.known.max(item.head));
        let rows: Vec<_> = item.rows.into_iter().filter(|row| id(row) > position).collect();
        let history = rows.first().is_some_and(|row| id(row) <= target);
        if served && history && registry.has_unserved() {
            // Judged now, not when it was asked for (trap 12). It keeps its turn.
            self.counters.pages_dropped += 1;
            return Ok(());
        }
        self.hand_over(turn, key, rows, item.through, frame)?;
        self.registry(turn)?.end_turn(key);
        Ok(())
    }
}

/// Assertions (f) and (g) of a page.
fn check(item: &pull_reply::Item, asked: &Asked) -> Result<(), Fault> {
    let same = item.generation == asked.generation && item.after == asked.after;
    Fault::assert(same, "a page answers what was asked")?;
    let ends = ascending(&item.rows, item.after, item.through)? && item.through <= item.head;
    Fault::assert(ends, "a page's rows are within it")?;
    Fault::assert(item.through > item.after, "a page leads on")?;
    Fault::assert(item.head >= asked.known, "heads never fall")
}

/// Whether rows rise strictly, above `after` and up to `through`.
pub(super) fn ascending(rows: &[StoredEnvelope], after: u64, through: u64) -> Result<bool, Fault> {
    let mut last = after;
    for row in rows {
        if id(row) <= last {
            return Err(Fault::Invariant("rows rise strictly"));
        }
        last = id(row);
    }
    Ok(last <= through)
}

/// The sequence id of a stored envelope.
pub(super) fn id(row: &StoredEnvelope) -> u64 {
    row.meta.as_ref().and_then(|meta| meta.cursor).map_or(0, |cursor| cursor.sequence_id)
}
