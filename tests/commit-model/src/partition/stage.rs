//! Staging and answering: the participant's side of a transaction.

use super::{Partition, Staged};
use crate::effects::Effects;
use crate::message::{Message, StageVerdict};
use crate::mutation::Mutation;
use crate::names::{SequenceId, Txid};
use crate::publish::{Claim, Envelope};
use crate::scenario::Scenario;

impl Partition {
    /// Keeps a transaction's part, or says why not.
    ///
    /// A finished transaction is refused (rule 10): nothing else would keep a late repeat from being staged again and
    /// locked for ever (trap 15). The refusal is not modelled as a message; a lost reply has the same effect.
    pub(super) fn stage(
        &mut self,
        scenario: &Scenario,
        txid: Txid,
        expected_head: Option<SequenceId>,
        effects: &mut Effects,
    ) {
        let forgets =
            scenario.breaks(Mutation::StageRepeatedAfterEnd) || scenario.breaks(Mutation::TxidUsedAgain);
        if self.store.memory.is_finished(txid) && !forgets {
            return;
        }
        let refusal = if self.store.memory.is_staged(txid) {
            None
        } else if let Some(envelope) = scenario.envelope(txid, self.place) {
            self.judge_envelope(scenario, envelope, expected_head)
        } else {
            scenario.claim(txid).and_then(|claim| self.judge_claim(scenario, claim))
        };
        if refusal.is_none() && !self.store.memory.is_staged(txid) {
            let staged = &mut self.store.memory.staged;
            staged.insert(staged.partition_point(|other| other.txid < txid), Staged { txid, expected_head });
        }
        let verdict = refusal.unwrap_or(StageVerdict::Staged);
        effects.send(Message::StageReply { txid, from: self.place, verdict });
        if verdict == StageVerdict::Conflict {
            self.nudge(scenario, effects); // The holder may be decided already (rule 18).
        }
    }

    /// Duplicates first: a retry of stored bytes succeeds although they have moved the head (API-222, trap 18).
    fn judge_envelope(
        &self,
        scenario: &Scenario,
        envelope: Envelope,
        expected_head: Option<SequenceId>,
    ) -> Option<StageVerdict> {
        let store = &self.store.memory;
        let duplicate = || store.find(envelope).map(StageVerdict::Duplicate);
        let conflict = || store.is_locked(scenario, self.place, envelope).then_some(StageVerdict::Conflict);
        let head = || store.head_moved(envelope, expected_head).then_some(StageVerdict::HeadMoved);
        if scenario.breaks(Mutation::HeadBeforeDuplicate) {
            return conflict().or_else(head).or_else(duplicate);
        }
        duplicate().or_else(conflict).or_else(head)
    }

    /// "Taken" is final for the client, so only an applied claim of another inbox may say it (rule 15, trap 19).
    fn judge_claim(&self, scenario: &Scenario, claim: Claim) -> Option<StageVerdict> {
        let store = &self.store.memory;
        let of_another = |other: Claim| other.handle == claim.handle && other.inbox != claim.inbox;
        if store.claims.iter().any(|held| of_another(held.claim)) {
            return Some(StageVerdict::Taken);
        }
        let mut staged = store.staged.iter().filter_map(|staged| scenario.claim(staged.txid));
        let locked = staged.any(|other| other.handle == claim.handle);
        if !locked || scenario.breaks(Mutation::NoLockOnStagedHandle) {
            return None;
        }
        let taken = scenario.breaks(Mutation::TakenAgainstUndecided);
        Some(if taken { StageVerdict::Taken } else { StageVerdict::Conflict })
    }

    /// `apply` is a nudge: the next list will have the transaction. Its worker is answered when it is applied, from
    /// the stored row (rule 14).
    pub(super) fn answer_when_applied(&mut self, scenario: &Scenario, txid: Txid, effects: &mut Effects) {
        if self.store.memory.is_staged(txid) {
            if let Err(place) = self.waiters.binary_search(&txid) {
                self.waiters.insert(place, txid);
            }
            self.nudge(scenario, effects);
        } else {
            self.answer_applied(scenario, txid, effects);
        }
    }

    /// Answers those waiters whose transaction is no longer staged.
    pub(super) fn answer_waiters(&mut self, scenario: &Scenario, effects: &mut Effects) {
        let store = &self.store.memory;
        let (waiting, ended) = self.waiters.iter().partition(|txid| store.is_staged(**txid));
        self.waiters = waiting;
        let ended: Vec<Txid> = ended;
        for txid in ended {
            self.answer_applied(scenario, txid, effects);
        }
    }

    fn answer_applied(&self, scenario: &Scenario, txid: Txid, effects: &mut Effects) {
        let store = &self.store.memory;
        if store.is_applied(txid) {
            let envelope = scenario.envelope(txid, self.place);
            let id = envelope.and_then(|envelope| store.find(envelope)).unwrap_or(0);
            effects.send(Message::Applied { txid, from: self.place, id });
        }
    }
}
