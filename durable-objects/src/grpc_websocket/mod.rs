//! `grpc-websockets`: a bidirectional call over one WebSocket, as established clients frame it.
//!
//! The client's first message is the header block: ASCII lines, `name: value`. Each later message begins with a byte:
//! 0x00, and behind it the next piece of a byte stream of gRPC frames, which may be split and joined at any byte; or
//! 0x01 alone, the half-close. The server answers with whole frames, one per message: flag 0x80 for the headers, 0x00
//! for each response, 0x80 again for the trailers. Then it closes the socket with 1000: the call ends for the client only
//! with the socket, and a socket that closes without trailers is an unknown error.
//!
//! Pure: bytes in, bytes out. The stream of frames itself is read by the session, which knows what a sleep leaves of it.

mod headers;

use bytes::{Buf, Bytes};
use sealog_proto::grpc_web::{TRAILERS, frame};
use sealog_proto::status::Code;

pub use headers::{HeadersError, check_headers};

/// The subprotocol that a client offers, and the server chooses.
pub const SUBPROTOCOL: &str = "grpc-websockets";

/// How the socket of a call closes that ran to its end: the status was in the trailers.
pub const CLOSE_NORMAL: u16 = 1000;

/// First byte of a message that carries a piece of the stream of frames.
const DATA: u8 = 0x00;
/// The one byte of a half-close.
const HALF_CLOSE: u8 = 0x01;

/// What a message behind the header block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The next bytes of the stream of frames.
    Data(Bytes),
    /// The client sends no more.
    HalfClose,
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It is text.
    #[error("a WebSocket message is text: this protocol sends binary messages only")]
    Text,
    /// It begins with another byte than it may, or is a half-close with bytes behind it.
    #[error(
        "a WebSocket message must begin with byte 0x00, followed by gRPC frames, or be the single byte 0x01"
    )]
    Control,
}

/// Reads a message that came after the header block. Copies nothing.
pub fn read(mut message: Bytes) -> Result<Input, MessageError> {
    match message.first() {
        Some(&DATA) => {
            message.advance(1);
            Ok(Input::Data(message))
        }
        Some(&HALF_CLOSE) if message.len() == 1 => Ok(Input::HalfClose),
        _ => Err(MessageError::Control),
    }
}

/// The message with the headers of the answer.
pub fn headers(request_id: &str) -> Vec<u8> {
    let lines = format!("content-type: application/grpc-web+proto\r\nx-request-id: {request_id}\r\n");
    frame(TRAILERS, lines.as_bytes())
}

/// The message with the trailers.
pub fn trailers(code: Code, message: &str) -> Vec<u8> {
    frame(TRAILERS, sealog_proto::grpc_web::trailers(code, message).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_data_or_the_half_close() {
        assert_eq!(
            read(Bytes::from_static(b"\0\0\0\0\0\0")),
            Ok(Input::Data(Bytes::from_static(b"\0\0\0\0\0")))
        );
        assert_eq!(read(Bytes::from_static(b"\0")), Ok(Input::Data(Bytes::new())));
        assert_eq!(read(Bytes::from_static(b"\x01")), Ok(Input::HalfClose));
    }

    #[test]
    fn every_other_message_is_refused() {
        for message in [&b""[..], b"\x02", b"\x01\0", b"\x01\x01", b"\x80\0\0\0\0", b"x-grpc-web: 1\r\n"] {
            assert_eq!(read(Bytes::from_static(message)), Err(MessageError::Control), "{message:?}");
        }
    }

    #[test]
    fn the_answer_begins_and_ends_with_frames_of_lines() {
        let begin = headers("id-1");
        assert_eq!(&begin[..5], [0x80, 0, 0, 0, u8::try_from(begin.len() - 5).unwrap()]);
        assert!(begin.ends_with(b"\r\nx-request-id: id-1\r\n"));
        assert_eq!(trailers(Code::Ok, ""), b"\x80\0\0\0\x10grpc-status: 0\r\n");
    }
}
