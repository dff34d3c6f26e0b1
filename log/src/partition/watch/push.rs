//! Pushes: what is in one, and what its answer ends (rules 6, 9, 10).

use sealog_proto::internal::{PushReply, PushRequest, push_request::Item};

use super::debts::Owed;
use super::lines::{Class, MAX_PAUSE, Place};
use super::rows::{self, Entry};
use super::sessions::{Flight, Id, Slot};
use super::{DAY, Watch};
use crate::key::Key;
use crate::participant::Action;
use crate::{Fault, Nanos, SECOND, Sql};

/// How long a session may take to answer: it does so in the event in which a push comes.
const DEADLINE: Nanos = 2 * SECOND;
/// Calls in one event of the platform, which allows 1,000; the rest is for what else the partition asks.
const CALLS_PER_EVENT: usize = 800;
/// Bounds of one push, so that it is one frame of its stream.
const MAX_ROWS: usize = 256;
const MAX_BYTES: usize = 1 << 20;
/// Bytes that an item takes beside its rows, generously.
const ITEM_BYTES: usize = 64;
/// How many topics of a session are looked at to tell its class. More than one push holds are not worth the time.
const LOOKED_AT: usize = 256;

/// What is in one push.
#[derive(Debug, Default)]
struct Parcel {
    items: Vec<Item>,
    /// The debts that it ends when it is acknowledged, and what stays of each of them.
    debts: Vec<(Key, Owed, Option<Owed>)>,
    rows: usize,
    bytes: usize,
}

impl Watch {
    /// Whether this event of the platform has no calls left.
    pub(super) fn is_spent(&self) -> bool {
        self.calls >= CALLS_PER_EVENT
    }

    /// Sends what may be sent now. Follows every other method that changes something, in the same event.
    pub fn pump(&mut self, now: Nanos, actions: &mut Vec<Action>) -> Result<(), Fault> {
        while !self.is_spent()
            && let Some((slot, class)) = self.lines.next(now)
        {
            actions.push(self.send(slot, class)?);
        }
        let has_waker = self.debts.lowest().is_none() || self.owes(now).is_some();
        Fault::assert(has_waker, "whatever is owed has a waker")
    }

    fn send(&mut self, slot: Slot, class: Class) -> Result<Action, Fault> {
        let parcel = self.pack(slot)?;
        for (key, _, rest) in &parcel.debts {
            self.debts.send(slot, *key, *rest);
        }
        self.last_push += 1;
        self.calls += 1;
        self.counters.pushes += 1;
        self.counters.items += parcel.items.len() as u64;
        self.counters.hints += parcel.items.iter().filter(|item| item.rows.is_empty()).count() as u64;
        self.lines.departed(self.last_push, class);
        let session = self.sessions.get_mut(slot)?;
        Fault::assert(session.flight.is_none(), "one push of a session is under way")?;
        session.place = Place::Flying;
        session.resume = parcel.debts.last().map(|(key, ..)| *key);
        let items = parcel.debts.into_iter().map(|(key, owed, _)| (key, owed)).collect();
        session.flight = Some(Flight { number: self.last_push, items });
        let request = PushRequest {
            session: session.id.to_vec().into(),
            partition: self.partition,
            incarnation: self.incarnation,
            number: self.last_push,
            items: parcel.items,
        };
        Ok(Action::Push { request, deadline: DEADLINE })
    }

    /// As much of what a session is owed as one push holds.
    fn pack(&self, slot: Slot) -> Result<Parcel, Fault> {
        let session = self.sessions.get(slot)?;
        let mut parcel = Parcel::default();
        for (key, owed) in self.debts.of(slot, session.resume) {
            Fault::assert(owed.low > self.mark, "what is owed lies above the mark")?;
            if parcel.bytes + ITEM_BYTES > MAX_BYTES || parcel.rows >= MAX_ROWS {
                break;
            }
            let rows = owed
                .from
                .and_then(|from| self.debts.recent.range(key, from, owed.head).map(|rows| (from, rows)));
            let Some((from, rows)) = rows else {
                parcel.take_hint(*key, *owed);
                continue;
            };
            let mut item = Item {
                topic: key.to_bytes(),
                generation: owed.generation,
                previous: from,
                rows: Vec::new(),
                head: from,
            };
            let mut rest = None;
            for (id, row) in rows {
                let is_first = parcel.rows == 0;
                if !is_first && (parcel.rows == MAX_ROWS || parcel.bytes + row.bytes + ITEM_BYTES > MAX_BYTES)
                {
                    rest = Some(Owed { from: Some(item.head), low: id, ..*owed });
                    break;
                }
                parcel.rows += 1;
                parcel.bytes += row.bytes;
                item.rows.push(row.envelope.clone());
                item.head = id;
            }
            if item.rows.is_empty() {
                break;
            }
            Fault::assert(rest.is_some() || item.head == owed.head, "the rows that are owed are complete")?;
            parcel.bytes += ITEM_BYTES;
            parcel.debts.push((*key, Owed { head: item.head, ..*owed }, rest));
            parcel.items.push(item);
        }
        Ok(parcel)
    }

