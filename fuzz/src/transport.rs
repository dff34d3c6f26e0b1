//! One function per decoder of the gRPC-Web transport. Each checks what must hold for any bytes, beside not panicking.
//!
//! `fuzz_targets/` runs them under libFuzzer; the tests of `sealog-worker` include this file and run them on generated
//! input, on the stable toolchain.
#![allow(unreachable_pub)] // public in one crate, private in the other

use bytes::Bytes;
use sealog_objects::grpc_websocket::{self, Input, check_headers};
use sealog_worker::transport::body::{BodyError, BodyReader};
use sealog_worker::transport::frame::UnaryReader;
use sealog_worker::transport::metadata::Mode;
use sealog_worker::transport::text::TextDecoder;
use sealog_worker::transport::timeout;

/// Every target.
pub const ALL: [fn(&[u8]); 5] = [frame, text, body, grpc_timeout, websocket];

/// Longer than any message here, so that both sides of the limit are met.
const LIMIT: usize = 64;

/// A binary body: a message is what its one frame announces, however the body was cut into parts.
pub fn frame(data: &[u8]) {
    let whole = read_frame(&[data]);
    for at in cuts(data) {
        assert_eq!(read_frame(&[&data[..at], &data[at..]]), whole, "cut at {at}");
    }
    if let Some(message) = whole {
        assert!(message.len() <= LIMIT);
        assert_eq!(data[0], 0);
        assert_eq!(message, &data[5..]);
    }
}

/// Base64 text: what comes out does not depend on how the text was cut.
pub fn text(data: &[u8]) {
    let whole = decode_text(&[data]);
    for at in cuts(data) {
        assert_eq!(decode_text(&[&data[..at], &data[at..]]), whole, "cut at {at}");
    }
    if let Some(bytes) = whole {
        assert!(bytes.len() <= data.len() / 4 * 3 + 2);
    }
}

/// A whole body in either mode, the first byte choosing it.
pub fn body(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let mode = if first & 1 == 0 { Mode::Binary } else { Mode::Text };
    let whole = read_body(mode, &[rest]);
    for at in cuts(rest) {
        assert_eq!(read_body(mode, &[&rest[..at], &rest[at..]]).is_ok(), whole.is_ok(), "cut at {at}");
    }
}

/// A `grpc-timeout`: at most eight digits and a unit.
pub fn grpc_timeout(data: &[u8]) {
    let Ok(value) = std::str::from_utf8(data) else { return };
    let digits = value.len().saturating_sub(1);
    let sound = (1..=8).contains(&digits)
        && value.as_bytes()[..digits].iter().all(u8::is_ascii_digit)
        && matches!(value.as_bytes()[digits], b'H' | b'M' | b'S' | b'm' | b'u' | b'n');
    assert_eq!(timeout::parse(value).is_ok(), sound, "{value:?}");
}

/// A WebSocket message, as the first of a call and as a later one.
pub fn websocket(data: &[u8]) {
    if check_headers(data).is_ok() {
        assert!(data.iter().all(|byte| byte.is_ascii_graphic() || b"\r\n\t ".contains(byte)));
    }
    match grpc_websocket::read(Bytes::copy_from_slice(data)) {
        Ok(Input::Data(bytes)) => assert_eq!([&[0], &bytes[..]].concat(), data),
        Ok(Input::HalfClose) => assert_eq!(data, [1]),
        Err(_) => assert!(data != [1] && data.first() != Some(&0)),
    }
}

fn cuts(data: &[u8]) -> impl Iterator<Item = usize> {
    [1, 4, 5, 6, data.len() / 2].into_iter().filter(|at| *at < data.len())
}

fn read_frame(parts: &[&[u8]]) -> Option<Bytes> {
    let mut reader = UnaryReader::new(LIMIT);
    parts.iter().try_for_each(|part| reader.push(part)).ok()?;
    reader.finish().ok()
}

fn decode_text(parts: &[&[u8]]) -> Option<Vec<u8>> {
    let (mut decoder, mut out) = (TextDecoder::default(), Vec::new());
    parts.iter().try_for_each(|part| decoder.push(part, &mut out)).ok()?;
    decoder.finish().ok()?;
    Some(out)
}

fn read_body(mode: Mode, parts: &[&[u8]]) -> Result<Bytes, BodyError> {
    let mut reader = BodyReader::new(mode, LIMIT);
    parts.iter().try_for_each(|part| reader.push(part))?;
    reader.finish()
}
