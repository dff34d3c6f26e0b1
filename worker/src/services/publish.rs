//! `PublishService/Publish` (contract section 3).

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use sealog_admission::{Admitted, read_publish};
use sealog_objects::Published;
use sealog_proto::{backend::EnvelopeMeta, internal::NewEnvelope, status::Code};

use crate::{
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
    let publish = read_publish(message, &config.limits.publish)?;
    let metas = within(Some(config.max_publish_duration), commit(deployment, publish.envelopes)).await?;
    answer(&metas, &publish.slots, config.limits.publish.max_response_bytes)
}

/// Stores distinct envelopes, all or none, and gives the metadata of each, in their order (API-220).
async fn commit(deployment: &Deployment, envelopes: Vec<Admitted>) -> Result<Vec<EnvelopeMeta>, Status> {
    let config = &deployment.config;
    if envelopes.is_empty() {
        return Ok(Vec::new());
    }
    let (parts, places) = spread(envelopes, config);
    let published = deployment.store.publish(parts, config.max_publish_duration).await?;
    gather(published, &places)
}

/// The envelopes of each partition, and for each envelope its part and its place there.
type Spread = (Vec<(u32, Vec<NewEnvelope>)>, Vec<(usize, usize)>);

/// Sorts envelopes by the partition that keeps their topic.
fn spread(envelopes: Vec<Admitted>, config: &Config) -> Spread {
    let mut parts: Vec<(u32, Vec<NewEnvelope>)> = Vec::new();
    let mut part_of = BTreeMap::new();
    let mut places = Vec::with_capacity(envelopes.len());
    for envelope in envelopes {
        let partition = envelope.topic.partition(config.log_partitions);
        let part = *part_of.entry(partition).or_insert_with(|| {
            parts.push((partition, Vec::new()));
            parts.len() - 1
        });
        places.push((part, parts[part].1.len()));
        parts[part].1.push(new_envelope(envelope, config.retention));
    }
    (parts, places)
}

fn new_envelope(envelope: Admitted, retention: Retention) -> NewEnvelope {
    let Admitted { topic, canonical, is_commit_or_proposal } = envelope;
    NewEnvelope {
        topic: topic.as_bytes().clone(),
        hash: Bytes::copy_from_slice(&canonical.hash),
        body: canonical.body,
        is_commit_or_proposal,
        retention_seconds: retention.seconds(topic.kind(), is_commit_or_proposal),
        ..NewEnvelope::default()
    }
}

/// The metadata of the stored envelopes in their own order, unless the publish was refused.
fn gather(published: Published, places: &[(usize, usize)]) -> Result<Vec<EnvelopeMeta>, Status> {
    let metas = match published {
        Published::Stored(metas) => metas,
        refused => return Err(Status::refused(&refused)),
    };
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
        assert_eq!(spread(group, &config("256")).0.len(), 1);
        let many = |partitions| {
            let envelopes = (0..50).map(|id| admitted(Kind::GroupMessage, id)).collect();
            spread(envelopes, &config(partitions))
        };
        assert_eq!(many("1").0.len(), 1);
        let (parts, places) = many("8");
        assert_eq!(parts.len(), 8);
        for (id, (part, place)) in (0..50).zip(places) {
            assert_eq!(
                parts[part].1[place].hash,
                [id; 32].as_slice(),
                "every envelope is where its place says"
            );
        }
    }

    #[test]
    fn api_221_metadata_returns_to_the_order_of_the_envelopes() {
        let stored = Published::Stored(vec![vec![meta(1), meta(2)], vec![meta(3)]]);
        let gathered = gather(stored.clone(), &[(1, 0), (0, 0), (0, 1)]).unwrap();
        assert_eq!(gathered, [meta(3), meta(1), meta(2)]);
        assert_eq!(gather(stored, &[(1, 1)]).unwrap_err().code, Code::Internal);
    }

    #[test]
    fn api_212_each_kind_takes_its_retention_along() {
        let retention = config("1").retention;
        let welcome = new_envelope(admitted(Kind::Welcome, 1), retention);
        assert_eq!(welcome.retention_seconds, 60);
        assert_eq!(welcome.hash, [1; 32].as_slice());
        let mut commit = admitted(Kind::GroupMessage, 1);
        commit.is_commit_or_proposal = true;
        let commit = new_envelope(commit, retention);
        assert_eq!((commit.retention_seconds, commit.is_commit_or_proposal), (0, true));
    }

    #[test]
    fn api_281_a_refusal_has_its_code() {
        for (refusal, code) in [
            (Published::HeadMoved, Code::Aborted),
            (Published::Taken, Code::InvalidArgument),
            (Published::Busy, Code::Unavailable),
        ] {
            assert_eq!(gather(refusal, &[]).unwrap_err().code, code);
        }
    }
}
