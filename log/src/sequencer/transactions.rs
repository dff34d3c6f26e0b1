//! The transactions that were decided, and those that never will be (rules 10 to 12).

use std::collections::{BTreeMap, BTreeSet};

use sealog_proto::internal::{Decided, Participant, Share};

use super::store;
use crate::{Fault, Nanos, Sql, Txid};

/// Bounds of the list in one reply (rule 5): what one step may hold.
const LIST_TRANSACTIONS: usize = 256;
const LIST_BYTES: u64 = 8 << 20;

/// A participant, as a key.
pub(super) type Key = (i32, u32);

pub(super) fn key(participant: Participant) -> Key {
    (participant.kind, participant.index)
}

/// A decided transaction.
#[derive(Debug)]
pub(super) struct Transaction {
    txid: Txid,
    /// Its position: the lowest of its ids. One contiguous range per participant follows, in the order of `shares`.
    first_id: u64,
    server_ns: Nanos,
    shares: Vec<Share>,
    /// Participants that said they applied it. In memory only: a lost confirmation is asked for again.
    confirmed: BTreeSet<Key>,
    /// Every participant has confirmed.
    finished: bool,
}

impl Transaction {
    pub(super) fn stored(
        txid: Txid,
        first_id: u64,
        server_ns: Nanos,
        shares: &[Share],
        finished: bool,
    ) -> Self {
        let shares = shares.to_vec();
        Self { txid, first_id, server_ns, shares, confirmed: BTreeSet::new(), finished }
    }

    pub(super) fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// What `participant` is told of it, and the bytes that it staged. `None` when it takes no part, or has confirmed.
    fn decided(&self, participant: Key) -> Option<(Decided, u64)> {
        let mut first_id = self.first_id;
        for share in &self.shares {
            if share.participant.map(key) == Some(participant) {
                let open = !self.finished && !self.confirmed.contains(&participant);
                let decided = Decided {
                    txid: self.txid.to_bytes(),
                    position: self.first_id,
                    first_id: if share.count == 0 { 0 } else { first_id },
                    count: share.count,
                    server_ns: self.server_ns,
                };
                return open.then_some((decided, share.bytes));
            }
            first_id += u64::from(share.count);
        }
        None
    }

    /// Takes a participant's confirmation; `true` when it was the last one missing.
    fn confirm(&mut self, participant: Key) -> bool {
        if self.participants().any(|other| key(other) == participant) {
            self.confirmed.insert(participant);
        }
        let all = self.participants().all(|other| self.confirmed.contains(&key(other)));
        self.finished = all;
        all
    }

    fn participants(&self) -> impl Iterator<Item = Participant> {
        self.shares.iter().filter_map(|share| share.participant)
    }
}

/// A list of decisions, cut to its bounds.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) decided: Vec<Decided>,
    /// Position of the first one left out.
    pub(super) cut_at: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// By position.
    decided: BTreeMap<u64, Transaction>,
    positions: BTreeMap<Txid, u64>,
    /// Positions of those that are not finished: few, among many that are only remembered.
    unfinished: BTreeSet<u64>,
    /// Positions of those that finished, and that is not stored yet.
    unstored: Vec<u64>,
    tombstones: BTreeSet<Txid>,
    /// Every txid that is remembered, by the end of its time.
    by_end: BTreeSet<(Nanos, Txid)>,
}

