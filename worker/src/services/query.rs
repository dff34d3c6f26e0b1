//! `QueryService/Query` (API-240 to API-243).

use bytes::Bytes;
use prost::Message;
use sealog_proto::{Kind, MAX_SEQUENCE_ID, Topic, backend::QueryRequest};

use super::{call_all, more_than};
use crate::{
    config::Limits, deployment::Deployment, error::Status, fan_out::PageBuilder, transport::answer::Answer,
};

/// Field number of `QueryRequest.queries`.
const QUERIES: u32 = 1;

pub(super) async fn serve(deployment: &Deployment, message: Bytes) -> Result<Answer, Status> {
    let config = &deployment.config;
    let (cursors, limit) = read(message, &config.limits)?;
    let max_bytes = config.limits.publish.max_response_bytes;
    let mut page = PageBuilder::new(cursors, config.log_partitions, limit, max_bytes);
    loop {
        let wave = page.next_wave();
        if wave.is_empty() {
            return Answer::success(&page.finish(), max_bytes);
        }
        let replies = call_all(&wave, |partition, request| deployment.store.read(partition, request)).await?;
        page.absorb(wave, replies)?;
    }
}

/// The topics with their cursors, and the effective limit.
fn read(message: Bytes, limits: &Limits) -> Result<(Vec<(Topic, u64)>, u32), Status> {
    if more_than(limits.max_query_topics, &message, QUERIES) {
        return Err(Status::invalid(format!(
            "at most {} topics are read in one Query",
            limits.max_query_topics
        )));
    }
    let request = QueryRequest::decode(message)?;
    let cursors = request.queries.into_iter().map(|query| {
        let topic = Topic::from_message(query.topic.as_ref())?;
        if topic.kind() == Kind::KeyPackage {
            return Err(Status::invalid("key packages are not paged through: read them with QueryNewest"));
        }
        let after = query.cursor.unwrap_or_default().sequence_id;
        if after > MAX_SEQUENCE_ID {
            return Err(Status::invalid(
                "a cursor is greater than 9223372036854775807, the greatest sequence id",
            ));
        }
        Ok((topic, after))
    });
    let limit = match request.limit {
        0 => limits.default_query_limit,
        limit => limit.min(limits.max_query_limit),
    };
    Ok((cursors.collect::<Result<_, _>>()?, limit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sealog_proto::{
        backend::{self, Cursor, TopicQuery},
        status::Code,
    };

    use super::*;
    use crate::config::Config;

    fn limits() -> Limits {
        let settings = [("LOG_PARTITIONS", "8"), ("MAX_QUERY_TOPICS", "3"), ("MAX_QUERY_LIMIT", "500")];
        Config::read(settings.map(|(name, value)| (name.to_owned(), value.to_owned()))).unwrap().limits
    }

    fn topic(kind: Kind) -> Topic {
        Topic::derive(kind, &vec![9; kind.identifier_len()]).unwrap()
    }

    fn entry(kind: Kind, sequence_id: u64) -> TopicQuery {
        TopicQuery { topic: Some((&topic(kind)).into()), cursor: Some(Cursor { sequence_id }) }
    }

    fn try_read(queries: Vec<TopicQuery>, limit: u32) -> Result<(Vec<(Topic, u64)>, u32), Code> {
        let message = QueryRequest { queries, limit }.encode_to_vec();
        read(message.into(), &limits()).map_err(|status| status.code)
    }

    #[test]
    fn api_241_the_limit_has_a_default_and_a_ceiling() {
        for (asked, effective) in [(0, 100), (1, 1), (500, 500), (501, 500), (u32::MAX, 500)] {
            assert_eq!(try_read(vec![], asked).unwrap().1, effective);
        }
    }

    #[test]
    fn api_281_entries_are_counted_before_topics_are_merged() {
        assert_eq!(try_read(vec![entry(Kind::Welcome, 0); 3], 0).unwrap().0.len(), 3);
        assert_eq!(try_read(vec![entry(Kind::Welcome, 0); 4], 0), Err(Code::InvalidArgument));
    }

    #[test]
    fn api_243_only_key_package_topics_are_not_paged() {
        for kind in Kind::ALL {
            let read = try_read(vec![entry(kind, 5)], 0).map(|(cursors, _)| cursors);
            if kind == Kind::KeyPackage {
                assert_eq!(read, Err(Code::InvalidArgument));
            } else {
                assert_eq!(read, Ok(vec![(topic(kind), 5)]));
            }
        }
    }

    #[test]
    fn a_missing_cursor_is_the_beginning_and_one_over_the_range_is_refused() {
        let from_start = TopicQuery { cursor: None, ..entry(Kind::Welcome, 0) };
        assert_eq!(try_read(vec![from_start], 0).unwrap().0, [(topic(Kind::Welcome), 0)]);
        assert!(try_read(vec![entry(Kind::Welcome, MAX_SEQUENCE_ID)], 0).is_ok());
        assert_eq!(try_read(vec![entry(Kind::Welcome, MAX_SEQUENCE_ID + 1)], 0), Err(Code::InvalidArgument));
    }

    #[test]
    fn topic_003_a_malformed_or_missing_topic_is_refused() {
        for bytes in [&b""[..], b"\x05", &[0; 16], &[0; 18], &[1; 17], &[9; 33]] {
            let topic = Some(backend::Topic { topic: Bytes::copy_from_slice(bytes) });
            assert_eq!(try_read(vec![TopicQuery { topic, cursor: None }], 0), Err(Code::InvalidArgument));
        }
        assert_eq!(try_read(vec![TopicQuery::default()], 0), Err(Code::InvalidArgument));
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
