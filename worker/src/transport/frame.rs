//! The one frame of a unary request.

use bytes::Bytes;

use sealog_proto::grpc_web::{COMPRESSED, HEADER_LEN, MESSAGE};

/// How far the buffer may run ahead of what has arrived. A client that announces 25 MiB and sends nothing must not
/// make the isolate reserve them. One that does send them is moved to a larger buffer twice, and leaves holes of a few
/// MiB only: with a smaller factor the holes cost more memory than the message.
const GROWTH: usize = 16;

/// Why a request's frames are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The message is longer than what is carried (API-282).
    #[error("the request message has {length} bytes, over the limit of {limit}: send less in one request")]
    TooLong {
        /// Bytes announced.
        length: u64,
        /// Bytes carried at most.
        limit: usize,
    },
    /// The compressed flag is set.
    #[error("the request message is compressed: send it uncompressed (grpc-encoding: identity)")]
    Compressed,
    /// The body is empty.
    #[error(
        "the request body is empty: send one gRPC-Web frame, byte 0, 4 bytes of big-endian length, message"
    )]
    Missing,
    /// The frame is no message.
    #[error("the request body begins with a frame of type 0x{0:02x}: a unary call begins with byte 0x00")]
    NotAMessage(u8),
    /// The body ends inside the frame.
    #[error("the request body ends after {received} of the frame's {announced} bytes")]
    Short {
        /// Bytes that the frame should have, its header included.
        announced: usize,
        /// Bytes that arrived.
        received: usize,
    },
    /// Something follows the message.
    #[error("the request body goes on after the first message: a unary call sends exactly one frame")]
    Trailing,
}

/// Collects the single message of a unary request, part by part. Holds no more than the limit.
#[derive(Debug)]
pub struct UnaryReader {
    limit: usize,
    header: [u8; HEADER_LEN],
    header_filled: usize,
    announced: usize,
    message: Vec<u8>,
}

impl UnaryReader {
    /// Accepts a message of `limit` bytes at most.
    pub fn new(limit: usize) -> Self {
        Self { limit, header: [0; HEADER_LEN], header_filled: 0, announced: 0, message: Vec::new() }
    }

    /// Takes the next bytes of the body. After an error the rest of the body does not matter.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), FrameError> {
        if self.header_filled < HEADER_LEN {
            let (head, rest) = bytes.split_at(bytes.len().min(HEADER_LEN - self.header_filled));
            self.header[self.header_filled..][..head.len()].copy_from_slice(head);
            self.header_filled += head.len();
            if self.header_filled < HEADER_LEN {
                return Ok(());
            }
            self.announced = self.check_header()?;
            bytes = rest;
        }
        if bytes.len() > self.announced - self.message.len() {
            return Err(FrameError::Trailing);
        }
        self.reserve(bytes.len());
        self.message.extend_from_slice(bytes);
        Ok(())
    }

    /// The message, when the body ends where the message does.
    pub fn finish(self) -> Result<Bytes, FrameError> {
        if self.header_filled == 0 {
            return Err(FrameError::Missing);
        }
        if self.header_filled < HEADER_LEN || self.message.len() < self.announced {
            return Err(FrameError::Short {
                announced: HEADER_LEN + self.announced,
                received: self.header_filled + self.message.len(),
            });
        }
        Ok(self.message.into())
    }

    fn check_header(&self) -> Result<usize, FrameError> {
        let [flags, length @ ..] = self.header;
        match flags {
            MESSAGE => {}
            COMPRESSED => return Err(FrameError::Compressed),
            other => return Err(FrameError::NotAMessage(other)),
        }
        let length = u32::from_be_bytes(length);
        usize::try_from(length)
            .ok()
            .filter(|&length| length <= self.limit)
            .ok_or(FrameError::TooLong { length: length.into(), limit: self.limit })
    }

    fn reserve(&mut self, more: usize) {
        let needed = self.message.len() + more;
        if needed > self.message.capacity() {
            let target = self.announced.min(needed.saturating_mul(GROWTH));
            self.message.reserve_exact(target - self.message.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sealog_proto::grpc_web::{TRAILERS, frame};

    use super::*;

    fn read(limit: usize, parts: &[&[u8]]) -> Result<Bytes, FrameError> {
        let mut reader = UnaryReader::new(limit);
        for part in parts {
            reader.push(part)?;
        }
        reader.finish()
    }

    #[test]
    fn api_282_a_message_at_the_limit_is_read_and_one_byte_more_is_not() {
        assert_eq!(read(4, &[&frame(MESSAGE, b"four")]), Ok(Bytes::from_static(b"four")));
        assert_eq!(read(3, &[&frame(MESSAGE, b"four")]), Err(FrameError::TooLong { length: 4, limit: 3 }));
    }

    #[test]
    fn an_announced_length_over_the_limit_is_refused_before_the_message_arrives() {
        assert_eq!(
            read(1024, &[&[0, 0xff, 0xff, 0xff, 0xff]]),
            Err(FrameError::TooLong { length: u32::MAX.into(), limit: 1024 })
        );
    }

    #[test]
    fn an_announced_length_reserves_little_before_the_message_arrives() {
        let mut reader = UnaryReader::new(super::super::CEILING_BYTES);
        reader.push(&frame(MESSAGE, &vec![0; 20_000_000])[..105]).unwrap();
        assert!(reader.message.capacity() <= 100 * GROWTH);
    }

    #[test]
    fn every_malformed_body_has_its_own_error() {
        let whole = frame(MESSAGE, b"abc");
        assert_eq!(read(9, &[]), Err(FrameError::Missing));
        assert_eq!(read(9, &[&whole[..3]]), Err(FrameError::Short { announced: 5, received: 3 }));
        assert_eq!(read(9, &[&whole[..7]]), Err(FrameError::Short { announced: 8, received: 7 }));
        assert_eq!(read(9, &[&whole, b"x"]), Err(FrameError::Trailing));
        assert_eq!(read(9, &[&whole, &whole]), Err(FrameError::Trailing));
        assert_eq!(read(9, &[&frame(0x01, b"abc")]), Err(FrameError::Compressed));
        assert_eq!(read(9, &[&frame(TRAILERS, b"")]), Err(FrameError::NotAMessage(0x80)));
    }

    #[test]
    fn an_empty_message_is_a_message() {
        assert_eq!(read(0, &[&frame(MESSAGE, b"")]), Ok(Bytes::new()));
    }

    proptest! {
        #[test]
        fn any_split_reads_the_same(payload: Vec<u8>, cuts: Vec<prop::sample::Index>) {
            let whole = frame(MESSAGE, &payload);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
            cuts.sort_unstable();
            let mut reader = UnaryReader::new(payload.len());
            let mut from = 0;
            for cut in cuts {
                reader.push(&whole[from..cut]).unwrap();
                from = cut;
            }
            reader.push(&whole[from..]).unwrap();
            prop_assert_eq!(reader.finish().unwrap(), payload);
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(limit in 0_usize..64, parts: Vec<Vec<u8>>) {
            let mut reader = UnaryReader::new(limit);
            let mut failed = false;
            for part in &parts {
                failed = failed || reader.push(part).is_err();
                if failed { break }
                prop_assert!(reader.message.len() <= limit);
            }
            if !failed {
                let bytes = parts.concat();
                match reader.finish() {
                    Ok(message) => prop_assert_eq!(&bytes[HEADER_LEN..], message),
                    Err(FrameError::Missing | FrameError::Short { .. }) => {}
                    Err(error) => prop_assert!(false, "{error}"),
                }
            }
        }
    }
}
