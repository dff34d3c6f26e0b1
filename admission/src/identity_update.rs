//! Identity updates: addressed by their inbox id, in hexadecimal of either case (TOPIC-002).

use sealog_proto::associations::IdentityUpdate;
use sealog_proto::{Kind, Topic};

use crate::Rejection;

pub(crate) fn topic(update: &IdentityUpdate) -> Result<Topic, Rejection> {
    let inbox_id = decode_hex(&update.inbox_id).ok_or(Rejection::InboxId)?;
    Topic::derive(Kind::IdentityUpdate, &inbox_id).map_err(|_| Rejection::InboxId)
}

/// The bytes that 64 hexadecimal characters stand for.
fn decode_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
    }
    Some(bytes)
}

const fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
