//! `PublishService/Publish` (contract section 3).

use bytes::Bytes;
use prost::Message;
use sealog_admission::{Admitted, read_publish};
use sealog_proto::{
    backend::EnvelopeMeta,
    internal::{NewEnvelope, StoreReply, StoreRequest, store_reply::Refusal},
    status::Code,
};

use crate::{
    config::Retention, deadline::within, deployment::Deployment, error::Status, transport::answer::Answer,
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
    let Some(partition) = only_partition(&envelopes, config.log_partitions)? else { return Ok(Vec::new()) };
    let count = envelopes.len();
    let envelopes = envelopes.into_iter().map(|envelope| new_envelope(envelope, config.retention)).collect();
    let reply = deployment.store.store(partition, StoreRequest { envelopes }).await?;
    metas(reply, count)
}

/// The partition of all the envelopes; none when there are none. A publish over several is refused: nothing commits
/// them as one yet.
fn only_partition(envelopes: &[Admitted], partitions: u32) -> Result<Option<u32>, Status> {
    let mut needed = envelopes.iter().map(|envelope| envelope.topic.partition(partitions));
    let first = needed.next();
    if needed.any(|other| Some(other) != first) {
        return Err(Status::new(
            Code::Unavailable,
            "this build stores a publish only when all its topics live on one partition: publish them one by one, or \
             run the deployment with LOG_PARTITIONS = 1",
        ));
    }
    Ok(first)
}

fn new_envelope(envelope: Admitted, retention: Retention) -> NewEnvelope {
    let Admitted { topic, canonical, is_commit_or_proposal } = envelope;
    NewEnvelope {
        topic: topic.as_bytes().clone(),
        hash: Bytes::copy_from_slice(&canonical.hash),
        body: canonical.body,
        is_commit_or_proposal,
        retention_seconds: retention.seconds(topic.kind(), is_commit_or_proposal),
        expected_head: None,
    }
}

/// The metadata of `count` stored envelopes, unless the partition refused them.
fn metas(reply: StoreReply, count: usize) -> Result<Vec<EnvelopeMeta>, Status> {
    match reply.refusal() {
        Refusal::HeadMoved => Err(Status::new(
            Code::Aborted,
            "the identity history moved: read the inbox's identity topic and build the update anew",
        )),
        Refusal::Busy => {
            Err(Status::new(Code::Unavailable, "too many publishes wait at once: repeat after a pause"))
        }
        Refusal::Unspecified if reply.metas.len() == count => Ok(reply.metas),
        Refusal::Unspecified => Err(Status::new(
            Code::Internal,
            "a log partition answered against its rules; the request may have taken effect",
        )),
    }
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

    #[test]
    fn a_group_and_its_commit_log_are_one_partition_and_many_groups_are_refused() {
        let group = [admitted(Kind::GroupMessage, 1), admitted(Kind::CommitLog, 1)];
        assert_eq!(only_partition(&group, 256).unwrap(), Some(group[0].topic.partition(256)));
        assert_eq!(only_partition(&[], 8).unwrap(), None);
        let many: Vec<Admitted> = (0..50).map(|id| admitted(Kind::GroupMessage, id)).collect();
        assert_eq!(only_partition(&many, 1).unwrap(), Some(0));
        let status = only_partition(&many, 8).unwrap_err();
        assert_eq!(status.code, Code::Unavailable);
        assert!(status.message.contains("LOG_PARTITIONS"));
    }

    #[test]
    fn api_212_each_kind_takes_its_retention_along() {
        let settings = [("LOG_PARTITIONS", "1"), ("RETENTION_WELCOME_SECONDS", "60")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let retention = Config::read(settings).unwrap().retention;
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
        let code = |reply, count| metas(reply, count).map_err(|status| status.code);
        let refused = |refusal: Refusal| StoreReply { metas: Vec::new(), refusal: refusal.into() };
        assert_eq!(code(refused(Refusal::HeadMoved), 1), Err(Code::Aborted));
        assert_eq!(code(refused(Refusal::Busy), 1), Err(Code::Unavailable));
        assert_eq!(code(refused(Refusal::Unspecified), 1), Err(Code::Internal));
        let stored = StoreReply { metas: vec![meta(1)], ..Default::default() };
        assert_eq!(code(stored, 1), Ok(vec![meta(1)]));
    }
}
