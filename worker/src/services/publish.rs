//! `PublishService/Publish` (contract section 3).

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use sealog_admission::{Admitted, Publish, PublishRefusal, identity::IdentityRejection, read_publish};
use sealog_log::{coordinator::Part, directory, participant};
use sealog_objects::Published;
use sealog_proto::{
    backend::EnvelopeMeta,
    internal::{Claim, NewEnvelope, Participant},
    status::{Code, PublishFailure},
};

use crate::{
    admit::{self, Claiming, Extra, Verdicts},
    config::{Config, Retention},
    deadline::within,
    deployment::Deployment,
    error::Status,
    transport::answer::Answer,
};

/// The wire twin of `xmtp.backend.v1.PublishResponse`: entries are encoded once, however often they are repeated.
#[derive(Clone, PartialEq, Message)]
struct RawPublishResponse {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    envelope_metas: Vec<Bytes>,
}

pub(super) async fn serve(deployment: &Deployment, message: Bytes) -> Result<Answer, Status> {
    let config = &deployment.config;
    let (publish, verdicts) = match read_publish(message, &config.limits.publish) {
        Ok(publish) => (publish, Verdicts::default()),
        // Envelopes below may fail the deeper checks, and the lowest failure is the one to tell (API-223).
        Err(PublishRefusal::Invalid { failure, below }) if failure.index.is_some() => {
            (below, Verdicts::with(failure))
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let limit = Some(config.max_publish_duration);
    let slots = publish.slots.clone();
    let metas = within(limit, commit(deployment, publish, verdicts)).await?;
    answer(&metas, &slots, config.limits.publish.max_response_bytes)
}

/// Judges and stores distinct envelopes, all or none, and gives the metadata of each, in their order (API-220).
async fn commit(
    deployment: &Deployment,
    publish: Publish,
    mut verdicts: Verdicts,
) -> Result<Vec<EnvelopeMeta>, Status> {
    let extras = admit::check(deployment, &publish, &mut verdicts).await;
    verdicts.finish()?;
    if publish.envelopes.is_empty() {
        return Ok(Vec::new());
    }
    let config = &deployment.config;
    let Spread { parts, places, claims } = Spread::of(publish, extras, config);
    match deployment.store.publish(parts, config.max_publish_duration).await? {
        Published::Stored(metas) => gather(&metas, &places),
        Published::Taken => Err(taken(deployment, &claims).await?),
        refused => Err(Status::refused(&refused)),
    }
}

/// Which of the claims lost, now that another inbox was faster.
async fn taken(deployment: &Deployment, claims: &[Claiming]) -> Result<Status, Status> {
    let Some(index) = admit::lowest_taken(deployment, claims).await? else {
        return Err(Status::new(Code::Unavailable, "a handle was held for a moment: repeat the request"));
    };
    let rejection = IdentityRejection::HandleTaken;
    let failure =
        PublishFailure { index: Some(index), reason: rejection.reason(), message: rejection.to_string() };
    Ok(failure.into())
}

/// The envelopes of a publish, sorted by who keeps them.
#[derive(Default)]
struct Spread {
    /// One per participant: log partitions, and the Directories of claimed handles.
    parts: Vec<Part>,
    /// For each envelope its part and its place there.
    places: Vec<(usize, usize)>,
    /// Every claim.
    claims: Vec<Claiming>,
}

impl Spread {
    fn of(publish: Publish, extras: Vec<Extra>, config: &Config) -> Self {
        let mut this = Self::default();
        let mut part_of = BTreeMap::new();
        let indexed = publish.first_indexes.into_iter().zip(publish.envelopes);
        for ((index, envelope), extra) in indexed.zip(extras) {
            if let Some(handle) = &extra.handle {
                let inbox_id = Bytes::copy_from_slice(envelope.topic.identifier());
                let claiming = Claiming { index, handle: handle.clone(), inbox_id };
                this.claim(&mut part_of, claiming, config.directory_partitions);
            }
            let partition = envelope.topic.partition(config.log_partitions);
            let part = this.part(&mut part_of, participant::log(partition));
            this.places.push((part, this.parts[part].envelopes.len()));
            this.parts[part].envelopes.push(new_envelope(envelope, extra, config.retention));
        }
        this
    }

    fn claim(&mut self, part_of: &mut PartOf, claiming: Claiming, directories: u32) {
        let Claiming { handle, inbox_id, .. } = &claiming;
        let directory = directory::partition_of(&admit::handle_key(handle), directories);
        let part = self.part(part_of, participant::directory(directory));
        self.parts[part].claims.push(Claim { handle: handle.clone(), inbox_id: inbox_id.clone() });
        self.claims.push(claiming);
    }

    fn part(&mut self, part_of: &mut PartOf, participant: Participant) -> usize {
        *part_of.entry((participant.kind, participant.index)).or_insert_with(|| {
            self.parts.push(Part { participant, envelopes: Vec::new(), claims: Vec::new() });
            self.parts.len() - 1
        })
    }
}

/// Participants, by kind and index, and their parts.
type PartOf = BTreeMap<(i32, u32), usize>;

fn new_envelope(envelope: Admitted, extra: Extra, retention: Retention) -> NewEnvelope {
    let Admitted { topic, canonical, is_commit_or_proposal, .. } = envelope;
    NewEnvelope {
        topic: topic.as_bytes().clone(),
        hash: Bytes::copy_from_slice(&canonical.hash),
        body: canonical.body,
        is_commit_or_proposal,
        retention_seconds: retention.seconds(topic.kind(), is_commit_or_proposal),
        expected_head: extra.expected_head,
        facts: extra.facts,
        changes: extra.changes,
    }
}

/// The metadata of the stored envelopes in their own order.
fn gather(metas: &[Vec<EnvelopeMeta>], places: &[(usize, usize)]) -> Result<Vec<EnvelopeMeta>, Status> {
    let meta = |&(part, place): &(usize, usize)| metas.get(part)?.get(place).cloned();
    places.iter().map(meta).collect::<Option<_>>().ok_or_else(|| {
        Status::new(
            Code::Internal,
            "a log partition answered against its rules; the request may have taken effect",
        )
    })
}

/// One entry for each envelope of the request (API-221).
fn answer(metas: &[EnvelopeMeta], slots: &[u32], limit: usize) -> Result<Answer, Status> {
    let encoded: Vec<Bytes> = metas.iter().map(|meta| meta.encode_to_vec().into()).collect();
    let envelope_metas = slots.iter().map(|&slot| encoded[slot as usize].clone()).collect();
    Answer::success(&RawPublishResponse { envelope_metas }, limit)
}

#[cfg(test)]
mod tests {
    use sealog_proto::{
        Kind, Topic,
        backend::{Cursor, PublishResponse},
        canonical::Canonical,
    };

    use super::*;
    use crate::{config::Config, transport::metadata::Mode};

    fn admitted(kind: Kind, id: u8) -> Admitted {
        Admitted {
            topic: Topic::derive(kind, &vec![id; kind.identifier_len()]).unwrap(),
            canonical: Canonical { body: Bytes::from_static(b"body"), hash: [id; 32] },
            is_commit_or_proposal: false,
        }
    }

    fn publish(envelopes: Vec<Admitted>) -> Publish {
        let indexes: Vec<u32> = (0..).take(envelopes.len()).collect();
        Publish { envelopes, slots: indexes.clone(), first_indexes: indexes }
    }

    fn spread(envelopes: Vec<Admitted>, config: &Config) -> Spread {
        let extras = vec![Extra::default(); envelopes.len()];
        Spread::of(publish(envelopes), extras, config)
    }

    fn meta(id: u64) -> EnvelopeMeta {
        EnvelopeMeta { cursor: Some(Cursor { sequence_id: id }), server_ns: 7, ..Default::default() }
    }

    #[test]
    fn api_221_each_envelope_has_its_entry_at_its_index() {
        let answer = answer(&[meta(4), meta(5)], &[1, 0, 1, 1], 1_000).unwrap().into_body(Mode::Binary);
        let length = u32::from_be_bytes(answer[1..5].try_into().unwrap()) as usize;
        let response = PublishResponse::decode(&answer[5..5 + length]).unwrap();
        assert_eq!(response.envelope_metas, [meta(5), meta(4), meta(5), meta(5)]);
    }

    #[test]
    fn api_282_a_response_over_the_limit_fails_whole() {
        let one = PublishResponse { envelope_metas: vec![meta(4)] }.encoded_len();
        assert!(answer(&[meta(4)], &[0, 0], 2 * one).is_ok());
        assert_eq!(answer(&[meta(4)], &[0, 0], 2 * one - 1).unwrap_err().code, Code::OutOfRange);
    }

    fn config(partitions: &str) -> Config {
        let settings = [("LOG_PARTITIONS", partitions), ("RETENTION_WELCOME_SECONDS", "60")];
        Config::read(settings.map(|(name, value)| (name.to_owned(), value.to_owned()))).unwrap()
    }

    #[test]
    fn a_group_and_its_commit_log_are_one_part_and_many_groups_are_spread() {
        let group = vec![admitted(Kind::GroupMessage, 1), admitted(Kind::CommitLog, 1)];
        assert_eq!(spread(group, &config("256")).parts.len(), 1);
        let many = |partitions| {
            let envelopes = (0..50).map(|id| admitted(Kind::GroupMessage, id)).collect();
            spread(envelopes, &config(partitions))
        };
        assert_eq!(many("1").parts.len(), 1);
        let Spread { parts, places, .. } = many("8");
        assert_eq!(parts.len(), 8);
        for (id, (part, place)) in (0..50).zip(places) {
            assert_eq!(
                parts[part].envelopes[place].hash,
                [id; 32].as_slice(),
                "every envelope is where its place says"
            );
        }
    }

    #[test]
    fn api_296_a_claim_is_staged_at_the_directory_of_its_handle() {
        let envelopes = vec![admitted(Kind::IdentityUpdate, 1), admitted(Kind::IdentityUpdate, 2)];
        let claiming = |handle: &str| Extra { handle: Some(handle.to_owned()), ..Extra::default() };
        let spread = Spread::of(publish(envelopes), vec![claiming("alice"), Extra::default()], &config("1"));
        assert_eq!(spread.places, [(1, 0), (1, 1)]);
        let claim = Claim { handle: "alice".to_owned(), inbox_id: vec![1; 32].into() };
        assert_eq!(spread.parts[0].participant, participant::directory(0));
        assert_eq!(spread.parts[0].claims, [claim]);
        assert_eq!(spread.claims.len(), 1);
    }

    #[test]
    fn api_221_metadata_returns_to_the_order_of_the_envelopes() {
        let stored = vec![vec![meta(1), meta(2)], vec![meta(3)]];
        let gathered = gather(&stored, &[(1, 0), (0, 0), (0, 1)]).unwrap();
        assert_eq!(gathered, [meta(3), meta(1), meta(2)]);
        assert_eq!(gather(&stored, &[(1, 1)]).unwrap_err().code, Code::Internal);
    }

    #[test]
    fn api_212_each_kind_takes_its_retention_along() {
        let retention = config("1").retention;
        let welcome = new_envelope(admitted(Kind::Welcome, 1), Extra::default(), retention);
        assert_eq!(welcome.retention_seconds, 60);
        assert_eq!(welcome.hash, [1; 32].as_slice());
        let mut commit = admitted(Kind::GroupMessage, 1);
        commit.is_commit_or_proposal = true;
        let commit = new_envelope(commit, Extra::default(), retention);
        assert_eq!((commit.retention_seconds, commit.is_commit_or_proposal), (0, true));
    }
}
