//! How the mistakes of [`Mutation`] are made: whatever passes between machines, and what a crash leaves, goes through
//! here.

use std::collections::BTreeMap;

use sealog_log::{Param, Sql, Txid};
use sealog_proto::internal::{
    AssociationChange, NewEnvelope, ReserveReply, ReserveRequest, ResolveReply, ResolveRequest, StageReply,
    StoreReply, associate_request::Association, stage_reply::Verdict, store_reply::Refusal,
};

use crate::context::Context;
use crate::history::key;
use crate::identifiers::inbox_of;
use crate::message::{Body, Message, Node, Reply, Request};
use crate::mutation::Mutation;
use crate::storage::Storage;

/// The request of a participant that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Asking {
    incarnation: u64,
    number: u64,
    epoch: u64,
}

/// A mistake, with what it must remember.
#[derive(Debug, Default)]
pub(crate) struct Mutator {
    pub(crate) mutation: Option<Mutation>,
    asking: BTreeMap<Node, Asking>,
    /// By participant and (incarnation, number): ids given to the first request, and how often it came.
    given: BTreeMap<(Node, u64, u64), (u64, u32, u64)>,
    /// The last ids sent to each participant.
    sent: BTreeMap<Node, u64>,
    /// The instance that each participant last spoke as, and how often that changed.
    instances: BTreeMap<Node, (u64, u64)>,
    /// Duplicates that came.
    again: Vec<NewEnvelope>,
}

impl Mutator {
    pub(crate) fn new(mutation: Option<Mutation>) -> Self {
        Self { mutation, ..Self::default() }
    }
}

impl Context {
    pub(crate) fn is(&self, mutation: Mutation) -> bool {
        self.mutator.mutation == Some(mutation)
    }

    pub(crate) fn loses_alarm(&self, node: Node, storage: &Storage) -> bool {
        let staged = "SELECT 1 FROM transactions WHERE outcome = 0";
        let for_outbox = matches!(node, Node::Log(_)) && !exists(staged, storage);
        self.is(Mutation::NoAlarm) || self.is(Mutation::NoAlarmForOutbox) && for_outbox
    }

    pub(crate) fn loses_wakes(&self) -> bool {
        self.is(Mutation::NoWake)
    }

    /// Whether a message leaves before what was written before it is durable.
    pub(crate) fn bypasses_gate(&self, message: &Message) -> bool {
        let Some(mutation) = self.mutator.mutation else { return false };
        match &message.body {
            Body::Reply(Some(reply)) => matches!(
                (mutation, reply),
                (Mutation::PublishToldBeforeDurable, Reply::Store(_))
                    | (Mutation::ReadBeforeDurable, Reply::Read(_))
                    | (Mutation::StageToldBeforeDurable, Reply::Stage(_))
                    | (Mutation::DecisionToldBeforeDurable, Reply::Decide(_))
                    | (Mutation::IdsToldBeforeDurable, Reply::Reserve(_))
                    | (Mutation::BoundaryToldBeforeStored, Reply::Boundary(_))
                    | (Mutation::AbortNotDurable, Reply::Resolve(_))
                    | (Mutation::AppliedToldBeforeDurable, Reply::Apply(_))
                    | (Mutation::AssociatedBeforeDurable, Reply::Associate)
            ),
            Body::Request(Request::Associate(_)) => mutation == Mutation::ChangeToldBeforeDurable,
            Body::Request(Request::Reserve(_)) => mutation == Mutation::ConfirmedBeforeDurable,
            _ => false,
        }
    }

    /// What the sequencer gets to see of a request.
    pub(crate) fn mutate_reserve(
        &mut self,
        from: Node,
        request: &ReserveRequest,
        epoch: u64,
    ) -> ReserveRequest {
        let mut told = *request;
        let given = self.mutator.given.entry((from, request.incarnation, request.number)).or_default();
        given.2 += 1;
        let asking = self.mutator.asking.entry(from).or_default();
        if (request.incarnation, request.number) >= (asking.incarnation, asking.number) {
            *asking = Asking {
                incarnation: request.incarnation,
                number: request.number,
                epoch: asking.epoch.max(request.epoch_seen),
            };
        }
        match self.mutator.mutation {
            Some(Mutation::UnorderedInstances) => {
                // Another than the last one is taken for a newer one.
                let (last, count) = self.mutator.instances.entry(from).or_default();
                if *last != request.incarnation {
                    (*last, *count) = (request.incarnation, *count + 1);
                }
                told.incarnation = *count;
            }
            Some(Mutation::RepeatReplacesReservation) => told.number = request.number * 1_000 + given.2,
            Some(Mutation::HeardOnAnyRequest) => told.epoch_seen = epoch,
            Some(Mutation::ConfirmationByRequest) => {
                told.applied = told.applied.max(self.mutator.sent.get(&from).copied().unwrap_or(0));
            }
            Some(Mutation::DirectoryConfirmsAtOnce) if matches!(from, Node::Directory(_)) => {
                let newest = self.mutator.sent.values().max().copied().unwrap_or(0);
                told.applied = told.applied.max(newest);
            }
            _ => {}
        }
        told
    }

