//! What is true of identifiers and handles, and what lookups said of it (API-270, API-296, API-299).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use sealog_log::directory::{self, partition_of};
use sealog_log::{Sql, Value};
use sealog_proto::associations::IdentifierKind;
use sealog_proto::internal::{
    AssociationChange, LookupKey, LookupRequest, NewEnvelope, associate_request::Association,
};

use crate::history::{Key, key};
use crate::host::Host;
use crate::message::{Body, Message, Node, Reply, Request};

/// Kind and key of an identifier.
type Identifier = (i32, Bytes);
/// The changes that an inbox made to an identifier: where, and whether it is associated since.
type Changes = BTreeMap<u64, bool>;

/// An Ethereum address.
pub(crate) fn address(number: u8) -> LookupKey {
    LookupKey { kind: IdentifierKind::Ethereum.into(), key: format!("0x{number:040x}").into() }
}

pub(crate) fn handle(text: &str) -> LookupKey {
    LookupKey { kind: IdentifierKind::Handle.into(), key: text.to_owned().into() }
}

fn identifier(key: &LookupKey) -> Identifier {
    (key.kind, key.key.clone())
}

/// What a lookup that starts now must know: of each inbox, its newest change that the Directory has confirmed; and of a
/// handle, the inbox that an earlier lookup found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Must {
    confirmed: BTreeMap<Bytes, u64>,
    holder: Option<Bytes>,
}

#[derive(Debug, Default)]
pub(crate) struct Identifiers {
    /// What envelopes bring along, whether stored or not.
    facts: BTreeMap<Key, Option<Bytes>>,
    changes: BTreeMap<Key, Vec<AssociationChange>>,
    /// The changes of durable rows, by identifier and inbox.
    associations: BTreeMap<Identifier, BTreeMap<Bytes, Changes>>,
    /// Deliveries under way, by the names of their calls.
    deliveries: BTreeMap<u64, Vec<Association>>,
    /// The newest change that a Directory has confirmed.
    confirmed: BTreeMap<Identifier, BTreeMap<Bytes, u64>>,
    /// What lookups of handles found.
    found: BTreeMap<Bytes, Bytes>,
    pub(crate) lookups: u64,
}

impl Identifiers {
    /// A publish arrives.
    pub(crate) fn began(&mut self, envelope: &NewEnvelope) {
        self.facts.insert(key(envelope), envelope.facts.clone());
        self.changes.insert(key(envelope), envelope.changes.clone());
    }

    /// A row became durable.
    pub(crate) fn stored(&mut self, key: &Key, sequence_id: u64) {
        let inbox = inbox_of(&key.0);
        for change in self.changes.get(key).into_iter().flatten() {
            let of = self.associations.entry(identifier(change.key.as_ref().expect("a key"))).or_default();
            of.entry(inbox.clone()).or_default().insert(sequence_id, change.live);
        }
    }

    /// A message passed the gate.
    pub(crate) fn released(&mut self, message: &Message) {
        match &message.body {
            Body::Request(Request::Associate(request)) => {
                self.deliveries.insert(message.call, request.associations.clone());
            }
            Body::Reply(Some(Reply::Associate)) => {
                for association in self.deliveries.get(&message.call).into_iter().flatten() {
                    let of = self.confirmed.entry(identifier(association.key.as_ref().expect("a key")));
                    let newest = of.or_default().entry(association.inbox_id.clone()).or_default();
                    *newest = association.sequence_id.max(*newest);
                }
            }
            _ => {}
        }
    }

    /// The facts that a stored envelope was published with.
    pub(crate) fn facts(&self, key: &Key) -> Option<Bytes> {
        self.facts.get(key).cloned().flatten()
    }

    pub(crate) fn lookup_begins(&self, key: &LookupKey) -> Must {
        let confirmed = self.confirmed.get(&identifier(key)).cloned().unwrap_or_default();
        Must { confirmed, holder: self.found.get(&key.key).cloned() }
    }

