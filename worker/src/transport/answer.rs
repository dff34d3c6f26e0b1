//! The body of an answer: the message's frame, unless the call failed, and the frame of trailers.

use std::fmt::Write;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use prost::Message;

use super::{frame, metadata::Mode};
use crate::error::Status;

/// What `grpc-message` must not hold as it is, beside everything outside ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

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
        let mut out = Vec::with_capacity(2 * frame::HEADER_LEN + length + OK_TRAILERS.len());
        let at = frame::begin(&mut out, frame::MESSAGE);
        message.encode_raw(&mut out);
        frame::end(&mut out, at);
        let at = frame::begin(&mut out, frame::TRAILERS);
        out.extend_from_slice(OK_TRAILERS);
        frame::end(&mut out, at);
        Ok(Self(out))
    }

    /// A failure: trailers only.
    pub fn failure(status: &Status) -> Self {
        let mut lines = format!("grpc-status: {}\r\n", status.code as i32);
        if !status.message.is_empty() {
            let _ = write!(lines, "grpc-message: {}\r\n", escape(&status.message));
        }
        if let Some(details) = &status.details {
            let _ = write!(lines, "grpc-status-details-bin: {}\r\n", STANDARD_NO_PAD.encode(details));
        }
        let mut out = Vec::with_capacity(frame::HEADER_LEN + lines.len());
        let at = frame::begin(&mut out, frame::TRAILERS);
        out.extend_from_slice(lines.as_bytes());
        frame::end(&mut out, at);
        Self(out)
    }

    /// The bytes to send. Text is one segment, padded once: every client reads that.
    pub fn into_body(self, mode: Mode) -> Vec<u8> {
        match mode {
            Mode::Binary => self.0,
            Mode::Text => STANDARD.encode(self.0).into_bytes(),
        }
    }
}

/// Percent-encodes the text of a status, as header and trailer lines need it.
pub fn escape(message: &str) -> impl std::fmt::Display {
    utf8_percent_encode(message, ESCAPED)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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
        assert_eq!(body[0], frame::TRAILERS);
        let lines = String::from_utf8(body[frame::HEADER_LEN..].to_vec()).unwrap();
        let line = |name| lines.split("\r\n").find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(line("grpc-status: "), "3");
        assert_eq!(line("grpc-message: "), "50 %25 zu gro%C3%9F%0A");
        let details = STANDARD_NO_PAD.decode(line("grpc-status-details-bin: ")).unwrap();
        assert_eq!(PublishFailure::from_details(&details), Some(failure));
    }

    proptest! {
        #[test]
        fn no_message_breaks_a_trailer_line(message: String) {
            let escaped = escape(&message).to_string();
            prop_assert!(escaped.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            let decoded = percent_encoding::percent_decode_str(&escaped).decode_utf8().unwrap().into_owned();
            prop_assert_eq!(decoded, message);
        }
    }
}