    /// What the participant gets to see of a reply.
    pub(crate) fn mutate_reserved(&mut self, from: Node, request: &ReserveRequest, reply: &mut ReserveReply) {
        if reply.superseded {
            return;
        }
        (reply.incarnation, reply.number) = (request.incarnation, request.number);
        if self.is(Mutation::CutListWithIds) {
            reply.decided.truncate(1);
        }
        self.mutator.sent.insert(from, reply.first_id);
        let given = self.mutator.given.entry((from, request.incarnation, request.number)).or_default();
        if given.2 > 1 && self.mutator.mutation == Some(Mutation::RepeatReusesIds) {
            (reply.first_id, reply.count) = (given.0, given.1);
        }
        (given.0, given.1) = (reply.first_id, reply.count);
    }

    /// What arrives at a machine instead of what was sent.
    pub(crate) fn mutate_delivery(&mut self, message: &mut Message, storage: Option<&Storage>) {
        let Some(mutation) = self.mutator.mutation else { return };
        let asking = self.mutator.asking.get(&message.to).copied().unwrap_or_default();
        match &mut message.body {
            Body::Reply(Some(Reply::Reserve(reply))) => match mutation {
                Mutation::DeadReplyAccepted if reply.incarnation != asking.incarnation => {
                    (reply.incarnation, reply.number) = (asking.incarnation, asking.number);
                }
                Mutation::EarlierReplyAccepted if reply.incarnation == asking.incarnation => {
                    reply.number = asking.number;
                }
                Mutation::OldEpochAccepted => reply.epoch = reply.epoch.max(asking.epoch),
                _ => {}
            },
            Body::Request(Request::Settle(settle)) => {
                let asking = self.mutator.asking.entry(message.to).or_default();
                asking.epoch = asking.epoch.max(settle.epoch);
            }
            Body::Request(Request::Store(store)) if mutation == Mutation::ChangeForDuplicate => {
                let stored = |envelope: &&NewEnvelope| self.history.ids.contains_key(&key(envelope));
                self.mutator.again.extend(store.envelopes.iter().filter(stored).cloned());
            }
            Body::Request(Request::Associate(associate)) if mutation == Mutation::ChangeForDuplicate => {
                let sequence_id = self.history.rows.keys().next_back().copied().unwrap_or(0);
                for envelope in &self.mutator.again {
                    let new = |change: &AssociationChange| Association {
                        key: change.key.clone(),
                        inbox_id: inbox_of(&envelope.topic),
                        sequence_id,
                        live: change.live,
                    };
                    let is_here =
                        |change: &&AssociationChange| message.to == Node::Directory(change.directory);
                    associate.associations.extend(envelope.changes.iter().filter(is_here).map(new));
                }
            }
            Body::Request(Request::Store(store)) if mutation == Mutation::HeadCheckedOnArrival => {
                forget_heads(&mut store.envelopes, storage);
            }
            Body::Request(Request::Stage(stage)) if mutation == Mutation::HeadCheckedOnArrival => {
                forget_heads(&mut stage.envelopes, storage);
            }
            Body::Reply(Some(Reply::Stage(reply)))
                if mutation == Mutation::TakenAgainstStaged
                    && matches!(message.from, Node::Directory(_))
                    && reply.verdict() == Verdict::Conflict =>
            {
                *reply = StageReply { verdict: Verdict::Taken.into(), ..Default::default() };
            }
            _ => {}
        }
    }

    /// An answer to `resolve` that the sequencer did not give.
    pub(crate) fn mutate_resolve(&self, request: &ResolveRequest) -> Option<ResolveReply> {
        let decided = Txid::parse(&request.txid).is_some_and(|txid| self.history.decided.contains_key(&txid));
        (self.is(Mutation::AbortNotRecorded) && !decided).then_some(ResolveReply { decided: false })
    }

