//! A whole publish, from its wire bytes.
//!
//! The request is never decoded as one message: a 25 MiB request may hold millions of envelopes, and each costs far
//! more in memory than on the wire. Envelopes are decoded one at a time and forgotten, apart from what is stored.
//!
//! # Order of verdicts
//! 1. The bytes do not decode as a `PublishRequest`: `MALFORMED_PAYLOAD`, no index.
//! 2. The re-encoded request is over `max_request_bytes`: `TOO_LARGE`, no index.
//! 3. More than `max_publish_topics` distinct topics: `TOO_LARGE`, no index.
//! 4. The lowest failing index, with its reason.
//! 5. The response could not be carried ([`PublishRefusal::ResponseTooLong`]). Once that is certain, a second update
//!    of an inbox (API-233) is not looked for any more: that needs the hashes, and nothing is kept.
//!
//! The bounds of the whole request come before single envelopes: a client that drops the one bad envelope that it
//! was told of, and meets the bound only then, has been told the lesser half.
//!
//! # The caller's share of verdict 4
//! What is read here needs no clock, no history and no chain. The checks that do (key packages, identity updates)
//! are the caller's, and each of them can fail at a lower index than the one that failed here. So a failure comes
//! with the envelopes below it: when one of those fails, its index is the answer (API-223), and when the check of
//! one has no outcome, it is still certain that the request is refused. [`Publish::first_indexes`] has the number to name.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::{Message, length_delimiter_len};
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::backend::{ClientEnvelope, client_envelope::Payload};
use sealog_proto::canonical::{Canonical, Hash};
use sealog_proto::status::PublishFailure;
use sealog_proto::{Kind, Topic, wire};

use crate::{Admitted, Rejection, Route, identity, route};

/// Field numbers of the messages that are walked here.
mod field {
    pub(super) const REQUEST_ENVELOPES: u32 = 1;
    pub(super) const ENVELOPE_PAYLOADS: std::ops::RangeInclusive<u32> = 1..=5;
    pub(super) const ENVELOPE_IDENTITY_UPDATE: u32 = 4;
    pub(super) const UPDATE_ACTIONS: u32 = 1;
}

/// The bounds of a publish (contract section 7). The default is the published default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishLimits {
    /// Bytes of one envelope, re-encoded.
    pub max_envelope_bytes: usize,
    /// Bytes of the whole request, re-encoded.
    pub max_request_bytes: usize,
    /// Bytes of the encoded response.
    pub max_response_bytes: usize,
    /// Distinct topics.
    pub max_publish_topics: usize,
    /// Actions of one identity update. Each needs a signature at least, so this is `MAX_SIGNATURES_PER_UPDATE`.
    pub max_update_actions: usize,
    /// `erc_6492` signatures of one identity update.
    pub max_wallet_signatures: usize,
}

impl Default for PublishLimits {
    fn default() -> Self {
        Self {
            max_envelope_bytes: 1 << 20,
            max_request_bytes: 25 << 20,
            max_response_bytes: 25 << 20,
            max_publish_topics: 1_000,
            max_update_actions: 1_000,
            max_wallet_signatures: 100,
        }
    }
}

/// Envelopes that may be stored, as far as can be said without a clock, a history or a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// Distinct envelopes (API-222), in order of their first occurrence.
    pub envelopes: Vec<Admitted>,
    /// For each envelope of the request, its place in `envelopes` (API-221).
    pub slots: Vec<u32>,
    /// For each of `envelopes`, its first index in the request, which a failure of it names (API-223). Ascending.
    pub first_indexes: Vec<u32>,
}

/// Why a publish is refused before anything is asked of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishRefusal {
    /// `INVALID_ARGUMENT`, with this detail.
    Invalid {
        /// What is at fault.
        failure: PublishFailure,
        /// The envelopes below `failure.index`, all of which passed here: one that fails a later check has the lower
        /// index. Empty when the whole request is at fault, and cut off where [`Self::ResponseTooLong`] was certain.
        below: Publish,
    },
    /// `OUT_OF_RANGE`: the response, one `EnvelopeMeta` per envelope, is over `max_response_bytes` however the store
    /// answers. Refused before it is stored, which API-290 lets a client find out.
    ResponseTooLong,
}

/// Reads and admits a `PublishRequest` from its wire bytes.
pub fn read_publish(wire: Bytes, limits: &PublishLimits) -> Result<Publish, PublishRefusal> {
    let mut reading = Reading::new(limits);
    for field in wire::fields(wire) {
        let field = field.map_err(|_| undecodable())?;
        if field.number == field::REQUEST_ENVELOPES {
            reading.envelope(&field.bytes.ok_or_else(undecodable)?)?;
        }
    }
    reading.finish()
}

/// What is known after some envelopes of the request.
struct Reading<'a> {
    limits: &'a PublishLimits,
    /// Index of the next envelope.
    index: u32,
    /// Bytes of the request so far, re-encoded.
    request_len: usize,
    /// Bytes that the response has at least.
    response_len: usize,
    topics: BTreeSet<Topic>,
    /// A hash covers the topic too: the topic is derived from the hashed bytes.
    by_hash: BTreeMap<Hash, u32>,
    publish: Publish,
    /// The first, and so the lowest, failing envelope.
    failure: Option<PublishFailure>,
}

impl<'a> Reading<'a> {
    fn new(limits: &'a PublishLimits) -> Self {
        Self {
            limits,
            index: 0,
            request_len: 0,
            response_len: 0,
            topics: BTreeSet::new(),
            by_hash: BTreeMap::new(),
            publish: Publish::default(),
            failure: None,
        }
    }

