//! No input makes a session panic, and what it reads does not depend on how its client cut it.

#[path = "../../fuzz/src/session.rs"]
mod targets;

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use sealog_proto::backend::{
    Cursor, Ping, Pong, SubscribeRequest, Topic, TopicQuery, subscribe_request::Request,
    subscribe_request::Update,
};
use sealog_proto::internal::{SessionAttachment, StoredPositions, session_attachment};

fn topic() -> impl Strategy<Value = Topic> {
    (0..5_u8, prop_oneof![Just(17_usize), Just(33), 0..40_usize]).prop_map(|(kind, len)| {
        let mut topic = vec![9; len];
        topic.iter_mut().take(1).for_each(|byte| *byte = kind);
        Topic { topic: topic.into() }
    })
}

/// A frame of a client, mostly right.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let cursor = prop_oneof![Just(0), any::<u64>()].prop_map(|sequence_id| Cursor { sequence_id });
    let add =
        (topic(), cursor).prop_map(|(topic, cursor)| TopicQuery { topic: Some(topic), cursor: Some(cursor) });
    let update = (0..5_u64, vec(add, 0..4), vec(topic(), 0..2));
    let request = prop_oneof![
        update.prop_map(|(id, adds, removes)| Some(Request::Update(Update { id, adds, removes }))),
        any::<u64>().prop_map(|nonce| Some(Request::Ping(Ping { nonce }))),
        any::<u64>().prop_map(|nonce| Some(Request::Pong(Pong { nonce }))),
        Just(None),
    ];
    (request, 0..40_u8).prop_map(|(request, flag)| {
        let message = SubscribeRequest { request }.encode_to_vec();
        let mut frame = vec![if flag < 38 { 0 } else { flag - 37 }];
        frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        frame.extend(message);
        frame
    })
}

/// What a socket may have kept, with numbers of any size.
fn attachment() -> impl Strategy<Value = Vec<u8>> {
    let number = || prop_oneof![0..9_u64, Just(u64::MAX), any::<u64>()];
    let small = || prop_oneof![0..9_u32, Just(u32::MAX)];
    let numbers = (number(), number(), number(), number(), number(), number());
    let more = (small(), small(), any::<(bool, bool)>(), number(), number(), vec(any::<u8>(), 0..40));
    let ping = proptest::option::of((number(), number(), number(), any::<bool>()));
    (numbers, more, ping, vec(any::<(u32, u64)>(), 0..4)).prop_map(
        |((update_id, next_number, sent, acked, last_frame, tokens), more, ping, positions)| {
            let (ordinal, next_slot, (started, behind), stored, length, tail) = more;
            let (slots, positions) = positions.into_iter().unzip();
            let bucket = Some(session_attachment::Bucket { tokens, at: last_frame });
            let ping = ping.map(|(nonce, at, sent, late)| session_attachment::Ping { nonce, at, sent, late });
            SessionAttachment {
                format: 1,
                version: 1, // what storage says
                behind,
                started,
                update_id,
                ordinal,
                next_number,
                next_slot,
                sent,
                acked,
                last_frame,
                nonce: sent,
                ping,
                updates: bucket,
                pings: bucket,
                partial: tail.into(),
                partial_stored: stored,
                partial_length: length,
                positions: Some(StoredPositions { slots, positions }),
                ..SessionAttachment::default()
            }
            .encode_to_vec()
        },
    )
}

fn input() -> impl Strategy<Value = Vec<u8>> {
    let frames = vec(frame(), 0..5).prop_map(|frames| frames.concat());
    let long = vec(any::<u8>(), 0..400).prop_map(|message| {
        let mut frame = vec![0];
        frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        frame.extend(message);
        frame
    });
    prop_oneof![4 => frames, 4 => attachment(), 1 => long, 1 => vec(any::<u8>(), 0..100)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_fuzz_target_holds_on_generated_input(data in input()) {
        for target in targets::ALL {
            target(&data);
        }
    }
}
