//! A participant: a log partition, or the Directory, which is the same machine without ids.

mod stage;
mod step;
mod store;

use crate::effects::Effects;
use crate::gate::Gated;
use crate::message::{Message, PublishVerdict, Reserve, Reserved};
use crate::mutation::Mutation;
use crate::names::{Epoch, Participant, RequestName, SequenceId, Txid, WorkerId};
use crate::scenario::Scenario;

pub use store::{HeldClaim, Origin, PartitionStore, Row, Staged};

/// A plain publish in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    worker: WorkerId,
    expected_head: Option<SequenceId>,
}

/// A request that is with the sequencer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InFlight {
    name: RequestName,
    batch: Vec<Waiting>,
    /// For [`Mutation::ListFilteredByPartition`] only: what was staged when it left.
    staged: Vec<Txid>,
}

/// One running instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// Its tables, behind the output gate.
    pub store: Gated<PartitionStore>,
    place: Participant,
    queue: Vec<Waiting>,
    /// At most one (rule 1), but for [`Mutation::TwoRequestsInFlight`].
    in_flight: Vec<InFlight>,
    /// Number of the last request of this incarnation.
    number: u8,
    /// `first_id` of the last reply whose step is done; the gate makes it durable before a request carries it (rule 2).
    applied: SequenceId,
    /// Ids were used, or a decision applied, and no later request has said so (rule 16).
    owes_round: bool,
    /// Ask again as soon as the present request is answered (rule 16).
    nudged: bool,
    /// Transactions whose worker waits for `Applied`.
    waiters: Vec<Txid>,
}

impl Partition {
    /// The first instance at `place`.
    pub fn new(place: Participant) -> Self {
        let mut partition = Self {
            store: Gated::default(),
            place,
            queue: Vec::new(),
            in_flight: Vec::new(),
            number: 0,
            applied: 0,
            owes_round: false,
            nudged: false,
            waiters: Vec::new(),
        };
        partition.restart();
        partition
    }

    /// The next instance, on what is durable. It takes a new incarnation before it says anything (rule 1).
    /// With something staged it owes a round: what was decided meanwhile comes with it (rule 17).
    pub fn restart(&mut self) {
        self.store.write_at_start(|store| store.incarnation += 1);
        self.queue.clear();
        self.in_flight.clear();
        self.waiters.clear();
        self.number = 0;
        self.applied = 0;
        self.nudged = false;
        self.owes_round = !self.store.memory.staged.is_empty();
    }

