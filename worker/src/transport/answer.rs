//! The body of an answer: the message's frame, unless the call failed, and the frame of trailers.

use std::fmt::Write;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use prost::Message;
use sealog_proto::grpc_web;

use super::metadata::Mode;
use crate::error::Status;

/// Trailers of a success; short enough to be reserved with the message.
const OK_TRAILERS: &[u8] = b"grpc-status: 0\r\n";

/// An encoded body, still binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(Vec<u8>);

impl Answer {
    /// A success. Fails with `OUT_OF_RANGE` when the message is longer than `limit` (API-282, API-283).
    pub fn success(message: &impl Message, limit: usize) -> Result<Self, Status> {
        let length = message.encoded_len();
        if length > limit {
            return Err(Status::answer_too_long(length, limit));
        }
        let mut out = Vec::with_capacity(2 * grpc_web::HEADER_LEN + length + OK_TRAILERS.len());
        let at = grpc_web::begin(&mut out, grpc_web::MESSAGE);
        message.encode_raw(&mut out);
        grpc_web::end(&mut out, at);
        let at = grpc_web::begin(&mut out, grpc_web::TRAILERS);
        out.extend_from_slice(OK_TRAILERS);
        grpc_web::end(&mut out, at);
        Ok(Self(out))
    }

    /// A failure: trailers only.
    pub fn failure(status: &Status) -> Self {
        let mut lines = grpc_web::trailers(status.code, &status.message);
        if let Some(details) = &status.details {
            let _ = write!(lines, "grpc-status-details-bin: {}\r\n", STANDARD_NO_PAD.encode(details));
        }
        Self(grpc_web::frame(grpc_web::TRAILERS, lines.as_bytes()))
    }

    /// The bytes to send. Text is one segment, padded once: every client reads that.
    pub fn into_body(self, mode: Mode) -> Vec<u8> {
        match mode {
            Mode::Binary => self.0,
            Mode::Text => STANDARD.encode(self.0).into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use sealog_proto::{
        backend::{QueryResponse, publish_error::Reason},
        health::HealthCheckResponse,
        status::{Code, PublishFailure},
    };

    use super::*;

    #[test]
    fn a_success_is_a_message_and_trailers() {
        let answer = Answer::success(&HealthCheckResponse { status: 1 }, 2).unwrap();
        assert_eq!(answer.into_body(Mode::Binary), b"\0\0\0\0\x02\x08\x01\x80\0\0\0\x10grpc-status: 0\r\n");
    }

    #[test]
    fn an_empty_message_is_still_a_frame() {
        let answer = Answer::success(&QueryResponse::default(), 0).unwrap();
        assert_eq!(answer.into_body(Mode::Binary), b"\0\0\0\0\0\x80\0\0\0\x10grpc-status: 0\r\n");
    }

    #[test]
    fn text_is_one_padded_segment() {
        let answer = Answer::success(&HealthCheckResponse { status: 1 }, 2).unwrap();
        let text = answer.clone().into_body(Mode::Text);
        assert_eq!(STANDARD.decode(text).unwrap(), answer.into_body(Mode::Binary));
    }

    #[test]
    fn api_282_a_message_over_the_limit_fails() {
        let status = Answer::success(&HealthCheckResponse { status: 1 }, 1).unwrap_err();
        assert_eq!(status.code, Code::OutOfRange);
    }

    #[test]
    fn api_223_the_detail_of_a_failed_publish_reads_back_from_the_trailers() {
        let failure =
            PublishFailure {
                index: Some(3), reason: Reason::TooLarge, message: "50 % zu groß\n".to_owned()
            };
        let body = Answer::failure(&Status::from(failure.clone())).into_body(Mode::Binary);
        assert_eq!(body[0], grpc_web::TRAILERS);
        let lines = String::from_utf8(body[grpc_web::HEADER_LEN..].to_vec()).unwrap();
        let line = |name| lines.split("\r\n").find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(line("grpc-status: "), "3");
        assert_eq!(line("grpc-message: "), "50 %25 zu gro%C3%9F%0A");
        let details = STANDARD_NO_PAD.decode(line("grpc-status-details-bin: ")).unwrap();
        assert_eq!(PublishFailure::from_details(&details), Some(failure));
    }
}