    /// Takes the next envelope. An error is one that no later envelope can change.
    fn envelope(&mut self, wire: &Bytes) -> Result<(), PublishRefusal> {
        let verdict = if count_actions(wire) > self.limits.max_update_actions {
            // Not decoded, so that its length re-encoded is not known: its wire length stands in.
            self.add_len(wire.len());
            Err(Rejection::TooManyActions { max: self.limits.max_update_actions })
        } else {
            let envelope = ClientEnvelope::decode(wire.clone()).map_err(|_| undecodable())?;
            self.add_len(envelope.encoded_len());
            self.judge(&envelope, wire)
        };
        if let Err(rejection) = verdict {
            self.failure.get_or_insert_with(|| PublishFailure {
                index: Some(self.index),
                reason: rejection.reason(),
                message: rejection.to_string(),
            });
        }
        self.index += 1;
        Ok(())
    }

    fn add_len(&mut self, envelope: usize) {
        self.request_len += 1 + length_delimiter_len(envelope) + envelope;
    }

    fn judge(&mut self, envelope: &ClientEnvelope, wire: &Bytes) -> Result<(), Rejection> {
        let (actual, max) = (envelope.encoded_len(), self.limits.max_envelope_bytes);
        if actual > max {
            return Err(Rejection::EnvelopeTooLong { actual, max });
        }
        let Route { topic, is_commit_or_proposal } = route(envelope)?;
        if let Some(Payload::IdentityUpdate(update)) = &envelope.payload {
            identity::check_wallet_signatures(update, self.limits.max_wallet_signatures)?;
        }
        self.response_len += min_meta_len(&topic);
        let (topic, is_new_topic) = self.intern(topic);
        if self.is_refused() {
            // Nothing will be stored: spare the hash and the memory.
            return Ok(());
        }
        let mut canonical = Canonical::of(envelope);
        if let Some(&slot) = self.by_hash.get(&canonical.hash) {
            self.publish.slots.push(slot);
            return Ok(());
        }
        if topic.kind() == Kind::IdentityUpdate && !is_new_topic {
            return Err(Rejection::SecondUpdateOfInbox);
        }
        if canonical.body == *wire {
            // The common case. Share the request's buffer, so that its payloads are not held twice.
            canonical.body = wire.clone();
        }
        let slot = u32::try_from(self.publish.envelopes.len()).expect("bounded by the length of a request");
        self.by_hash.insert(canonical.hash, slot);
        self.publish.slots.push(slot);
        self.publish.first_indexes.push(self.index);
        self.publish.envelopes.push(Admitted { topic, canonical, is_commit_or_proposal });
        Ok(())
    }

    /// One copy of each topic, and whether this is its first occurrence. Keeps one topic over the bound, no more.
    fn intern(&mut self, topic: Topic) -> (Topic, bool) {
        if let Some(known) = self.topics.get(&topic) {
            return (known.clone(), false);
        }
        if self.topics.len() <= self.limits.max_publish_topics {
            self.topics.insert(topic.clone());
        }
        (topic, true)
    }

    /// Whether the request is refused whatever follows.
    fn is_refused(&self) -> bool {
        self.failure.is_some()
            || self.request_len > self.limits.max_request_bytes
            || self.topics.len() > self.limits.max_publish_topics
            || self.response_len > self.limits.max_response_bytes
    }

    fn finish(self) -> Result<Publish, PublishRefusal> {
        let PublishLimits { max_request_bytes, max_publish_topics, max_response_bytes, .. } = *self.limits;
        if self.request_len > max_request_bytes {
            return Err(whole_request(
                Reason::TooLarge,
                format!(
                    "the request has {} bytes re-encoded: at most {max_request_bytes} are accepted; split it",
                    self.request_len
                ),
            ));
        }
        if self.topics.len() > max_publish_topics {
            return Err(whole_request(
                Reason::TooLarge,
                format!("the request names more than {max_publish_topics} topics: split it"),
            ));
        }
        if let Some(failure) = self.failure {
            return Err(PublishRefusal::Invalid { failure, below: self.publish });
        }
        if self.response_len > max_response_bytes {
            return Err(PublishRefusal::ResponseTooLong);
        }
        Ok(self.publish)
    }
}

/// The actions of the identity update that the bytes would decode to. Fields of one update may come in several
/// pieces, and another payload behind it takes its place: `prost` reads `oneof` so.
fn count_actions(envelope: &Bytes) -> usize {
    wire::fields(envelope.clone()).map_while(Result::ok).fold(0, |actions, field| match field.bytes {
        Some(update) if field.number == field::ENVELOPE_IDENTITY_UPDATE => {
            actions + wire::count_repeated(&update, field::UPDATE_ACTIONS)
        }
        _ if field::ENVELOPE_PAYLOADS.contains(&field.number) => 0,
        _ => actions,
    })
}

/// Bytes that an `EnvelopeMeta` takes in a response at least: its own key and length, a cursor of 1, a hash and the
/// topic, with no time.
fn min_meta_len(topic: &Topic) -> usize {
    const KEY_AND_LEN: usize = 2;
    let cursor = KEY_AND_LEN + 2;
    let hash = KEY_AND_LEN + KEY_AND_LEN + size_of::<Hash>();
    let topic = KEY_AND_LEN + KEY_AND_LEN + topic.as_bytes().len();
    KEY_AND_LEN + cursor + hash + topic
}

fn undecodable() -> PublishRefusal {
    whole_request(
        Reason::MalformedPayload,
        "the bytes are no PublishRequest: send one encoded protobuf message".to_owned(),
    )
}

fn whole_request(reason: Reason, message: String) -> PublishRefusal {
    let failure = PublishFailure { index: None, reason, message };
    PublishRefusal::Invalid { failure, below: Publish::default() }
}
