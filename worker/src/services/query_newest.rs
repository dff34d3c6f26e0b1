//! `QueryService/QueryNewest` (API-244).

use bytes::Bytes;
use prost::Message;
use sealog_proto::{Topic, backend::QueryNewestRequest};

use super::{call_all, more_than};
use crate::{
    config::Limits, deployment::Deployment, error::Status, fan_out::NewestBuilder, transport::answer::Answer,
};

/// Field number of `QueryNewestRequest.topics`.
const TOPICS: u32 = 1;

pub(super) async fn serve(deployment: &Deployment, message: Bytes) -> Result<Answer, Status> {
    let config = &deployment.config;
    let (topics, full) = read(message, &config.limits)?;
    let max_bytes = config.limits.publish.max_response_bytes;
    let mut newest = NewestBuilder::new(topics, config.log_partitions, full, max_bytes);
    loop {
        let wave = newest.next_wave();
        if wave.is_empty() {
            return Answer::success(&newest.finish(), max_bytes);
        }
        let replies =
            call_all(&wave, |partition, request| deployment.store.newest(partition, request)).await?;
        newest.absorb(wave, replies)?;
    }
}

/// The topics, and whether their envelopes are wanted too.
fn read(message: Bytes, limits: &Limits) -> Result<(Vec<Topic>, bool), Status> {
    let Limits { max_newest_full_topics, max_newest_metadata_topics, .. } = *limits;
    // Which of the two bounds counts is known only after decoding.
    let most = max_newest_full_topics.max(max_newest_metadata_topics);
    if more_than(most, &message, TOPICS) {
        return Err(too_many(most, ""));
    }
    let request = QueryNewestRequest::decode(message)?;
    let (most, flag) = if request.include_full_envelope {
        (max_newest_full_topics, " with include_full_envelope")
    } else {
        (max_newest_metadata_topics, "")
    };
    if request.topics.len() > most {
        return Err(too_many(most, flag));
    }
    let topics = request.topics.iter().map(|topic| Topic::from_message(Some(topic)));
    Ok((topics.collect::<Result<_, _>>()?, request.include_full_envelope))
}

fn too_many(most: usize, flag: &str) -> Status {
    Status::invalid(format!("at most {most} topics are read in one QueryNewest{flag}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sealog_proto::{Kind, backend, status::Code};

    use super::*;
    use crate::config::Config;

    fn limits() -> Limits {
        let settings =
            [("LOG_PARTITIONS", "8"), ("MAX_NEWEST_FULL_TOPICS", "2"), ("MAX_NEWEST_METADATA_TOPICS", "4")];
        Config::read(settings.map(|(name, value)| (name.to_owned(), value.to_owned()))).unwrap().limits
    }

    fn try_read(topics: Vec<backend::Topic>, include_full_envelope: bool) -> Result<usize, Code> {
        let message = QueryNewestRequest { topics, include_full_envelope }.encode_to_vec();
        read(message.into(), &limits()).map(|(topics, _)| topics.len()).map_err(|status| status.code)
    }

    #[test]
    fn api_281_the_bound_depends_on_the_flag() {
        let topic = backend::Topic::from(&Topic::derive(Kind::KeyPackage, &[1; 32]).unwrap());
        for (count, full, accepted) in
            [(2, true, true), (3, true, false), (4, false, true), (5, false, false)]
        {
            let expected = if accepted { Ok(count) } else { Err(Code::InvalidArgument) };
            assert_eq!(try_read(vec![topic.clone(); count], full), expected);
        }
    }

    #[test]
    fn topic_003_a_malformed_topic_is_refused() {
        for bytes in [&b""[..], b"\x05", &[0; 16], &[3; 32]] {
            let topic = backend::Topic { topic: Bytes::copy_from_slice(bytes) };
            assert_eq!(try_read(vec![topic], false), Err(Code::InvalidArgument));
        }
    }

    #[test]
    fn every_kind_is_read() {
        let topics = Kind::ALL.map(|kind| Topic::derive(kind, &vec![1; kind.identifier_len()]).unwrap());
        for topic in topics {
            assert_eq!(try_read(vec![(&topic).into()], true), Ok(1));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_invalid(message: Vec<u8>) {
            if let Err(status) = read(message.into(), &limits()) {
                prop_assert_eq!(status.code, Code::InvalidArgument);
            }
        }
    }
}
