//! Deciding transactions (rules 9 to 12, 20).

use sealog_proto::internal::{
    DecideReply, DecideRequest, ResolveReply, ResolveRequest, Share, failure::Kind,
};

use super::{Action, NUDGE_AFTER, Sequencer};
use crate::{CommandError, Fault, Nanos, SECOND, Sql, Txid};

/// How far ahead a txid's time may lie. It bounds how long the dead are remembered.
const MAX_AHEAD: Nanos = 120 * SECOND;

impl Sequencer {
    /// Command `decide`: the write that it makes is the commit.
    ///
    /// Idempotent: a repeat gets the same answer for as long as the txid's time lasts. `false` is final as well: it was
    /// aborted, or its time has passed, or lies more than 120 s ahead. The worker repeats it while it has no answer.
    pub fn decide(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &DecideRequest,
    ) -> Result<(DecideReply, Vec<Action>), CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        if let Some(transaction) = self.transactions.get(&txid) {
            if transaction.shares() != request.shares.as_slice() {
                return Err(CommandError::refused(
                    Kind::Invariant,
                    "a txid was used for another transaction",
                ));
            }
            return Ok((DecideReply { decided: true }, Vec::new()));
        }
        let clock = self.clock.read(now);
        let in_time = clock <= txid.not_after() && txid.not_after() <= clock + MAX_AHEAD;
        if self.transactions.is_aborted(&txid) || !in_time {
            self.keep_ahead(sql)?;
            return Ok((DecideReply { decided: false }, Vec::new()));
        }
        let count = self.count(&request.shares)?;
        let idle = self.transactions.lowest_unfinished().is_none();
        let first_id = self.allocate(count)?;
        Fault::assert(first_id > self.stored.boundary, "a decision lies above every told boundary")?;
        sql.transaction(&mut || {
            self.transactions.decide(sql, txid, first_id, clock, &request.shares)?;
            self.keep_ahead(sql)
        })?;
        // One alarm while anything is unfinished: each setting of it is a write.
        let alarm = idle.then_some(Action::Alarm { after: NUDGE_AFTER });
        Ok((DecideReply { decided: true }, alarm.into_iter().collect()))
    }

    /// Command `resolve`: what became of a transaction. One that is not decided is aborted by the question, at any time
    /// (rule 12); the tombstone is stored before the answer.
    ///
    /// Idempotent. A participant asks, and asks again, while it holds an old staged copy.
    pub fn resolve(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &ResolveRequest,
    ) -> Result<ResolveReply, CommandError> {
        let txid = Txid::of_request(&request.txid)?;
        let decided = self.transactions.get(&txid).is_some();
        // Past its time it cannot be decided any more: no tombstone is needed, nor would one ever be removed.
        if !decided && self.clock.read(now) <= txid.not_after() {
            self.transactions.abort(sql, txid)?;
        }
        self.keep_ahead(sql)?;
        Ok(ResolveReply { decided })
    }

    /// The ids that a transaction takes, over all its participants.
    fn count(&self, shares: &[Share]) -> Result<u64, CommandError> {
        let mut seen = std::collections::BTreeSet::new();
        for share in shares {
            let participant = self.check(share.participant)?;
            if !seen.insert(super::key(participant)) {
                return Err(CommandError::refused(Kind::BadCommand, "a participant is named twice"));
            }
        }
        let count = shares.iter().map(|share| u64::from(share.count)).sum();
        if count == 0 {
            return Err(CommandError::refused(Kind::BadCommand, "a transaction takes at least one id"));
        }
        Ok(count)
    }
}
