//! Frames and rows, made and read as clients and partitions do.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use sealog_proto::backend::{
    CatchupTarget, ClientEnvelope, Cursor, EnvelopeMeta, GroupMessage, ServerEnvelope, SubscribeResponse,
    SubscribeStaticResponse, Topic, TopicQuery, client_envelope::Payload, subscribe_request::Update,
    subscribe_response::Response, subscribe_static_response,
};
use sealog_proto::internal::StoredEnvelope;

use super::{Got, NOON};

/// Reads a frame as a client of a bidirectional stream does.
pub(super) fn read(frame: &[u8]) -> Got {
    match SubscribeResponse::decode(message(frame)).expect("a response").response.expect("is set") {
        Response::Started(_) => Got::Started,
        Response::Applied(applied) => Got::Applied(applied.id, targets(&applied.added_targets)),
        Response::Messages(messages) => Got::Rows(rows(&messages.envelopes)),
        Response::Ping(ping) => Got::Ping(ping.nonce),
        Response::Pong(pong) => Got::Pong(pong.nonce),
    }
}

/// Reads a frame as a client of a static stream does.
pub(super) fn read_static(frame: &[u8]) -> Got {
    use subscribe_static_response::Response as Static;
    match SubscribeStaticResponse::decode(message(frame)).expect("a response").response.expect("is set") {
        Static::Started(started) => Got::StartedAt(targets(&started.targets)),
        Static::Messages(messages) => Got::Rows(rows(&messages.envelopes)),
        Static::Keepalive(_) => Got::Keepalive,
    }
}

fn message(frame: &[u8]) -> &[u8] {
    assert_eq!(frame[0], 0, "not compressed");
    assert_eq!(u32::from_be_bytes(frame[1..5].try_into().unwrap()) as usize, frame.len() - 5);
    &frame[5..]
}

fn targets(targets: &[CatchupTarget]) -> Vec<(u32, u64)> {
    targets.iter().map(|it| (number(&it.topic.as_ref().unwrap().topic), it.through_sequence_id)).collect()
}

fn rows(envelopes: &[ServerEnvelope]) -> Vec<(u32, u64)> {
    let row = |envelope: &ServerEnvelope| {
        assert!(envelope.envelope.as_ref().unwrap().payload.is_some(), "the body is whole");
        let meta = envelope.meta.as_ref().unwrap();
        (number(&meta.topic.as_ref().unwrap().topic), meta.cursor.unwrap().sequence_id)
    };
    envelopes.iter().map(row).collect()
}

/// A gRPC frame.
pub fn grpc(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap());
    frame.extend_from_slice(message);
    frame.freeze()
}

pub fn update(id: u64, adds: &[(u32, u64)], removes: &[u32]) -> Update {
    Update {
        id,
        adds: queries(adds),
        removes: removes.iter().map(|topic| Topic { topic: bytes(*topic) }).collect(),
    }
}

pub(super) fn queries(topics: &[(u32, u64)]) -> Vec<TopicQuery> {
    let query = |(topic, cursor): &(u32, u64)| TopicQuery {
        topic: Some(Topic { topic: bytes(*topic) }),
        cursor: Some(Cursor { sequence_id: *cursor }),
    };
    topics.iter().map(query).collect()
}

/// A group-message topic.
pub fn bytes(topic: u32) -> Bytes {
    let mut bytes = vec![0; 17];
    bytes[13..].copy_from_slice(&topic.to_be_bytes());
    bytes.into()
}

pub fn number(topic: &[u8]) -> u32 {
    u32::from_be_bytes(topic[topic.len() - 4..].try_into().unwrap())
}

pub(super) fn parsed(topic: u32) -> sealog_proto::Topic {
    sealog_proto::Topic::parse(bytes(topic)).unwrap()
}

pub fn id(row: &StoredEnvelope) -> u64 {
    row.meta.as_ref().unwrap().cursor.unwrap().sequence_id
}

pub(super) fn row(topic: u32, sequence_id: u64, bytes_of_body: usize) -> StoredEnvelope {
    let message = GroupMessage { data: vec![1; bytes_of_body].into(), ..GroupMessage::default() };
    StoredEnvelope {
        meta: Some(EnvelopeMeta {
            cursor: Some(Cursor { sequence_id }),
            topic: Some(Topic { topic: bytes(topic) }),
            server_ns: NOON,
            ..EnvelopeMeta::default()
        }),
        envelope: ClientEnvelope { payload: Some(Payload::GroupMessage(message)) }.encode_to_vec().into(),
    }
}
