//! The walk over undecoded fields sees what `prost` would decode.

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;
use sealog_proto::backend::{ClientEnvelope, PublishRequest, QueryRequest, TopicQuery};
use sealog_proto::wire::{Field, count_repeated, fields};

#[test]
fn repeated_fields_are_counted_among_others() {
    let query = QueryRequest { queries: vec![TopicQuery::default(); 3], limit: 7 };
    let bytes = Bytes::from(query.encode_to_vec());
    assert_eq!(count_repeated(&bytes, 1), 3);
    assert_eq!(count_repeated(&bytes, 2), 1);
    assert_eq!(count_repeated(&bytes, 3), 0);
}

#[test]
fn the_walk_ends_after_a_fault() {
    // Two empty elements, then one that is longer than what is left.
    let bytes = Bytes::from_static(&[0x0a, 0, 0x0a, 0, 0x0a, 9, 0, 0]);
    let walked: Vec<_> = fields(bytes.clone()).collect();
    assert_eq!(walked.len(), 3);
    assert_eq!(walked[0], Ok(Field { number: 1, bytes: Some(Bytes::new()) }));
    assert!(walked[2].is_err());
    assert_eq!(count_repeated(&bytes, 1), 2);
}

#[test]
fn other_wire_types_are_stepped_over() {
    // A varint, 8 bytes, a group with a field inside, 4 bytes, then bytes.
    let bytes = [
        &[0x08, 0x96, 0x01][..],
        &[0x11, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x1b, 0x0a, 1, 0xff, 0x1c],
        &[0x25, 1, 2, 3, 4],
        &[0x2a, 2, 0xca, 0xfe],
    ]
    .concat();
    let walked: Vec<_> = fields(bytes.into()).map(Result::unwrap).collect();
    let numbers: Vec<_> = walked.iter().map(|field| field.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert!(walked[..4].iter().all(|field| field.bytes.is_none()));
    assert_eq!(walked[4].bytes.as_deref(), Some(&[0xca, 0xfe][..]));
}

/// A piece of a request: an envelope, an unknown field, or anything.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(vec![0x0a, 0]),
        4 => Just(vec![0x0a, 4, 0x1a, 2, 0x0a, 0]),
        2 => Just(vec![0x8a, 0x00, 2, 0x0a, 0]),
        2 => Just(vec![0x10, 0xff, 0x01]),
        1 => Just(vec![0x08, 1]),
        1 => Just(vec![0x0a, 2, 0x0a]),
        1 => proptest::collection::vec(any::<u8>(), 1..6),
    ]
}

proptest! {
    /// Envelopes taken one by one from the wire are those of the request decoded at once.
    #[test]
    fn the_walk_agrees_with_prost(pieces in proptest::collection::vec(piece(), 0..8)) {
        let bytes = Bytes::from(pieces.concat());
        let whole = PublishRequest::decode(bytes.clone());
        let walked: Option<Vec<ClientEnvelope>> = fields(bytes)
            .filter(|field| field.as_ref().map_or(true, |field| field.number == 1))
            .map(|field| ClientEnvelope::decode(field.ok()?.bytes?).ok())
            .collect();
        prop_assert_eq!(whole.ok().map(|request| request.envelopes), walked);
    }
}