    /// An answer that a partition gives before it looks for duplicates.
    pub(crate) fn mutate_store(&self, message: &Message, storage: &Storage) -> Option<Message> {
        let Body::Request(Request::Store(store)) = &message.body else { return None };
        let moved = |envelope: &NewEnvelope| {
            envelope.expected_head.is_some_and(|expected| expected != head(&envelope.topic, storage))
        };
        if !self.is(Mutation::HeadBeforeDuplicate) || !store.envelopes.iter().any(moved) {
            return None;
        }
        let reply = StoreReply { refusal: Refusal::HeadMoved.into(), ..Default::default() };
        let body = Body::Reply(Some(Reply::Store(reply)));
        Some(Message { from: message.to, to: message.from, call: message.call, body })
    }

    /// Statements whose results an object does not see, or that it runs otherwise.
    pub(crate) fn mutate_statements(&self, storage: &Storage) {
        match self.mutator.mutation {
            Some(Mutation::NoLockOnStaged) => {
                storage.blind(Some("SELECT 1 FROM staged WHERE topic"));
                storage.tamper("DROP INDEX IF EXISTS staged_by_hash");
                storage.tamper("DROP INDEX IF EXISTS staged_by_inbox");
            }
            Some(Mutation::NoLockOnClaim) => {
                storage.blind(Some("SELECT 1 FROM staged_claims WHERE handle"));
                storage.alter(Some(("INSERT INTO staged_claims", "INSERT OR REPLACE INTO staged_claims")));
            }
            Some(Mutation::DeliveryConfirmsAll) => {
                storage.alter(Some(("AND sequence_id <= ?", "AND (sequence_id <= ? OR 1)")));
            }
            Some(Mutation::AssociateIgnoresOrder) => {
                storage.alter(Some(("WHERE sequence_id < excluded.sequence_id", "")));
            }
            Some(Mutation::RevokedFound) => storage.alter(Some(("AND live = 1", ""))),
            _ => {}
        }
    }

    /// What an object loses with a request that it sends.
    pub(crate) fn mutate_request(&self, request: &Request, storage: &Storage) {
        if self.is(Mutation::OutboxForgottenWhenSent) && matches!(request, Request::Associate(_)) {
            storage.tamper("DELETE FROM outbox");
        }
    }

    /// What an object loses at the end of an event.
    pub(crate) fn mutate_event(&self, node: Node, storage: &Storage) {
        if self.is(Mutation::TombstoneForgotten) && matches!(node, Node::Directory(_)) {
            storage.tamper("DELETE FROM associations WHERE live = 0");
        }
    }

    /// What a crash does to storage that it should not.
    pub(crate) fn mutate_storage(&self, node: Node, storage: &Storage) {
        let statement = match (self.mutator.mutation, node) {
            (Some(Mutation::BlockGivenOutAgain), Node::Sequencer) => {
                "UPDATE sequencer SET block_end = boundary"
            }
            (Some(Mutation::CleanNotCleared), Node::Sequencer) => "UPDATE sequencer SET clean = 1",
            (Some(Mutation::TimeLimitForgotten), Node::Sequencer) => {
                "UPDATE sequencer SET clock_limit = zeroblob(8)"
            }
            (Some(Mutation::TombstonesForgotten), Node::Sequencer) => "DELETE FROM tombstones",
            (Some(Mutation::DecisionForgotten), Node::Sequencer) => {
                "DELETE FROM decisions WHERE finished = 1"
            }
            (Some(Mutation::EndForgotten), Node::Log(_) | Node::Directory(_)) => {
                "DELETE FROM transactions WHERE outcome <> 0"
            }
            (Some(Mutation::StagedForgotten), Node::Log(_)) => "DELETE FROM staged",
            (Some(Mutation::StagedIdentityForgotten), Node::Log(_)) => "DELETE FROM staged_identity",
            (Some(Mutation::OutboxForgottenAtRestart), Node::Log(_)) => "DELETE FROM outbox",
            _ => return,
        };
        storage.tamper(statement);
        if self.is(Mutation::StagedForgotten) {
            storage.tamper("DELETE FROM transactions WHERE outcome = 0");
        }
    }
}

fn exists(statement: &str, storage: &Storage) -> bool {
    storage.first(statement, &[]).ok().flatten().is_some()
}

/// Judges expected heads now, and no more.
fn forget_heads(envelopes: &mut [NewEnvelope], storage: Option<&Storage>) {
    let Some(storage) = storage else { return };
    for envelope in envelopes {
        if envelope.expected_head == Some(head(&envelope.topic, storage)) {
            envelope.expected_head = None;
        }
    }
}

fn head(topic: &[u8], storage: &Storage) -> u64 {
    let statement = "SELECT head FROM topics WHERE topic = ?";
    let row = storage.first(statement, &[Param::Blob(topic)]).ok().flatten();
    row.map_or(0, |row| row[0].uint8().unwrap_or(0))
}
