//! What happened, as one who sees everything: which rows became durable and when, what was told to whom.
//!
//! Checks that need only the past are made as it happens; the others in [`crate::verdict`], when all is quiet.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use bytes::Bytes;
use sealog_log::{Param, Sql, Txid, Value};
use sealog_proto::backend::{Cursor, EnvelopeMeta, MessageHash, Topic, message_hash};
use sealog_proto::internal::{Claim, NewEnvelope, NewestReply, ReadReply, Share, history_reply};

use crate::identifiers::Identifiers;
use crate::message::{Body, Message, Node, Reply, Request, id};
use crate::storage::Storage;

/// An envelope's identity: topic and hash.
pub(crate) type Key = (Bytes, Bytes);

/// A stored envelope.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) node: Node,
    pub(crate) meta: EnvelopeMeta,
}

#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) first_id: u64,
    pub(crate) shares: Vec<Share>,
}

/// What a write of an object means.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    Row(Row),
    Decided(Txid, Decision),
    Aborted(Txid),
}

/// What a read returned.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) topic: Bytes,
    pub(crate) after: u64,
    pub(crate) metas: Vec<EnvelopeMeta>,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    /// Durable rows, by id.
    pub(crate) rows: BTreeMap<u64, Row>,
    pub(crate) ids: BTreeMap<Key, u64>,
    pub(crate) decided: BTreeMap<Txid, Decision>,
    pub(crate) aborted: BTreeSet<Txid>,
    told_decided: BTreeSet<Txid>,
    /// The highest boundary that was told.
    pub(crate) told: u64,
    /// For every envelope ever sent: the highest id that was visible when its first publish arrived.
    visible: BTreeMap<Key, u64>,
    /// The heads on which its publishers wanted an identity update.
    pub(crate) wanted: BTreeMap<Key, BTreeSet<Option<u64>>>,
    /// What belongs together.
    pub(crate) publishes: Vec<(Vec<Key>, Vec<Claim>)>,
    /// Claims of publishes that were told "taken".
    pub(crate) taken: Vec<Vec<Claim>>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) identifiers: Identifiers,
    /// Ids that a worker was told, by topic.
    acknowledged: BTreeMap<Bytes, BTreeSet<u64>>,
    pub(crate) successes: u64,
    pub(crate) transactions: u64,
    /// The first thing that went wrong.
    pub(crate) broken: Option<String>,
}

pub(crate) fn key(envelope: &NewEnvelope) -> Key {
    (envelope.topic.clone(), envelope.hash.clone())
}

pub(crate) fn key_of(meta: &EnvelopeMeta) -> Key {
    let hash = match meta.message_hash.as_ref().and_then(|hash| hash.hash.as_ref()) {
        Some(message_hash::Hash::Sha256(hash)) => hash.clone(),
        None => Bytes::new(),
    };
    (meta.topic.as_ref().map(|topic| topic.topic.clone()).unwrap_or_default(), hash)
}

impl History {
    pub(crate) fn violation(&mut self, what: &str) {
        self.broken.get_or_insert_with(|| what.to_owned());
    }

