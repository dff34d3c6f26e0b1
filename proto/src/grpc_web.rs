//! The framing of gRPC-Web: a flag byte, a big-endian `u32` length, and that many bytes.

use std::fmt::{Display, Write};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::status::Code;

/// Flag byte and length.
pub const HEADER_LEN: usize = 5;
/// Flag of a message frame.
pub const MESSAGE: u8 = 0x00;
/// Flag of a frame of headers or trailers: lines of text.
pub const TRAILERS: u8 = 0x80;
/// Set in the flags of a frame that was compressed.
pub const COMPRESSED: u8 = 0x01;

/// What `grpc-message` must not hold as it is, beside everything outside ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// Begins a frame at the end of `out`; the length is filled in by [`end`].
pub fn begin(out: &mut Vec<u8>, flags: u8) -> usize {
    let at = out.len();
    out.extend_from_slice(&[flags, 0, 0, 0, 0]);
    at
}

/// Ends the frame that began at `at`. What was written since is its payload.
///
/// # Panics
/// When the payload has 4 GiB or more: no caller writes more than the 25 MiB that are carried (API-282).
pub fn end(out: &mut [u8], at: usize) {
    let payload = out.len() - at - HEADER_LEN;
    let length = u32::try_from(payload).expect("payloads stay below the transport ceiling");
    out[at + 1..at + HEADER_LEN].copy_from_slice(&length.to_be_bytes());
}

/// A whole frame.
pub fn frame(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_LEN + payload.len());
    let at = begin(&mut out, flags);
    out.extend_from_slice(payload);
    end(&mut out, at);
    out
}

/// The lines that say how a call ended.
pub fn trailers(code: Code, message: &str) -> String {
    let mut lines = format!("grpc-status: {}\r\n", code as i32);
    if !message.is_empty() {
        let _ = write!(lines, "grpc-message: {}\r\n", escape(message)); // a String takes all text
    }
    lines
}

/// Percent-encodes the text of a status, as header and trailer lines need it.
pub fn escape(message: &str) -> impl Display {
    utf8_percent_encode(message, ESCAPED)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn trailers_say_code_and_text() {
        assert_eq!(trailers(Code::Ok, ""), "grpc-status: 0\r\n");
        assert_eq!(
            trailers(Code::Unavailable, "50 % zu groß\n"),
            "grpc-status: 14\r\ngrpc-message: 50 %25 zu gro%C3%9F%0A\r\n"
        );
        assert_eq!(frame(TRAILERS, b"ab"), b"\x80\0\0\0\x02ab");
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
