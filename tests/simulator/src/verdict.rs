//! The last judgement: what must hold when all is quiet.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use bytes::Bytes;
use sealog_log::{Nanos, Param, Sql, Txid};
use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::Participant;

use crate::history::{History, Key, key_of, rows_after};
use crate::host::Host;
use crate::identifiers::facts_of;
use crate::message::{Node, id};

type Hosts = BTreeMap<Node, Host>;
type Verdict = Result<(), String>;

/// Holds a finished run to everything that it promised.
pub(crate) fn judge(history: &History, hosts: &Hosts, directories: u32) -> Verdict {
    rows_are_for_ever(history, hosts)?;
    time_rises_with_ids(history)?;
    reads_are_prefixes(history)?;
    publishes_are_whole(history, hosts)?;
    heads_were_as_wanted(history)?;
    taken_is_taken(history, hosts)?;
    facts_are_kept(history, hosts)?;
    history.identifiers.judge(hosts, directories)?;
    history.identifiers.handles_stay(&claims(hosts))?;
    decisions(history, hosts)
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

/// API-288, API-224: what was durable once is there, unchanged.
fn rows_are_for_ever(history: &History, hosts: &Hosts) -> Verdict {
    let mut found = 0;
    for (node, host) in hosts.iter().filter(|(node, _)| matches!(node, Node::Log(_))) {
        for (_, meta) in rows_after(&host.storage, 0) {
            let same = history.rows.get(&id(&meta)).is_some_and(|row| row.node == *node && row.meta == meta);
            require(same, || format!("API-288: the row at {} has changed", id(&meta)))?;
            found += 1;
        }
    }
    require(found == history.rows.len(), || "API-288: a durable row is gone".to_owned())
}

/// API-212: `server_ns` never falls as ids grow.
fn time_rises_with_ids(history: &History) -> Verdict {
    let rises = history.rows.values().is_sorted_by_key(|row| row.meta.server_ns);
    require(rises, || "server_ns falls while ids grow".to_owned())
}

/// API-201: each read is a prefix of what the topic became.
fn reads_are_prefixes(history: &History) -> Verdict {
    let mut topics: BTreeMap<Bytes, Vec<&EnvelopeMeta>> = BTreeMap::new();
    for row in history.rows.values() {
        topics.entry(key_of(&row.meta).0).or_default().push(&row.meta);
    }
    for read in &history.snapshots {
        let all = topics.get(&read.topic).map_or(&[][..], Vec::as_slice);
        let above = all.iter().copied().filter(|meta| id(meta) > read.after);
        let prefix = above.take(read.metas.len()).eq(read.metas.iter());
        require(prefix, || {
            let seen: Vec<u64> = read.metas.iter().map(id).collect();
            format!("API-201: a read after {} returned {seen:?}, which is no prefix", read.after)
        })?;
    }
    Ok(())
}

/// API-220, API-296: whatever is stored is part of a publish that is stored as a whole, with its claims.
fn publishes_are_whole(history: &History, hosts: &Hosts) -> Verdict {
    let claims = claims(hosts);
    let mut whole: BTreeSet<&Key> = BTreeSet::new();
    let mut claimed = BTreeSet::new();
    for (keys, wanted) in &history.publishes {
        if !history.is_stored(keys) {
            continue;
        }
        whole.extend(keys);
        for claim in wanted {
            let held = claims.get(claim.handle.as_bytes()) == Some(&claim.inbox_id);
            require(held, || format!("API-296: an update is stored, its claim of {} is not", claim.handle))?;
            claimed.insert(claim.handle.as_bytes());
        }
    }
    let half = history.ids.iter().find(|(key, _)| !whole.contains(key));
    require(half.is_none(), || format!("API-220: {:?} is stored without the rest", half.map(|it| it.1)))?;
    let stray = claims.keys().find(|handle| !claimed.contains(handle.as_ref()));
    require(stray.is_none(), || "API-296: a claim is stored, its update is not".to_owned())
}

/// Handles and the inboxes that hold them.
pub(crate) fn claims(hosts: &Hosts) -> BTreeMap<Bytes, Bytes> {
    let mut claims = BTreeMap::new();
    for host in hosts.iter().filter(|(node, _)| matches!(node, Node::Directory(_))).map(|(_, host)| host) {
        // A Directory that was never called has no tables.
        let _ = host.storage.query("SELECT handle, inbox_id FROM claims", &[], &mut |row| {
            claims.insert(row[0].blob()?, row[1].blob()?);
            Ok(ControlFlow::Continue(()))
        });
    }
    claims
}

/// API-296: "taken" is final, so another inbox must hold one of the handles for good.
fn taken_is_taken(history: &History, hosts: &Hosts) -> Verdict {
    let claims = claims(hosts);
    let held = history.taken.iter().all(|wanted| {
        wanted
            .iter()
            .any(|claim| claims.get(claim.handle.as_bytes()).is_some_and(|inbox| *inbox != claim.inbox_id))
    });
    require(held, || "API-296: told taken, and nobody else holds a handle".to_owned())
}

/// Each stored identity update has the facts that it was published with, and nothing else has any.
fn facts_are_kept(history: &History, hosts: &Hosts) -> Verdict {
    let kept: BTreeMap<(Bytes, u64), Bytes> = hosts.values().flat_map(facts_of).collect();
    let published = history
        .ids
        .iter()
        .filter_map(|(key, number)| Some(((key.0.clone(), *number), history.identifiers.facts(key)?)));
    let published: BTreeMap<(Bytes, u64), Bytes> = published.collect();
    require(kept == published, || "the facts kept are not those of the stored updates".to_owned())
}

/// API-232: each stored identity update found the head on which its publisher wanted it.
fn heads_were_as_wanted(history: &History) -> Verdict {
    let mut heads: BTreeMap<Bytes, u64> = BTreeMap::new();
    for (number, row) in &history.rows {
        let key = key_of(&row.meta);
        let before = heads.insert(key.0.clone(), *number).unwrap_or(0);
        let wanted = history.wanted.get(&key);
        let holds = wanted.is_none_or(|wanted| wanted.contains(&None) || wanted.contains(&Some(before)));
        require(holds, || format!("API-232: {number} stored on head {before}, which nobody wanted"))?;
    }
    Ok(())
}

/// Decided: applied at every participant. Aborted: applied nowhere.
fn decisions(history: &History, hosts: &Hosts) -> Verdict {
    for (txid, decision) in &history.decided {
        let count: u64 = decision.shares.iter().map(|share| u64::from(share.count)).sum();
        let all =
            (decision.first_id..decision.first_id + count).all(|number| history.rows.contains_key(&number));
        require(all, || format!("API-220: decided at {}, not applied everywhere", decision.first_id))?;
        stands(
            txid,
            &decision.shares.iter().filter_map(|share| share.participant).collect::<Vec<_>>(),
            hosts,
        )?;
    }
    let applied =
        history.aborted.iter().find(|txid| hosts.values().any(|host| outcome(host, txid) == Some(1)));
    require(applied.is_none(), || "API-220: an aborted transaction was applied".to_owned())
}

/// A decided transaction is staged or applied at every participant.
pub(crate) fn stands(txid: &Txid, participants: &[Participant], hosts: &Hosts) -> Verdict {
    for participant in participants {
        let outcome = hosts.get(&Node::of(*participant)).and_then(|host| outcome(host, txid));
        // No row at all: its time has passed, and with it the memory of it.
        require(outcome != Some(2), || format!("API-220: decided, and aborted at {participant:?}"))?;
    }
    Ok(())
}

/// The outcome that a participant keeps of a transaction.
fn outcome(host: &Host, txid: &Txid) -> Option<i64> {
    let statement = "SELECT outcome FROM transactions WHERE txid = ?";
    let row = host.storage.first(statement, &[Param::Blob(txid.as_bytes())]).ok().flatten()?;
    row[0].integer().ok()
}

/// What still waits anywhere, if anything does.
pub(crate) fn unrest(history: &History, hosts: &Hosts) -> Option<String> {
    for (node, host) in hosts {
        if !host.is_idle() {
            return Some(format!("{node:?} has not answered everybody"));
        }
        let (staged, unfinished) = match node {
            Node::Sequencer => (0, count(host, "SELECT count(*) FROM decisions WHERE finished = 0")),
            _ => (count(host, "SELECT count(*) FROM transactions WHERE outcome = 0"), 0),
        };
        let owed = count(host, "SELECT count(*) FROM outbox");
        if owed > 0 {
            return Some(format!("{node:?} owes {owed} deliveries"));
        }
        if staged > 0 {
            return Some(format!("{node:?} still holds {staged} staged transactions"));
        }
        if unfinished > 0 {
            return Some(format!("{unfinished} transactions are not finished"));
        }
    }
    let newest = history.rows.keys().next_back().copied().unwrap_or(0);
    (history.told < newest).then(|| format!("the boundary is {}, the newest id {newest}", history.told))
}

/// When the oldest staged copy of a participant was staged, by its clock.
pub(crate) fn oldest_staged(host: &Host) -> Option<Nanos> {
    let statement = "SELECT min(since) FROM transactions WHERE outcome = 0";
    let row = host.storage.first(statement, &[]).ok().flatten()?;
    row[0].uint8().ok()
}

fn count(host: &Host, statement: &str) -> i64 {
    // An object that was never called has no tables, and nothing in them.
    let row = host.storage.first(statement, &[]).ok().flatten();
    row.map_or(0, |row| row[0].integer().unwrap_or(0))
}
