//! One attempt: the states that it passes through. Only [`Staging`] can withdraw: once an attempt is sent to be
//! decided, its fate is the sequencer's alone (rule 9, trap 12).

use std::collections::BTreeMap;

use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::{
    ApplyRequest, DecideRequest, Participant, Share, StageReply, StageRequest, WithdrawRequest,
    participant::Kind, stage_reply::Verdict,
};

use super::{Action, Outcome, Part, keys};
use crate::Txid;

type Key = (i32, u32);

fn key(participant: Participant) -> Key {
    (participant.kind, participant.index)
}

/// What follows.
#[derive(Debug)]
pub(super) enum Next {
    Wait,
    Do(Vec<Action>),
    Decide(Deciding),
    /// Everything is stored already: only the metadata is wanted.
    Look(Applying),
    /// Withdrawn; another attempt may go through.
    Retry,
    End(Outcome),
}

/// Staging, and if that fails, withdrawing.
#[derive(Debug)]
pub(super) struct Staging {
    txid: Txid,
    /// To be staged later, in ascending order; last first.
    later: Vec<(Participant, StageRequest)>,
    verdicts: BTreeMap<Key, (Participant, Option<StageReply>)>,
    /// Stage requests without an answer.
    pending: usize,
    /// Withdrawals without an answer, and what follows them.
    withdrawing: Vec<Key>,
    then: Option<Next>,
}

impl Staging {
    pub(super) fn begin(txid: Txid, parts: &[Part], one_by_one: bool) -> (Self, Vec<Action>) {
        let mut requests: Vec<(Participant, StageRequest)> = parts
            .iter()
            .map(|part| {
                let request = StageRequest {
                    txid: txid.to_bytes(),
                    envelopes: part.envelopes.clone(),
                    claims: part.claims.clone(),
                };
                (part.participant, request)
            })
            .collect();
        let later = if one_by_one { requests.split_off(1).into_iter().rev().collect() } else { Vec::new() };
        let pending = requests.len();
        let staging =
            Self { txid, later, verdicts: BTreeMap::new(), pending, withdrawing: Vec::new(), then: None };
        (staging, requests.into_iter().map(|(to, request)| Action::Stage(to, request)).collect())
    }

    pub(super) fn staged(&mut self, from: Participant, reply: Option<&StageReply>) -> Next {
        self.verdicts.insert(key(from), (from, reply.copied()));
        self.pending -= 1;
        let goes_on =
            reply.is_some_and(|reply| matches!(reply.verdict(), Verdict::Staged | Verdict::Duplicate));
        if goes_on && let Some((to, request)) = self.later.pop() {
            self.pending += 1;
            return Next::Do(vec![Action::Stage(to, request)]);
        }
        if self.pending > 0 { Next::Wait } else { self.judge() }
    }

    /// All verdicts are in (rule 15): all duplicates, success, whatever a Directory says; else what is final; else
    /// what may pass.
    fn judge(&mut self) -> Next {
        let is_log = |participant: &Participant| participant.kind() == Kind::Log;
        let verdict = |reply: &Option<StageReply>| reply.as_ref().map(StageReply::verdict);
        let any = |wanted: Verdict| self.verdicts.values().any(|(_, reply)| verdict(reply) == Some(wanted));
        let all_in = self.later.is_empty();
        let mut logs = self.verdicts.values().filter(|(from, _)| is_log(from));
        if all_in && logs.all(|(_, reply)| verdict(reply) == Some(Verdict::Duplicate)) {
            let directories = self.verdicts.values().map(|(from, _)| *from).filter(|from| !is_log(from));
            return self.withdraw(Next::Look(Applying::looking(self.txid, directories)));
        }
        let kept = |(_, reply): &(Participant, Option<StageReply>)| {
            matches!(verdict(reply), Some(Verdict::Staged | Verdict::Duplicate))
        };
        if all_in && self.verdicts.values().all(kept) {
            return Next::Decide(Deciding { txid: self.txid, shares: self.shares() });
        }
        if any(Verdict::HeadMoved) {
            self.withdraw(Next::End(Outcome::HeadMoved))
        } else if any(Verdict::Taken) {
            self.withdraw(Next::End(Outcome::Taken))
        } else if any(Verdict::Conflict) {
            self.withdraw(Next::Retry)
        } else {
            self.withdraw(Next::End(Outcome::Unavailable))
        }
    }