    /// Whether publishes wait in it.
    pub fn has_queue(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether a request is with the sequencer.
    pub fn is_asking(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Whether it would send an empty request if nothing else happened for 50 ms (rule 16).
    pub fn owes_round(&self) -> bool {
        self.owes_round && self.in_flight.is_empty()
    }

    /// Whether a reply to `name` can be accepted, now or later.
    pub fn may_accept(&self, name: RequestName) -> bool {
        self.in_flight.iter().any(|request| request.name == name)
    }

    /// Handles one message.
    pub fn handle(&mut self, scenario: &Scenario, message: &Message, effects: &mut Effects) {
        match message {
            Message::Publish { worker, expected_head, .. } => {
                self.publish(scenario, Waiting { worker: *worker, expected_head: *expected_head }, effects);
            }
            Message::Stage { txid, expected_head, .. } => {
                self.stage(scenario, *txid, *expected_head, effects);
            }
            Message::Withdraw { txid, .. } | Message::Resolved { txid, aborted: true, .. } => {
                self.store.memory.end_without_rows(*txid);
            }
            Message::Resolved { txid, .. } if self.store.memory.is_staged(*txid) => {
                self.nudge(scenario, effects);
            }
            Message::Apply { txid, ids, .. } => {
                if let Some(id) = ids {
                    self.apply_carried(scenario, *txid, *id);
                }
                self.answer_when_applied(scenario, *txid, effects);
            }
            Message::Settle { epoch, .. } => self.settle(scenario, *epoch, effects),
            Message::Reserved(reply) => self.reserved(scenario, reply, effects),
            _ => {}
        }
    }

    /// Only under [`Mutation::IdsCarriedByApply`].
    fn apply_carried(&mut self, scenario: &Scenario, txid: Txid, id: SequenceId) {
        self.store.memory.apply(scenario, self.place, txid, id);
        self.applied = self.applied.max(id + 1);
        self.owes_round = true;
    }

    /// A plain publish. A duplicate is answered at once; the rest is judged in the step.
    fn publish(&mut self, scenario: &Scenario, waiting: Waiting, effects: &mut Effects) {
        let Some(envelope) = scenario.publish(waiting.worker).envelopes[self.place] else { return };
        let store = &self.store.memory;
        let verdict = if let Some(id) = store.find(envelope) {
            PublishVerdict::Stored(id)
        } else if scenario.breaks(Mutation::HeadCheckedOnlyOnArrival)
            && store.head_moved(envelope, waiting.expected_head)
        {
            PublishVerdict::HeadMoved
        } else {
            self.queue.push(waiting);
            self.ask_if_needed(scenario, effects);
            return;
        };
        effects.send(Message::PublishReply { worker: waiting.worker, from: self.place, verdict });
    }

    /// From here on no reply of an older epoch counts; the epoch is stored with the answer (rule 8, trap 8).
    fn settle(&mut self, scenario: &Scenario, epoch: Epoch, effects: &mut Effects) {
        if epoch < self.store.memory.epoch {
            return;
        }
        self.store.memory.epoch = epoch;
        effects.send(Message::Settled { from: self.place, epoch });
        self.nudge(scenario, effects);
    }

    /// The sequencer's reply. It counts if its request is the current one and its epoch is not over (rule 3).
    fn reserved(&mut self, scenario: &Scenario, reply: &Reserved, effects: &mut Effects) {
        let Some(request) = self.take_request(scenario, reply) else { return };
        if reply.epoch < self.store.memory.epoch && !scenario.breaks(Mutation::OldEpochAccepted) {
            self.put_back(request.batch);
            if !scenario.breaks(Mutation::VoidReplyNotFollowed) {
                self.ask(scenario, effects);
            }
            return;
        }
        self.step(scenario, reply, request, effects);
        self.ask_if_needed(scenario, effects);
    }

    fn take_request(&mut self, scenario: &Scenario, reply: &Reserved) -> Option<InFlight> {
        let place = self.in_flight.iter().position(|request| {
            let same_instance = request.name.incarnation == reply.name.incarnation;
            let same_number = request.name.number == reply.name.number;
            let earlier = reply.name.number < request.name.number;
            (same_instance || scenario.breaks(Mutation::ReplyOfDeadInstanceAccepted))
                && (same_number || earlier && scenario.breaks(Mutation::ReplyToEarlierAttemptAccepted))
        })?;
        Some(self.in_flight.remove(place))
    }

    /// Gives up the request that is with the sequencer; a new one, with the batch as it now is, says so (rule 1).
    pub fn time_out(&mut self, scenario: &Scenario, effects: &mut Effects) {
        if let Some(request) = self.in_flight.pop() {
            self.put_back(request.batch);
            self.ask(scenario, effects);
        }
    }

    /// 50 ms without traffic: says what was applied (rule 16).
    pub fn idle(&mut self, scenario: &Scenario, effects: &mut Effects) {
        self.ask(scenario, effects);
    }

    /// Asks what became of a staged transaction (rule 12).
    pub fn resolve(&self, txid: Txid, effects: &mut Effects) {
        effects.send(Message::Resolve { from: self.place, txid });
    }

    fn put_back(&mut self, mut batch: Vec<Waiting>) {
        batch.append(&mut self.queue);
        self.queue = batch;
    }

    fn nudge(&mut self, scenario: &Scenario, effects: &mut Effects) {
        self.nudged = true;
        self.ask_if_needed(scenario, effects);
    }

    fn ask_if_needed(&mut self, scenario: &Scenario, effects: &mut Effects) {
        let free = self.in_flight.is_empty() || scenario.breaks(Mutation::TwoRequestsInFlight);
        if free && (self.nudged || !self.queue.is_empty() || !self.waiters.is_empty()) {
            self.ask(scenario, effects);
        }
    }

    fn ask(&mut self, scenario: &Scenario, effects: &mut Effects) {
        self.number += 1;
        self.nudged = false;
        self.owes_round = false;
        let name = RequestName { incarnation: self.store.memory.incarnation, number: self.number };
        let batch = std::mem::take(&mut self.queue);
        effects.send(Message::Reserve(Reserve {
            from: self.place,
            name,
            epoch_seen: self.store.memory.epoch,
            count: u8::try_from(batch.len()).unwrap_or(u8::MAX),
            applied: self.applied,
        }));
        let mut request = InFlight { name, batch, staged: Vec::new() };
        if scenario.breaks(Mutation::ListFilteredByPartition) {
            request.staged = self.store.memory.staged.iter().map(|staged| staged.txid).collect();
        }
        self.in_flight.push(request);
    }
}