impl Transactions {
    pub(super) fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        let mut this = Self::default();
        for transaction in store::load_decisions(sql)? {
            this.enter(transaction);
        }
        for txid in store::load_tombstones(sql)? {
            this.bury(txid);
        }
        Ok(this)
    }

    pub(super) fn get(&self, txid: &Txid) -> Option<&Transaction> {
        self.decided.get(self.positions.get(txid)?)
    }

    pub(super) fn is_aborted(&self, txid: &Txid) -> bool {
        self.tombstones.contains(txid)
    }

    /// Records a decision. This write is the commit.
    pub(super) fn decide(
        &mut self,
        sql: &dyn Sql,
        txid: Txid,
        first_id: u64,
        server_ns: Nanos,
        shares: &[Share],
    ) -> Result<(), Fault> {
        Fault::assert(!self.is_aborted(&txid), "a transaction is not both decided and aborted")?;
        store::insert_decision(sql, &txid, first_id, server_ns, shares)?;
        self.enter(Transaction::stored(txid, first_id, server_ns, shares, false));
        Ok(())
    }

    /// Records that a transaction is never to be decided.
    pub(super) fn abort(&mut self, sql: &dyn Sql, txid: Txid) -> Result<(), Fault> {
        Fault::assert(self.get(&txid).is_none(), "a transaction is not both decided and aborted")?;
        if self.bury(txid) {
            store::insert_tombstone(sql, &txid)?;
        }
        Ok(())
    }

    /// `participant` has applied whatever lies below `applied` (rule 2).
    pub(super) fn confirm(&mut self, participant: Key, applied: u64) {
        let below: Vec<u64> = self.unfinished.range(..applied).copied().collect();
        for position in below {
            let Some(transaction) = self.decided.get_mut(&position) else { continue };
            if transaction.confirm(participant) {
                self.unfinished.remove(&position);
                self.unstored.push(position);
            }
        }
    }

    /// What `participant` has not confirmed, lowest positions first (rules 4 and 5).
    pub(super) fn list(&self, participant: Key) -> List {
        let mut list = List::default();
        let mut bytes = 0;
        for transaction in self.unfinished() {
            let Some((decided, staged_bytes)) = transaction.decided(participant) else { continue };
            bytes += staged_bytes;
            let full = list.decided.len() >= LIST_TRANSACTIONS || bytes > LIST_BYTES;
            if full && !list.decided.is_empty() {
                list.cut_at = Some(transaction.first_id);
                break;
            }
            list.decided.push(decided);
        }
        list
    }

    /// The lowest position of a transaction that is not finished.
    pub(super) fn lowest_unfinished(&self) -> Option<u64> {
        self.unfinished.first().copied()
    }

    /// Participants that have not confirmed, with the txid: whom to nudge (rule 17).
    pub(super) fn unconfirmed(&self) -> Vec<(Participant, Txid)> {
        self.unfinished()
            .flat_map(|transaction| {
                transaction
                    .participants()
                    .filter(|participant| !transaction.confirmed.contains(&key(*participant)))
                    .map(|participant| (participant, transaction.txid))
            })
            .collect()
    }

    /// Stores which transactions finished; the boundary that relies on it is stored in the same event (rule 7).
    pub(super) fn store_finished(&mut self, sql: &dyn Sql) -> Result<(), Fault> {
        for position in self.unstored.drain(..) {
            if let Some(transaction) = self.decided.get(&position) {
                store::mark_finished(sql, &transaction.txid)?;
            }
        }
        Ok(())
    }

    /// Forgets what nobody can ask about any more: the time of its txid has passed, on a clock that never falls, and
    /// if it was decided, it is finished and that is stored (rules 11 and 12).
    pub(super) fn prune(&mut self, sql: &dyn Sql, clock: Nanos) -> Result<(), Fault> {
        self.store_finished(sql)?;
        let past: Vec<(Nanos, Txid)> =
            self.by_end.iter().take_while(|(not_after, _)| *not_after < clock).copied().collect();
        for end in past {
            let txid = end.1;
            match self.positions.get(&txid).copied() {
                Some(position) if self.unfinished.contains(&position) => continue,
                Some(position) => {
                    store::delete_decision(sql, &txid)?;
                    self.decided.remove(&position);
                    self.positions.remove(&txid);
                }
                None => {
                    store::delete_tombstone(sql, &txid)?;
                    self.tombstones.remove(&txid);
                }
            }
            self.by_end.remove(&end);
        }
        Ok(())
    }

    fn unfinished(&self) -> impl Iterator<Item = &Transaction> {
        self.unfinished.iter().filter_map(|position| self.decided.get(position))
    }

    fn enter(&mut self, transaction: Transaction) {
        let position = transaction.first_id;
        if !transaction.finished {
            self.unfinished.insert(position);
        }
        self.by_end.insert((transaction.txid.not_after(), transaction.txid));
        self.positions.insert(transaction.txid, position);
        self.decided.insert(position, transaction);
    }

    fn bury(&mut self, txid: Txid) -> bool {
        self.by_end.insert((txid.not_after(), txid));
        self.tombstones.insert(txid)
    }
}
