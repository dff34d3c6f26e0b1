//! Requests that are small on the wire and would be huge in memory. A worker has 128 MB for everything.
//!
//! One test, so that nothing else allocates in this process while it watches the peak.

mod support;

use bytes::Bytes;
use peak_alloc::PeakAlloc;
use prost::Message;
use sealog_admission::{PublishLimits, PublishRefusal, read_publish};
use sealog_proto::backend::PublishRequest;
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::wire::count_repeated;
use support::{commit_log_entry, group_message, private_message};

const MIB: usize = 1 << 20;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

#[track_caller]
fn grows_at_most<T>(bytes: usize, what: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = what();
    let grown = ALLOCATOR.peak_usage() - before;
    assert!(grown <= bytes, "grew by {grown} bytes, {bytes} allowed");
    result
}

fn reason(verdict: Result<sealog_admission::Publish, PublishRefusal>) -> (Option<u32>, Reason) {
    match verdict {
        Err(PublishRefusal::Invalid { failure, .. }) => (failure.index, failure.reason),
        other => panic!("{:?}", other.map(|publish| publish.slots.len())),
    }
}

#[test]
fn small_bytes_stay_small_in_memory() {
    // A sixth of what a request may have: growth is in proportion, and the test takes seconds.
    let limits =
        PublishLimits { max_request_bytes: 4 * MIB, max_response_bytes: 4 * MIB, ..PublishLimits::default() };

    // Two million envelopes without a payload.
    let empty = Bytes::from([0x0a, 0].repeat(limits.max_request_bytes / 2));
    let verdict = grows_at_most(MIB / 16, || read_publish(empty.clone(), &limits));
    assert_eq!(reason(verdict), (Some(0), Reason::MalformedPayload));

    // Half a million actions in one update.
    let request = nested(0x0a, &nested(0x22, &[0x0a, 0].repeat(MIB / 2)));
    let verdict = grows_at_most(MIB / 16, || read_publish(request, &limits));
    assert_eq!(reason(verdict), (Some(0), Reason::TooLarge));

    // The shortest envelopes that are sound, all different. No more of them are kept than an answer has room for,
    // 63 bytes each at the least; one that is kept costs its metadata and a place in two tables that grow.
    let wire = shortest_envelopes(limits.max_request_bytes);
    let kept = limits.max_response_bytes / 63;
    let verdict = grows_at_most(kept * 400, || read_publish(wire, &limits));
    assert_eq!(verdict, Err(PublishRefusal::ResponseTooLong));

    // Long envelopes are kept as slices of the request: one is encoded at a time.
    let mut data = [private_message(&[7; 16], 1), vec![0; MIB - 100]].concat();
    let envelopes = [1, 2, 3].map(|last| {
        *data.last_mut().unwrap() = last;
        group_message(data.clone())
    });
    let wire = Bytes::from(PublishRequest { envelopes: envelopes.to_vec() }.encode_to_vec());
    let publish = grows_at_most(MIB + MIB / 16, || read_publish(wire, &limits)).unwrap();
    assert_eq!(publish.envelopes.len(), 3);

    // Two million topics of a Query are counted, not decoded.
    assert_eq!(grows_at_most(MIB / 16, || count_repeated(&empty, 1)), 2 * MIB);
}

/// A length-delimited field with a key of one byte.
fn nested(key: u8, content: &[u8]) -> Bytes {
    let mut field = vec![key];
    prost::encode_length_delimiter(content.len(), &mut field).unwrap();
    field.extend(content);
    field.into()
}

fn shortest_envelopes(len: usize) -> Bytes {
    let mut wire = Vec::with_capacity(len);
    for number in 1.. {
        let one = PublishRequest { envelopes: vec![commit_log_entry(&[7; 16], number)] };
        if wire.len() + one.encoded_len() > len {
            break;
        }
        one.encode(&mut wire).unwrap();
    }
    wire.into()
}
