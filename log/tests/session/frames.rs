//! The client's bytes, cut anywhere (rule 21), and frames that are refused.

use bytes::{Bytes, BytesMut};
use prost::Message;
use sealog_log::Sql;
use sealog_log::session::{Limits, Session};
use sealog_proto::backend::{Ping, SubscribeRequest, subscribe_request::Request};
use sealog_proto::status::Code;

use crate::support::{Got, World, grpc, update};

fn ping(nonce: u64) -> Bytes {
    grpc(&SubscribeRequest { request: Some(Request::Ping(Ping { nonce })) }.encode_to_vec())
}

fn rows(world: &World) -> i64 {
    let row = world.sql.first("SELECT count(*) FROM blocks", &[]).unwrap().unwrap();
    row[0].integer().unwrap()
}

fn data(world: &mut World, bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    world.event(|session, ctx| session.data(ctx, bytes));
}

#[test]
fn trap_18_frames_may_be_split_at_any_byte_and_the_object_may_sleep_in_between() {
    let stream: Vec<u8> = [ping(1), ping(1 << 60), ping(3)].concat();
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let mut world = World::open();
            for part in [&stream[..first], &stream[first..second], &stream[second..]] {
                data(&mut world, part);
                world.sync();
                world.restart();
            }
            assert_eq!(world.take(), [Got::Pong(1), Got::Pong(1 << 60), Got::Pong(3)], "{first} {second}");
        }
    }
}

#[test]
fn rule_21_a_long_frame_is_kept_in_storage_in_proportion_and_removed_with_it() {
    let adds: Vec<(u32, u64)> = (0..5_000).map(|topic| (topic, 0)).collect();
    let frame =
        grpc(&SubscribeRequest { request: Some(Request::Update(update(1, &adds, &[]))) }.encode_to_vec());
    for piece in [1_000, 2_043, 50_000, 130_000] {
        let mut world = World::open();
        for (nth, part) in frame.chunks(piece).enumerate() {
            if nth % 7 == 3 {
                world.restart();
            }
            data(&mut world, part);
            world.sync();
            assert!(rows(&world) <= i64::try_from(frame.len() / 2_048 + 1).unwrap());
        }
        assert_eq!(rows(&world), 0, "removed with the frame");
        world.run();
        assert!(matches!(&world.take()[..], [Got::Applied(1, targets)] if targets.len() == 5_000));
        world.restart();
        assert_eq!(world.code(), None);
    }
}

#[test]
fn rule_21_a_long_frame_is_whole_however_few_bytes_follow_what_was_stored() {
    let adds: Vec<(u32, u64)> = (0..200).map(|topic| (topic, 0)).collect();
    let frame =
        grpc(&SubscribeRequest { request: Some(Request::Update(update(1, &adds, &[]))) }.encode_to_vec());
    // Among them as many bytes as a header has.
    for few in 1..=20 {
        let mut world = World::open();
        for part in [&frame[..3_000], &frame[3_000..3_000 + few], &frame[3_000 + few..]] {
            data(&mut world, part);
            world.sync();
        }
        world.run();
        assert_eq!(world.code(), None, "{few} bytes");
        assert!(
            matches!(&world.take()[..], [Got::Applied(1, targets)] if targets.len() == 200),
            "{few} bytes"
        );
        assert_eq!(rows(&world), 1, "of the frame nothing stays, {few} bytes: the row is the Update's");
    }
}

#[test]
fn a_frame_longer_than_a_row_comes_through() {
    let limits = Limits::default();
    let mut world = World::with(1, limits);
    let mut padded = SubscribeRequest { request: Some(Request::Ping(Ping { nonce: 5 })) }.encode_to_vec();
    let padding = vec![0; 5 << 20];
    prost::encoding::bytes::encode(99, &padding, &mut padded);
    let frame = grpc(&padded);
    let half = frame.len() / 2;
    data(&mut world, &frame[..half]);
    world.sync();
    world.restart();
    data(&mut world, &frame[half..]);
    assert_eq!(world.take(), [Got::Pong(5)]);
}

#[test]
fn refused_frames_fail_the_stream_by_the_status_table() {
    let limits = Limits { max_request_bytes: 1_000, ..Limits::default() };
    let header = |flag: u8, length: u32| [&[flag][..], &length.to_be_bytes()].concat();
    for (bytes, code) in [
        (header(0, 1_001), Code::OutOfRange),
        (header(1, 10), Code::Unimplemented),
        (header(2, 10), Code::InvalidArgument),
        (header(128, 10), Code::InvalidArgument),
        (grpc(&[0xff; 7]).to_vec(), Code::InvalidArgument),
        (grpc(&[]).to_vec(), Code::InvalidArgument),
        (grpc(&[8, 1]).to_vec(), Code::InvalidArgument),
    ] {
        let mut world = World::with(1, limits);
        data(&mut world, &[&bytes[..], &ping(1)].concat());
        assert_eq!(world.code(), Some(code), "{bytes:?}");
        assert_eq!(world.take(), [], "nothing after it is read");
    }
    let mut world = World::with(1, limits);
    data(&mut world, &header(0, 1_000));
    data(&mut world, &[0; 999]);
    assert_eq!(world.code(), None, "the longest is taken");
}

#[test]
fn a_request_stream_that_ends_inside_a_frame_is_invalid() {
    let mut world = World::open();
    data(&mut world, &ping(1)[..6]);
    world.event(Session::half_close);
    assert_eq!(world.code(), Some(Code::InvalidArgument));
}

#[test]
fn a_hundred_thousand_frames_in_one_message_are_read_in_turn() {
    let mut stream = BytesMut::new();
    let pong = SubscribeRequest { request: Some(Request::Pong(sealog_proto::backend::Pong { nonce: 4 })) };
    for _ in 0..100_000 {
        stream.extend_from_slice(&grpc(&pong.encode_to_vec()));
    }
    stream.extend_from_slice(&ping(1));
    let mut world = World::open();
    data(&mut world, &stream);
    assert_eq!(world.take(), [Got::Pong(1)]);
}
