//! What partitions push (rules 11, 13).

use sealog_proto::internal::{PushReply, PushRequest, StoredEnvelope, Watch, push_request};

use super::history::{ascending, id};
use super::turn::{Stop, Turn};
use super::{Phase, Session};
use crate::Fault;
use crate::key::Key;

impl Session {
    /// Answers a push, item by item.
    pub(super) fn pushed(
        &mut self,
        turn: &mut Turn<'_>,
        request: PushRequest,
        reply: &mut PushReply,
    ) -> Result<(), Stop> {
        if matches!(self.phase, Phase::Absent | Phase::Over) {
            return Ok(());
        }
        let mut frame = Vec::new();
        for item in request.items {
            self.counters.items += 1;
            self.counters.hints += u64::from(item.rows.is_empty());
            if let Some(unwanted) = self.take_pushed(turn, item, &mut frame)? {
                self.counters.unwanted += 1;
                reply.unwanted.push(unwanted);
            }
        }
        self.send_messages(turn, frame)
    }

    /// Takes one item, or says that its watch is not wanted, naming the watch that is meant (trap 8).
    fn take_pushed(
        &mut self,
        turn: &mut Turn<'_>,
        item: push_request::Item,
        frame: &mut Vec<StoredEnvelope>,
    ) -> Result<Option<Watch>, Stop> {
        check(&item)?;
        let key = Key::parse(&item.topic).ok_or(Fault::Invariant("a push is of a topic"))?;
        let registry = self.registry(turn)?;
        let Some(it) = registry.get(&key).filter(|it| it.generation <= item.generation) else {
            return Ok(Some(Watch { topic: item.topic, generation: item.generation }));
        };
        Fault::assert(item.generation == it.generation, "a push is for a watch that was asked for")?;
        let (position, current) = (it.position, it.applied && it.position >= it.target);
        // What is not delivered is remembered, and pulled (traps 2, 5, 11). Drop rows, not pushes (trap 3).
        if !current || position < item.previous {
            registry.change(&key, |it| it.known = it.known.max(item.head));
            self.counters.pulls_after_push += u64::from(current);
            return Ok(None);
        }
        let rows: Vec<_> = item.rows.into_iter().filter(|row| id(row) > position).collect();
        self.hand_over(turn, &key, rows, item.head, frame)?;
        Ok(None)
    }
}

/// Assertion (f) of a push.
fn check(item: &push_request::Item) -> Result<(), Fault> {
    match item.rows.last() {
        None => Fault::assert(item.previous == item.head, "a hint names the head"),
        Some(last) => {
            let ends = ascending(&item.rows, item.previous, item.head)? && id(last) == item.head;
            Fault::assert(ends, "a push's rows end at its head")
        }
    }
}
