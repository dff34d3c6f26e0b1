//! API-223: the detail of a failed publish, as bytes and back.

use prost::Message;
use sealog_proto::backend::publish_error::Reason;
use sealog_proto::rpc;
use sealog_proto::status::{Code, PublishFailure};

#[test]
fn api_223_the_detail_comes_back_as_it_went() {
    for number in 1..=8 {
        let reason = Reason::try_from(number).unwrap();
        for index in [None, Some(0), Some(1), Some(u32::MAX)] {
            let failure = PublishFailure { index, reason, message: "größer als erlaubt".to_owned() };
            assert_eq!(PublishFailure::from_details(&failure.to_details()), Some(failure));
        }
    }
}

/// Written out from the field numbers: clients decode these bytes with their own code.
#[test]
fn api_223_the_bytes_of_the_detail() {
    let failure = PublishFailure { index: Some(0), reason: Reason::TooLarge, message: "big".to_owned() };
    let error = [&[0x08, 0, 0x10, 5, 0x1a, 3], b"big".as_slice()].concat();
    let url = b"type.googleapis.com/xmtp.backend.v1.PublishError";
    let any = [&[0x0a, 48], url.as_slice(), &[0x12, 9], &error].concat();
    let status = [&[0x08, 3, 0x12, 3], b"big".as_slice(), &[0x1a, 61], &any].concat();
    assert_eq!(failure.to_details(), status);
}

#[test]
fn api_223_an_absent_index_is_not_index_0() {
    let failure = PublishFailure { index: None, reason: Reason::TooLarge, message: String::new() };
    let status = rpc::Status::decode(failure.to_details().as_slice()).unwrap();
    assert_eq!(status.code, Code::InvalidArgument as i32);
    assert_eq!(status.details[0].value, [0x10, 5], "only the reason is written");
}

#[test]
fn details_without_a_publish_error_are_none() {
    for details in [&[][..], &[0xff], &rpc::Status::default().encode_to_vec()] {
        assert_eq!(PublishFailure::from_details(details), None);
    }
}
