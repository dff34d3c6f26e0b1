//! A request body on its way in: text or binary, decoded as it arrives, never held beyond its limit.

use bytes::Bytes;
use sealog_proto::grpc_web::HEADER_LEN;

use super::{
    frame::{FrameError, UnaryReader},
    metadata::Mode,
    text::{TextDecoder, TextError},
};

/// Why a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Its frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Its text.
    #[error(transparent)]
    Text(#[from] TextError),
}

/// Takes a body part by part and gives the message.
#[derive(Debug)]
pub struct BodyReader {
    text: Option<TextDecoder>,
    message: UnaryReader,
}

impl BodyReader {
    /// Accepts a message of `limit` bytes at most, counted decoded.
    pub fn new(mode: Mode, limit: usize) -> Self {
        let text = (mode == Mode::Text).then(TextDecoder::default);
        Self { text, message: UnaryReader::new(limit) }
    }

    /// Takes the next part.
    pub fn push(&mut self, part: &[u8]) -> Result<(), BodyError> {
        let Some(text) = &mut self.text else { return Ok(self.message.push(part)?) };
        let mut decoded = Vec::with_capacity(part.len() / 4 * 3 + 3);
        text.push(part, &mut decoded)?;
        Ok(self.message.push(&decoded)?)
    }

    /// The message, when the body is complete.
    pub fn finish(self) -> Result<Bytes, BodyError> {
        if let Some(text) = &self.text {
            text.finish()?;
        }
        Ok(self.message.finish()?)
    }
}

/// Judges a body by the length that its header announces, before any of it is read (API-282).
///
/// Text is judged by the least that it can decode to: one byte for each group of four characters.
pub fn check_announced(mode: Mode, content_length: u64, limit: usize) -> Result<(), FrameError> {
    let least = match mode {
        Mode::Binary => content_length,
        Mode::Text => content_length / 4,
    };
    let length = least.saturating_sub(HEADER_LEN as u64);
    if length > limit as u64 { Err(FrameError::TooLong { length, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn api_282_the_text_limit_counts_decoded_bytes() {
        let text = STANDARD.encode(b"\0\0\0\0\x04four");
        let read = |limit| {
            let mut body = BodyReader::new(Mode::Text, limit);
            body.push(text.as_bytes()).and_then(|()| body.finish())
        };
        assert_eq!(read(4), Ok(Bytes::from_static(b"four")));
        assert_eq!(read(3), Err(FrameError::TooLong { length: 4, limit: 3 }.into()));
    }

    #[test]
    fn text_that_goes_on_behind_the_message_is_refused() {
        let mut body = BodyReader::new(Mode::Text, 9);
        body.push(b"AAAAAAA=A").unwrap();
        assert_eq!(body.finish(), Err(TextError::Unfinished.into()));
    }

    #[test]
    fn api_282_an_announced_length_is_judged_only_when_it_cannot_fit() {
        assert_eq!(check_announced(Mode::Binary, 105, 100), Ok(()));
        assert!(check_announced(Mode::Binary, 106, 100).is_err());
        assert_eq!(check_announced(Mode::Text, 420, 100), Ok(()));
        assert!(check_announced(Mode::Text, 424, 100).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_message_or_an_error(limit in 0_usize..64, parts: Vec<Vec<u8>>) {
            let mut body = BodyReader::new(Mode::Text, limit);
            if parts.iter().all(|part| body.push(part).is_ok()) {
                prop_assert!(body.finish().map_or(0, |message| message.len()) <= limit);
            }
        }
    }
}