    /// A lookup was answered. It may lag behind the logs, but what it says was true at some moment since `must`.
    pub(crate) fn lookup_ends(
        &mut self,
        key: &LookupKey,
        must: &Must,
        answer: Option<&Bytes>,
    ) -> Result<(), String> {
        self.lookups += 1;
        if key.kind() == IdentifierKind::Handle {
            self.found.extend(answer.map(|inbox| (key.key.clone(), inbox.clone())));
            let holds = must.holder.is_none() || answer == must.holder.as_ref();
            return require(holds, || "API-299: a handle was found, and then not any more".to_owned());
        }
        let none = BTreeMap::new();
        let inboxes = self.associations.get(&identifier(key)).unwrap_or(&none);
        // What a Directory may know of an inbox: nothing, if it confirmed nothing; or any change from there on.
        let known = |inbox: &Bytes| must.confirmed.get(inbox).copied().unwrap_or(0);
        let newest_live = |inbox: &Bytes| {
            let changes = inboxes.get(inbox)?.range(known(inbox)..);
            changes.rev().find(|(_, live)| **live).map(|(sequence_id, _)| *sequence_id)
        };
        let limit = match answer {
            None => 0,
            Some(inbox) => {
                newest_live(inbox).ok_or("API-270: found an inbox that has no such association")?
            }
        };
        let others = inboxes.iter().filter(|(inbox, _)| Some(*inbox) != answer);
        for (inbox, changes) in others {
            let may_be_below = known(inbox) == 0
                || changes.range(known(inbox)..).any(|(sequence_id, live)| !live || *sequence_id < limit);
            require(may_be_below, || "API-270: a newer association was confirmed, and not found".to_owned())?;
        }
        Ok(())
    }

    /// When all is quiet: each Directory knows the last change of each inbox, and answers with the newest that is live.
    pub(crate) fn judge(&self, hosts: &BTreeMap<Node, Host>, directories: u32) -> Result<(), String> {
        let mut expected = BTreeMap::new();
        for ((kind, key), inboxes) in &self.associations {
            let key = LookupKey { kind: *kind, key: key.clone() };
            let last = inboxes.iter().filter_map(|(inbox, changes)| Some((changes.last_key_value()?, inbox)));
            for ((sequence_id, live), inbox) in last.clone() {
                expected.insert((identifier(&key), inbox.clone()), (*sequence_id, *live));
            }
            let newest = last.filter(|((_, live), _)| **live).max().map(|(_, inbox)| inbox.clone());
            let host = &hosts[&Node::Directory(partition_of(&key, directories))];
            let request = LookupRequest { keys: vec![key] };
            let reply = directory::lookup(&host.storage, &request).map_err(|fault| fault.to_string())?;
            let found = reply.results.first().and_then(|result| result.inbox_id.clone());
            require(found == newest, || {
                let [found, newest] = [&found, &newest].map(|inbox| inbox.as_ref().and_then(|it| it.last()));
                format!("API-270: a lookup finds {found:?}, the newest live association is of {newest:?}")
            })?;
        }
        let kept: BTreeMap<_, _> = hosts.values().flat_map(associations_of).collect();
        require(kept == expected, || "API-270: what is kept is not the last change of each inbox".to_owned())
    }

    /// What lookups of handles found is what stands in the end.
    pub(crate) fn handles_stay(&self, claims: &BTreeMap<Bytes, Bytes>) -> Result<(), String> {
        let stays = self.found.iter().all(|(handle, inbox)| claims.get(handle) == Some(inbox));
        require(stays, || "API-296: a handle was found with an inbox that does not hold it".to_owned())
    }
}

/// Rows of the facts of a partition, which must be those of its stored identity updates.
pub(crate) fn facts_of(host: &Host) -> BTreeMap<(Bytes, u64), Bytes> {
    let mut facts = BTreeMap::new();
    // A partition that was never called has no tables.
    let _ = host.storage.query("SELECT topic, sequence_id, facts FROM facts", &[], &mut |row: &[Value]| {
        facts.insert((row[0].blob()?, row[1].uint8()?), row[2].blob()?);
        Ok(ControlFlow::Continue(()))
    });
    facts
}

/// The inbox whose identity log a topic is.
pub(crate) fn inbox_of(topic: &Bytes) -> Bytes {
    topic.slice(1..)
}

/// What a Directory keeps of each identifier and inbox: the last change, where it ended too.
fn associations_of(host: &Host) -> BTreeMap<(Identifier, Bytes), (u64, bool)> {
    let mut kept = BTreeMap::new();
    let statement = "SELECT kind, key, inbox_id, sequence_id, live FROM associations";
    // A Directory that was never called has no tables.
    let _ = host.storage.query(statement, &[], &mut |row: &[Value]| {
        let kind = i32::try_from(row[0].integer()?).expect("a kind");
        let change = (row[3].uint8()?, row[4].integer()? != 0);
        kept.insert(((kind, row[1].blob()?), row[2].blob()?), change);
        Ok(ControlFlow::Continue(()))
    });
    kept
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