    pub(crate) fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            let what = what();
            self.violation(&what);
        }
    }

    // ---- objects ----

    /// A write was flushed.
    pub(crate) fn durable(&mut self, effect: Effect) {
        match effect {
            Effect::Row(row) => self.row(row),
            Effect::Decided(txid, decision) => {
                let aborted = self.aborted.contains(&txid);
                self.require(!aborted, || "API-220: an aborted transaction was decided".to_owned());
                let first_id = decision.first_id;
                let known = self.decided.insert(txid, decision);
                let same = known.is_none_or(|known| known.first_id == first_id);
                self.require(same, || "API-288: a transaction was decided twice, at other ids".to_owned());
                let (told, visible) = (self.told, self.rows.contains_key(&first_id));
                self.require(first_id > told || visible, || {
                    format!("API-203: decided at {first_id} after boundary {told} was told")
                });
            }
            Effect::Aborted(txid) => {
                let decided = self.decided.contains_key(&txid) || self.told_decided.contains(&txid);
                self.require(!decided, || "API-220: a decided transaction was aborted".to_owned());
                self.aborted.insert(txid);
            }
        }
    }

    fn row(&mut self, row: Row) {
        let number = id(&row.meta);
        let key = key_of(&row.meta);
        let told = self.told;
        self.require(number > told, || format!("API-203: {number} stored after boundary {told} was told"));
        let range = (1..=sealog_proto::MAX_SEQUENCE_ID).contains(&number);
        self.require(range, || format!("API-286: {number} is no sequence id"));
        let before = self.visible.get(&key).copied();
        self.require(before.is_some(), || format!("{number} is a row that nobody published"));
        let before = before.unwrap_or(0);
        self.require(number > before, || format!("API-289: {number} stored, {before} was visible before"));
        self.identifiers.stored(&key, number);
        let twice = self.ids.insert(key, number);
        self.require(twice.is_none(), || format!("API-222: stored twice, at {twice:?} and {number}"));
        let taken = self.rows.insert(number, row);
        self.require(taken.is_none(), || format!("API-287: id {number} was given twice"));
    }

    /// A message passed the gate.
    pub(crate) fn released(&mut self, message: &Message) {
        self.identifiers.released(message);
        let Body::Reply(Some(reply)) = &message.body else { return };
        if let Reply::Boundary(boundary) = *reply {
            self.boundary(boundary);
        }
    }

    fn boundary(&mut self, boundary: u64) {
        let told = self.told;
        self.require(boundary >= told, || format!("API-291: boundary {boundary} after {told}"));
        self.told = self.told.max(boundary);
        let missing = self
            .decided
            .values()
            .filter(|decision| decision.first_id <= boundary)
            .flat_map(|decision| {
                let count: u64 = decision.shares.iter().map(|share| u64::from(share.count)).sum();
                decision.first_id..decision.first_id + count
            })
            .find(|number| !self.rows.contains_key(number));
        self.require(missing.is_none(), || {
            format!("API-203: boundary {boundary} told, decided id {missing:?} is not visible")
        });
    }

    // ---- workers ----

    /// A publish arrives.
    pub(crate) fn began(&mut self, envelopes: &[NewEnvelope], claims: &[Claim]) {
        let newest = self.rows.keys().next_back().copied().unwrap_or(0);
        for envelope in envelopes {
            self.visible.entry(key(envelope)).or_insert(newest);
            self.wanted.entry(key(envelope)).or_default().insert(envelope.expected_head);
            self.identifiers.began(envelope);
        }
        self.publishes.push((envelopes.iter().map(key).collect(), claims.to_vec()));
    }

    pub(crate) fn told_decided(&mut self, txid: &[u8]) {
        let Some(txid) = Txid::parse(txid) else { return };
        let aborted = self.aborted.contains(&txid);
        self.require(!aborted, || "API-220: told decided, was aborted".to_owned());
        self.told_decided.insert(txid);
    }

    /// A worker is told success.
    pub(crate) fn acknowledged(&mut self, metas: &[EnvelopeMeta], keys: &[Key]) {
        self.successes += 1;
        let told: BTreeSet<Key> = metas.iter().map(key_of).collect();
        let asked: BTreeSet<Key> = keys.iter().cloned().collect();
        self.require(told == asked, || "API-221: the answer is not about the envelopes sent".to_owned());
        for meta in metas {
            let stored = self.rows.get(&id(meta)).is_some_and(|row| row.meta == *meta);
            self.require(stored, || format!("API-202: {} acknowledged, not as it is stored", id(meta)));
            self.acknowledged.entry(key_of(meta).0).or_default().insert(id(meta));
        }
    }

    /// A worker is told that a head has moved. Never about bytes that were stored before it asked.
    pub(crate) fn head_moved(&mut self, keys: &[Key], stored_before: bool) {
        self.require(!stored_before, || {
            format!("API-222: ABORTED for {} envelopes that were stored before", keys.len())
        });
    }

    pub(crate) fn is_stored(&self, keys: &[Key]) -> bool {
        keys.iter().all(|key| self.ids.contains_key(key))
    }

    /// What a read that starts now must return.
    pub(crate) fn read_begins(&self, topic: &[u8]) -> BTreeSet<u64> {
        self.acknowledged.get(topic).cloned().unwrap_or_default()
    }

    /// The newest row of one topic was read. It is a read of the topic's end, and no older than what was acknowledged.
    pub(crate) fn newest_ends(&mut self, reply: &NewestReply, must: &BTreeSet<u64>) {
        let meta = reply.results.first().and_then(|result| result.meta.as_ref());
        let stored = meta.is_none_or(|meta| self.rows.get(&id(meta)).is_some_and(|row| row.meta == *meta));
        self.require(stored, || "API-201: the newest row was read, not as it is stored".to_owned());
        let newest = meta.map_or(0, id);
        let missing = must.iter().find(|number| **number > newest);
        self.require(missing.is_none(), || format!("API-202: {missing:?} acknowledged, newest is {newest}"));
    }

    /// A history was read (API-232): a read from the beginning, with the facts of each update.
    pub(crate) fn history_ends(
        &mut self,
        topic: Bytes,
        reply: &history_reply::Inbox,
        must: &BTreeSet<u64>,
        stored_before: bool,
    ) {
        let mut metas = Vec::with_capacity(reply.entries.len());
        for entry in &reply.entries {
            let row = self.rows.get(&entry.sequence_id).filter(|row| row.meta.server_ns == entry.server_ns);
            let facts = row.and_then(|row| self.identifiers.facts(&key_of(&row.meta)));
            let holds = facts.is_some() && entry.facts == facts;
            metas.extend(row.map(|row| row.meta.clone()));
            self.require(holds, || {
                format!("API-232: {} is not in the history as it was published", entry.sequence_id)
            });
        }
        let last = reply.entries.last().map_or(0, |entry| entry.sequence_id);
        let whole = (reply.head, reply.count, reply.more) == (last, metas.len() as u64, false);
        self.require(whole, || format!("API-232: head {} of a history that ends with {last}", reply.head));
        let missing = must.iter().find(|number| metas.iter().all(|meta| id(meta) != **number));
        self.require(missing.is_none(), || format!("API-232: {missing:?} acknowledged, not in the history"));
        self.require(reply.stored || !stored_before, || "API-222: stored, and not known".to_owned());
        self.snapshots.push(Snapshot { topic, after: 0, metas });
    }

    pub(crate) fn read_ends(&mut self, topic: Bytes, after: u64, reply: ReadReply, must: &BTreeSet<u64>) {
        let metas: Vec<EnvelopeMeta> = reply.envelopes.into_iter().filter_map(|row| row.meta).collect();
        for meta in &metas {
            let stored = self.rows.get(&id(meta)).is_some_and(|row| row.meta == *meta);
            self.require(stored, || format!("API-201: {} was read, not as it is stored", id(meta)));
        }
        let seen: BTreeSet<u64> = metas.iter().map(id).collect();
        let missing = must.iter().find(|number| **number > after && !seen.contains(number));
        self.require(missing.is_none(), || format!("API-202: {missing:?} acknowledged, then not read"));
        self.snapshots.push(Snapshot { topic, after, metas });
    }
}

