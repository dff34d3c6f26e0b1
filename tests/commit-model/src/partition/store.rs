//! What a participant stores.

use crate::mutation::Mutation;
use crate::names::{Epoch, Participant, SequenceId, Txid, WorkerId};
use crate::publish::{Claim, Envelope};
use crate::scenario::Scenario;

/// Its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartitionStore {
    /// Raised by every instance before it speaks (rule 1).
    pub incarnation: u8,
    /// The newest epoch seen (rule 8).
    pub epoch: Epoch,
    /// In the order in which they became visible.
    pub rows: Vec<Row>,
    /// By txid. Durable and invisible.
    pub staged: Vec<Staged>,
    /// Applied claims.
    pub claims: Vec<HeldClaim>,
    /// Applied, aborted and withdrawn transactions, by txid. Kept for ever: the model has no clock (rule 10).
    pub finished: Vec<Txid>,
}

/// A stored envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// What.
    pub envelope: Envelope,
    /// Where in the order.
    pub id: SequenceId,
    /// Who stored it.
    pub origin: Origin,
    /// The head that an identity update was checked against.
    pub expected_head: Option<SequenceId>,
}

/// What stored a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A publish without a transaction.
    Plain(WorkerId),
    /// An applied transaction.
    Transaction(Txid),
}

impl Origin {
    /// Whose publish it was.
    pub fn worker(self) -> WorkerId {
        match self {
            Self::Plain(worker) => worker,
            Self::Transaction(txid) => txid.worker,
        }
    }
}

/// A participant's part of an undecided or unapplied transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Staged {
    /// Whose.
    pub txid: Txid,
    /// Of an identity update.
    pub expected_head: Option<SequenceId>,
}

/// An applied claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeldClaim {
    /// Which handle, for which inbox.
    pub claim: Claim,
    /// The transaction that made it.
    pub txid: Txid,
}

impl PartitionStore {
    /// The highest id on a topic, 0 when it is empty.
    pub fn head(&self, topic: u8) -> SequenceId {
        let on_topic = self.rows.iter().filter(|row| row.envelope.topic == topic);
        on_topic.map(|row| row.id).max().unwrap_or(0)
    }

    /// Whether an identity update must be refused (API-232).
    pub fn head_moved(&self, envelope: Envelope, expected_head: Option<SequenceId>) -> bool {
        expected_head.is_some_and(|expected| self.head(envelope.topic) != expected)
    }

    /// The id of the stored copy of an envelope.
    pub fn find(&self, envelope: Envelope) -> Option<SequenceId> {
        self.rows.iter().find(|row| row.envelope == envelope).map(|row| row.id)
    }

    /// Whether a transaction's part is here and invisible.
    pub fn is_staged(&self, txid: Txid) -> bool {
        self.staged.iter().any(|staged| staged.txid == txid)
    }

    /// Whether a transaction's part is here and visible.
    pub fn is_applied(&self, txid: Txid) -> bool {
        self.rows.iter().any(|row| row.origin == Origin::Transaction(txid))
            || self.claims.iter().any(|held| held.txid == txid)
    }

    /// Whether a transaction has ended here.
    pub fn is_finished(&self, txid: Txid) -> bool {
        self.finished.contains(&txid)
    }

    /// Whether what is staged keeps an envelope out: the same envelope, or another update of the same inbox.
    pub fn is_locked(&self, scenario: &Scenario, place: Participant, envelope: Envelope) -> bool {
        let envelopes = self.staged.iter().filter_map(|staged| scenario.envelope(staged.txid, place));
        envelopes.filter(|other| other.topic == envelope.topic).any(|other| {
            let same = other.hash == envelope.hash && !scenario.breaks(Mutation::NoLockOnStagedEnvelope);
            let inbox = envelope.identity && !scenario.breaks(Mutation::NoLockOnStagedInbox);
            same || inbox
        })
    }

    /// Makes a transaction's part visible; nothing happens when it is not staged. The one way in for transactions: the
    /// normal path and recovery share it.
    pub fn apply(&mut self, scenario: &Scenario, place: Participant, txid: Txid, id: SequenceId) {
        let Some(index) = self.staged.iter().position(|staged| staged.txid == txid) else { return };
        let staged = self.staged.remove(index);
        if let Some(envelope) = scenario.envelope(txid, place) {
            let origin = Origin::Transaction(txid);
            self.rows.push(Row { envelope, id, origin, expected_head: staged.expected_head });
        } else if let Some(claim) = scenario.claim(txid) {
            self.claims.push(HeldClaim { claim, txid });
        }
        self.finish(txid);
    }

    /// Ends a transaction that was aborted or withdrawn, even one not seen yet (rule 10).
    pub fn end_without_rows(&mut self, txid: Txid) {
        self.staged.retain(|staged| staged.txid != txid);
        self.finish(txid);
    }

    fn finish(&mut self, txid: Txid) {
        if let Err(place) = self.finished.binary_search(&txid) {
            self.finished.insert(place, txid);
        }
    }
}