    fn shares(&self) -> Vec<Share> {
        self.verdicts
            .values()
            .filter_map(|(from, reply)| Some((from, reply.as_ref()?)))
            .filter(|(_, reply)| reply.verdict() == Verdict::Staged)
            .map(|(from, reply)| Share { participant: Some(*from), count: reply.count, bytes: reply.bytes })
            .collect()
    }

    /// Withdraws wherever something may be staged: also where no answer came.
    fn withdraw(&mut self, then: Next) -> Next {
        let held: Vec<Participant> = self
            .verdicts
            .values()
            .filter(|(_, reply)| reply.as_ref().is_none_or(|reply| reply.verdict() == Verdict::Staged))
            .map(|(from, _)| *from)
            .collect();
        if held.is_empty() {
            return then;
        }
        self.then = Some(then);
        self.withdrawing = held.iter().map(|participant| key(*participant)).collect();
        let request = WithdrawRequest { txid: self.txid.to_bytes() };
        Next::Do(held.into_iter().map(|to| Action::Withdraw(to, request.clone())).collect())
    }

    /// What follows a withdrawal waits for all of its answers, so that the next attempt does not conflict with this one.
    pub(super) fn withdrawn(&mut self, from: Participant) -> Next {
        self.withdrawing.retain(|waiting| *waiting != key(from));
        if self.withdrawing.is_empty() { self.then.take().unwrap_or(Next::Wait) } else { Next::Wait }
    }
}

/// Staged everywhere; the question is with the sequencer.
#[derive(Debug)]
pub(super) struct Deciding {
    txid: Txid,
    shares: Vec<Share>,
}

impl Deciding {
    pub(super) fn request(&self) -> DecideRequest {
        DecideRequest { txid: self.txid.to_bytes(), shares: self.shares.clone() }
    }

    pub(super) fn decided(&self) -> Applying {
        Applying::new(self.txid)
    }
}

/// Decided, or stored before: collecting what the rows say.
#[derive(Debug)]
pub(super) struct Applying {
    txid: Txid,
    metas: BTreeMap<Key, Vec<EnvelopeMeta>>,
}

impl Applying {
    fn new(txid: Txid) -> Self {
        Self { txid, metas: BTreeMap::new() }
    }

    /// Nothing was decided, everything is stored: a Directory, whose part was withdrawn, has nothing to add.
    fn looking(txid: Txid, directories: impl Iterator<Item = Participant>) -> Self {
        Self { txid, metas: directories.map(|directory| (key(directory), Vec::new())).collect() }
    }

    /// Asks whoever is to add something.
    pub(super) fn ask(&self, parts: &[Part]) -> Vec<Action> {
        let open = parts.iter().filter(|part| !self.metas.contains_key(&key(part.participant)));
        open.map(|part| self.ask_one(part)).collect()
    }

    pub(super) fn ask_again(&self, from: Participant, parts: &[Part]) -> Option<Action> {
        parts.iter().find(|part| part.participant == from).map(|part| self.ask_one(part))
    }

    fn ask_one(&self, part: &Part) -> Action {
        let request = ApplyRequest { txid: self.txid.to_bytes(), envelopes: keys(part) };
        Action::Apply(part.participant, request)
    }

    /// Takes one answer; all of them, in the order of the parts, once the last has come.
    pub(super) fn applied(
        &mut self,
        from: Participant,
        metas: Vec<EnvelopeMeta>,
        parts: &[Part],
    ) -> Option<Vec<Vec<EnvelopeMeta>>> {
        self.metas.insert(key(from), metas);
        if self.metas.len() < parts.len() {
            return None;
        }
        Some(parts.iter().map(|part| self.metas.remove(&key(part.participant)).unwrap_or_default()).collect())
    }
}