    /// The answer to a push of this incarnation and number; `None` when there was none: lost, late, or the session could
    /// not be reached. Only the word of the session ends a watch (rule 10), and only the answer to the push under way
    /// ends a debt (rule 6). [`pump`](Self::pump) follows.
    ///
    /// Writes when a watch ends, and once in half a day for each session.
    pub fn pushed(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        session: &[u8],
        (incarnation, number): (u64, u64),
        reply: Option<&PushReply>,
    ) -> Result<(), Fault> {
        if incarnation != self.incarnation {
            return Ok(()); // it was an earlier instance's, and counted from 1 too
        }
        self.lines.landed(number);
        let id: Option<&Id> = session.try_into().ok();
        let Some(slot) = id.and_then(|id| self.sessions.find(id)) else { return Ok(()) };
        let session = self.sessions.get_mut(slot)?;
        let Some(flight) = session.flight.take_if(|flight| flight.number == number) else { return Ok(()) };
        session.place = Place::Idle;
        session.probe = false;
        match reply.filter(|reply| (reply.incarnation, reply.number) == (incarnation, number)) {
            None => self.failed(now, slot, flight),
            Some(PushReply { gone: true, .. }) => {
                self.counters.gone += 1;
                for (_, owed) in &flight.items {
                    self.debts.settle(owed);
                }
                self.forget(sql, slot)
            }
            Some(reply) => self.acknowledged(sql, now, slot, &flight, reply),
        }
    }

    fn acknowledged(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        slot: Slot,
        flight: &Flight,
        reply: &PushReply,
    ) -> Result<(), Fault> {
        for (_, owed) in &flight.items {
            self.debts.settle(owed);
        }
        let session = self.sessions.get_mut(slot)?;
        session.failures = 0;
        if now.saturating_sub(session.heard) >= DAY / 2 {
            session.heard = now;
            rows::touch(sql, session)?;
        }
        let unwanted: Vec<Entry> = reply
            .unwanted
            .iter()
            .filter_map(rows::entry)
            .filter(|(key, generation)| self.index.generation(key, slot) == Some(*generation))
            .collect();
        if unwanted.is_empty() {
            return self.line_up(slot);
        }
        self.counters.unwanted += unwanted.len() as u64;
        self.change(sql, slot, &unwanted, &[])
    }

    /// A push failed: what was in it is owed again, as hints, and so is the rest. The session must not hold rows in
    /// memory, and history tells it what it missed.
    fn failed(&mut self, now: Nanos, slot: Slot, flight: Flight) -> Result<(), Fault> {
        self.counters.failed += 1;
        for (key, owed) in flight.items {
            if self.index.generation(&key, slot) == Some(owed.generation) {
                self.debts.owe(slot, key, Owed { from: None, ..owed });
            }
            self.debts.settle(&owed);
        }
        self.debts.hints_only(slot);
        let session = self.sessions.get_mut(slot)?;
        session.failures = session.failures.saturating_add(1);
        session.due = now.saturating_add(pause(session.failures, &session.id));
        self.line_up(slot)
    }

    /// Puts a session where it belongs by what it is owed.
    pub(super) fn line_up(&mut self, slot: Slot) -> Result<(), Fault> {
        let owed = self.debts.is_owed(slot);
        let narrow = self.debts.of(slot, None).take(LOOKED_AT).any(|(key, _)| self.is_narrow(key));
        let session = self.sessions.get_mut(slot)?;
        match session.place {
            Place::Flying => {}
            Place::Waiting(..) if owed || session.probe => {}
            Place::Waiting(..) => {
                self.lines.leave(slot, session.place);
                session.place = Place::Idle;
            }
            Place::Idle if !owed => {}
            Place::Idle if session.failures > 0 => {
                session.place = self.lines.enter_suspect(slot, session.due);
            }
            Place::Idle => {
                session.place = self.lines.enter(slot, if narrow { Class::Narrow } else { Class::Wide });
            }
        }
        Ok(())
    }
}

impl Parcel {
    fn take_hint(&mut self, key: Key, owed: Owed) {
        self.bytes += ITEM_BYTES;
        self.items.push(Item {
            topic: key.to_bytes(),
            generation: owed.generation,
            previous: owed.head,
            rows: Vec::new(),
            head: owed.head,
        });
        self.debts.push((key, owed, None));
    }
}

/// How long a failing session is left alone: 1, 2, 4 … 60 s, and up to a quarter less, by its id, so that those that
/// failed together do not return together.
fn pause(failures: u32, id: &Id) -> Nanos {
    let pause = (SECOND << failures.saturating_sub(1).min(6)).min(MAX_PAUSE);
    let part = id.iter().fold(0, |part, byte| part ^ byte);
    pause - pause / 4 * Nanos::from(part) / 256
}
