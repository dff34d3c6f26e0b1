//! What the client sends, judged by itself (API-251, API-260, the bounds table).

use bytes::Bytes;
use prost::Message;
use sealog_proto::backend::{
    SubscribeRequest, SubscribeStaticRequest, TopicQuery, subscribe_request::Request,
};
use sealog_proto::status::Code;
use sealog_proto::{MAX_SEQUENCE_ID, Topic, backend, wire};

use super::{Limits, Status};
use crate::key::Key;

/// A request frame of a bidirectional stream.
#[derive(Debug)]
pub(super) enum Frame {
    Update(Update),
    Ping(u64),
    Pong(u64),
}

/// An Update that is right by itself.
#[derive(Debug, Default)]
pub(super) struct Update {
    pub(super) id: u64,
    /// With their cursors, in order.
    pub(super) adds: Vec<(Key, u64)>,
    pub(super) removes: Vec<Key>,
}

impl Frame {
    /// Reads a frame. Its counts are judged on the wire: what is over a bound is never decoded.
    pub(super) fn read(frame: Bytes, limits: &Limits) -> Result<Self, Status> {
        const UPDATE: u32 = 1;
        const ADDS: u32 = 2;
        const REMOVES: u32 = 3;
        let (mut adds, mut removes) = (0, 0);
        for update in wire::fields(frame.clone()).map_while(Result::ok).filter(|it| it.number == UPDATE) {
            let update = update.bytes.unwrap_or_default();
            adds += wire::count_repeated(&update, ADDS);
            removes += wire::count_repeated(&update, REMOVES);
        }
        bound("adds", adds, limits.max_update_adds)?;
        bound("removes", removes, limits.max_update_removes)?;
        let request = SubscribeRequest::decode(frame)
            .map_err(|error| invalid(format!("a request frame is no SubscribeRequest: {error}")))?;
        match request.request {
            Some(Request::Update(update)) => Ok(Self::Update(Update::read(&update)?)),
            Some(Request::Ping(ping)) => Ok(Self::Ping(ping.nonce)),
            Some(Request::Pong(pong)) => Ok(Self::Pong(pong.nonce)),
            None => Err(invalid("a request frame has no request: set update, ping or pong")),
        }
    }
}

impl Update {
    fn read(update: &backend::subscribe_request::Update) -> Result<Self, Status> {
        let adds = queries(&update.adds)?;
        let removes = update
            .removes
            .iter()
            .map(|topic| Topic::parse(topic.topic.clone()).map(|topic| Key::new(&topic)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(error.to_string()))?;
        distinct(adds.iter().map(|(key, _)| key).chain(&removes))?;
        Ok(Self { id: update.id, adds, removes })
    }

    /// The topics of a static stream.
    pub(super) fn of_static(request: Bytes, limits: &Limits) -> Result<Self, Status> {
        const TOPICS: u32 = 1;
        bound("topics", wire::count_repeated(&request, TOPICS), limits.max_static_topics)?;
        let request = SubscribeStaticRequest::decode(request)
            .map_err(|error| invalid(format!("the request is no SubscribeStaticRequest: {error}")))?;
        if request.topics.is_empty() {
            return Err(invalid("a static stream needs a topic"));
        }
        let adds = queries(&request.topics)?;
        distinct(adds.iter().map(|(key, _)| key))?;
        Ok(Self { adds, ..Self::default() })
    }
}

fn queries(queries: &[TopicQuery]) -> Result<Vec<(Key, u64)>, Status> {
    let query = |query: &TopicQuery| {
        let topic = Topic::from_message(query.topic.as_ref()).map_err(|error| invalid(error.to_string()))?;
        match query.cursor.map_or(0, |cursor| cursor.sequence_id) {
            cursor if cursor <= MAX_SEQUENCE_ID => Ok((Key::new(&topic), cursor)),
            _ => Err(invalid("a cursor is greater than 9223372036854775807")),
        }
    };
    queries.iter().map(query).collect()
}

fn distinct<'a>(keys: impl Iterator<Item = &'a Key>) -> Result<(), Status> {
    let mut keys: Vec<&Key> = keys.collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(invalid("a topic is named twice in one request"));
    }
    Ok(())
}

fn bound(what: &str, count: usize, most: usize) -> Result<(), Status> {
    if count <= most {
        Ok(())
    } else {
        Err(invalid(format!("{count} {what} in one request; at most {most} are taken")))
    }
}

pub(super) fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Status {
    Status::new(Code::InvalidArgument, message)
}
