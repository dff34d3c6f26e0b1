//! The step: a reply becomes rows, all or nothing (rule 6).

use super::{InFlight, Origin, Partition, PartitionStore, Row, Waiting};
use crate::effects::Effects;
use crate::message::{Listed, Message, PublishVerdict, Reserved};
use crate::mutation::Mutation;
use crate::names::SequenceId;
use crate::scenario::Scenario;

impl Partition {
    /// Applies what is decided, in order, then stores the batch, publish by publish, above it.
    pub(super) fn step(
        &mut self,
        scenario: &Scenario,
        reply: &Reserved,
        request: InFlight,
        effects: &mut Effects,
    ) {
        self.assert_reply(reply, &request, effects);
        let epoch_rose = reply.epoch > self.store.memory.epoch;
        self.store.memory.epoch = self.store.memory.epoch.max(reply.epoch);
        for listed in &reply.decided {
            if scenario.breaks(Mutation::ListFilteredByPartition) && !request.staged.contains(&listed.txid) {
                continue;
            }
            self.assert_listed(scenario, *listed, effects);
            self.store.memory.apply(scenario, self.place, listed.txid, listed.id);
        }
        if reply.more && reply.count == 0 {
            self.put_back(request.batch); // They wait for the rest of the list (rule 5).
        } else {
            self.store_batch(scenario, reply.first_id, &request.batch, effects);
        }
        self.applied = reply.first_id;
        // A batch that stored nothing owes a round too: its ids are open until a later request closes them.
        self.owes_round |= reply.count > 0 || !reply.decided.is_empty() || epoch_rose;
        self.nudged |= reply.more;
        self.answer_waiters(scenario, effects);
    }

    fn store_batch(
        &mut self,
        scenario: &Scenario,
        first_id: SequenceId,
        batch: &[Waiting],
        effects: &mut Effects,
    ) {
        let before = self.store.memory.clone();
        for (waiting, id) in batch.iter().zip(first_id..) {
            let checked_against = scenario.breaks(Mutation::HeadOfBatchStart).then_some(&before);
            let verdict = self.store_one(scenario, *waiting, id, checked_against);
            self.nudged |= verdict == PublishVerdict::Conflict; // The holder may be decided already (rule 18).
            effects.send(Message::PublishReply { worker: waiting.worker, from: self.place, verdict });
        }
    }

    /// Duplicate, staged lock, head as the previous publish left it, row: in this order (traps 17 and 18).
    fn store_one(
        &mut self,
        scenario: &Scenario,
        waiting: Waiting,
        id: SequenceId,
        checked_against: Option<&PartitionStore>,
    ) -> PublishVerdict {
        let Some(envelope) = scenario.publish(waiting.worker).envelopes[self.place] else {
            return PublishVerdict::Conflict; // No worker sends a publish where it has no envelope.
        };
        let store = &self.store.memory;
        let head_moved = checked_against.unwrap_or(store).head_moved(envelope, waiting.expected_head);
        if head_moved && scenario.breaks(Mutation::HeadBeforeDuplicate) {
            return PublishVerdict::HeadMoved;
        }
        if let Some(stored) = store.find(envelope) {
            return PublishVerdict::Stored(stored);
        }
        if store.is_locked(scenario, self.place, envelope) {
            return PublishVerdict::Conflict;
        }
        if head_moved && !scenario.breaks(Mutation::HeadCheckedOnlyOnArrival) {
            return PublishVerdict::HeadMoved;
        }
        let origin = Origin::Plain(waiting.worker);
        self.store.memory.rows.push(Row { envelope, id, origin, expected_head: waiting.expected_head });
        PublishVerdict::Stored(id)
    }

    /// The run-time assertions on a reply.
    fn assert_reply(&self, reply: &Reserved, request: &InFlight, effects: &mut Effects) {
        let rising = reply.decided.windows(2).all(|pair| pair[0].position < pair[1].position);
        let below = reply.decided.iter().all(|listed| listed.position < reply.first_id);
        effects.assert(rising && below, "P(b): decided transactions rise, and lie below first_id");
        let own = reply.decided.iter().all(|listed| listed.id == 0 || listed.position <= listed.id);
        effects.assert(own, "P(b): a position is not above the participant's own id");
        let wanted = usize::from(reply.count) == request.batch.len() || reply.more && reply.count == 0;
        effects.assert(wanted, "P(c): as many ids as asked for, or none with a cut list");
        effects.assert(reply.first_id >= self.applied, "P(d): replies move forward");
        let highest = self.store.memory.rows.iter().map(|row| row.id).max().unwrap_or(0);
        effects
            .assert(reply.count == 0 || reply.first_id > highest, "P(d): new ids lie above every stored id");
    }

    /// The run-time assertions on a listed transaction.
    fn assert_listed(&self, scenario: &Scenario, listed: Listed, effects: &mut Effects) {
        let store = &self.store.memory;
        let known = store.is_staged(listed.txid) || store.is_finished(listed.txid);
        effects.assert(known, "P(e): a listed transaction is staged or finished");
        let staged = store.staged.iter().find(|staged| staged.txid == listed.txid);
        let envelope = scenario.envelope(listed.txid, self.place);
        if let (Some(staged), Some(envelope)) = (staged, envelope) {
            effects.assert(
                !store.head_moved(envelope, staged.expected_head),
                "P(f): an applied identity update finds the head that it expects",
            );
            effects
                .assert(listed.id > store.head(envelope.topic), "P(a): a new id lies above its topic's head");
        }
    }
}
