//! A Directory partition as a participant: what it stages, and how a decision becomes claims.

use sealog_proto::internal::{ReserveReply, StageRequest, stage_reply::Verdict};

use super::Directory;
use super::claims::{self, Holder};
use super::schema::MIGRATIONS;
use crate::participant::{self, Action, Ended, Judgement, Member, Seat};
use crate::{Fault, Sql, Txid, migrate};

impl Member for Directory {
    const NAME: &'static str = "directory partition";

    fn start(sql: &dyn Sql, index: u32) -> Result<Self, Fault> {
        migrate(sql, MIGRATIONS)?;
        Ok(Self { seat: Seat::take(sql, participant::directory(index))? })
    }

    fn seat(&mut self) -> &mut Seat {
        &mut self.seat
    }

    /// TAKEN only against a claim that is applied; one that is staged may still be aborted, and TAKEN is final for a
    /// client (trap 19): that is CONFLICT.
    fn judge(&self, sql: &dyn Sql, part: &StageRequest) -> Result<Judgement, Fault> {
        let mut conflict = false;
        let mut new = Vec::with_capacity(part.claims.len());
        for claim in &part.claims {
            match claims::held_by(sql, &claim.handle)? {
                Holder::Inbox(inbox) if inbox != claim.inbox_id => {
                    return Ok(Judgement::Refuse(Verdict::Taken));
                }
                // Claimed again by its holder: it is held for good, so there is nothing to hold meanwhile.
                Holder::Inbox(_) => {}
                Holder::Transaction => conflict = true,
                Holder::Nobody => new.push(claim.clone()),
            }
        }
        Ok(if conflict {
            Judgement::Refuse(Verdict::Conflict)
        } else {
            Judgement::Keep(StageRequest { claims: new, ..StageRequest::default() })
        })
    }

    fn keep(&self, sql: &dyn Sql, txid: &Txid, part: &StageRequest) -> Result<(), Fault> {
        part.claims.iter().try_for_each(|claim| claims::stage(sql, txid, claim))
    }

    fn discard(&self, sql: &dyn Sql, txid: &Txid) -> Result<(), Fault> {
        claims::drop_staged(sql, txid)
    }

    fn step(&mut self, sql: &dyn Sql, reply: &ReserveReply, _actions: &mut Vec<Action>) -> Result<(), Fault> {
        let Seat { progress, transactions, .. } = &mut self.seat;
        sql.transaction(&mut || {
            for decided in &reply.decided {
                if let Some(txid) = transactions.decided(decided, progress.clock)? {
                    claims::apply(sql, &txid)?;
                    transactions.end(sql, txid, Ended::Applied)?;
                }
            }
            Ok(())
        })
    }
}