/// Rows that a log partition has stored since it was last asked.
pub(crate) fn rows_of(node: Node, storage: &Storage, last: &mut i64) -> Vec<Effect> {
    let Node::Log(_) = node else { return Vec::new() };
    let rows = rows_after(storage, *last);
    *last = rows.last().map_or(*last, |(number, _)| *number);
    rows.into_iter().map(|(_, meta)| Effect::Row(Row { node, meta })).collect()
}

pub(crate) fn last_row(node: Node, storage: &Storage) -> i64 {
    let Node::Log(_) = node else { return 0 };
    // A partition that crashed before its first flush has no tables yet.
    let row = storage.first("SELECT max(rowid) FROM envelopes", &[]).ok().flatten();
    row.map_or(0, |row| row[0].integer().unwrap_or(0))
}

/// What the sequencer recorded with this reply.
pub(crate) fn outcome_of(storage: &Storage, request: &Request, reply: &Reply) -> Option<Effect> {
    match (request, reply) {
        (Request::Decide(request), Reply::Decide(reply)) if reply.decided => {
            let statement = "SELECT first_id FROM decisions WHERE txid = ?";
            let row = storage.first(statement, &[Param::Blob(&request.txid)]).expect("a lookup")?;
            let first_id = row[0].uint8().expect("an id");
            let decision = Decision { first_id, shares: request.shares.clone() };
            Some(Effect::Decided(Txid::parse(&request.txid)?, decision))
        }
        (Request::Resolve(request), Reply::Resolve(_)) => {
            let statement = "SELECT 1 FROM tombstones WHERE txid = ?";
            storage.first(statement, &[Param::Blob(&request.txid)]).expect("a lookup")?;
            Some(Effect::Aborted(Txid::parse(&request.txid)?))
        }
        _ => None,
    }
}

/// Rows behind a row number, each with its own.
pub(crate) fn rows_after(storage: &Storage, last: i64) -> Vec<(i64, EnvelopeMeta)> {
    let mut rows = Vec::new();
    // A partition that crashed before its first flush has no tables, and no rows.
    let _ = storage.query(
        "SELECT rowid, topic, sequence_id, hash, server_ns, expiry_ns, is_commit_or_proposal
             FROM envelopes WHERE rowid > ? ORDER BY rowid",
        &[Param::Integer(last)],
        &mut |row: &[Value]| {
            let hash = message_hash::Hash::Sha256(row[3].blob()?);
            let meta = EnvelopeMeta {
                topic: Some(Topic { topic: row[1].blob()? }),
                cursor: Some(Cursor { sequence_id: row[2].uint8()? }),
                message_hash: Some(MessageHash { hash: Some(hash) }),
                server_ns: row[4].uint8()?,
                expiry_ns: row[5].uint8()?,
                is_commit_or_proposal: row[6].integer()? != 0,
            };
            rows.push((row[0].integer()?, meta));
            Ok(ControlFlow::Continue(()))
        },
    );
    rows
}
