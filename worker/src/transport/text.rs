//! The text mode: the same bytes as base64.
//!
//! A client may pad wherever it flushes, so the text is a row of segments, each with its own padding, and a part of
//! the body can end anywhere.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Characters that decode together.
const GROUP: usize = 4;

/// Why text is no base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A character or padding where none belongs.
    #[error("the request body is not valid base64, as application/grpc-web-text demands")]
    Invalid,
    /// The last group is incomplete.
    #[error("the request body ends inside a base64 group: pad it with '=' to a multiple of 4 characters")]
    Unfinished,
}

/// Decodes text part by part.
#[derive(Debug, Default)]
pub struct TextDecoder {
    carry: [u8; GROUP],
    carried: usize,
}

impl TextDecoder {
    /// Decodes the next part and appends what it gives to `out`.
    pub fn push(&mut self, mut text: &[u8], out: &mut Vec<u8>) -> Result<(), TextError> {
        if self.carried > 0 {
            let (head, rest) = text.split_at(text.len().min(GROUP - self.carried));
            self.carry[self.carried..][..head.len()].copy_from_slice(head);
            self.carried += head.len();
            if self.carried < GROUP {
                return Ok(());
            }
            self.carried = 0;
            decode(&self.carry, out)?;
            text = rest;
        }
        let (mut groups, tail) = text.split_at(text.len() - text.len() % GROUP);
        while !groups.is_empty() {
            // Padding ends a segment; the next one begins at the next group.
            let end =
                groups.iter().position(|&c| c == b'=').map_or(groups.len(), |at| at - at % GROUP + GROUP);
            let (segment, rest) = groups.split_at(end);
            decode(segment, out)?;
            groups = rest;
        }
        self.carry[..tail.len()].copy_from_slice(tail);
        self.carried = tail.len();
        Ok(())
    }

    /// Checks that the text ended between two groups.
    pub fn finish(&self) -> Result<(), TextError> {
        if self.carried == 0 { Ok(()) } else { Err(TextError::Unfinished) }
    }
}

fn decode(segment: &[u8], out: &mut Vec<u8>) -> Result<(), TextError> {
    STANDARD.decode_vec(segment, out).map_err(|_| TextError::Invalid)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode_parts(parts: &[&[u8]]) -> Result<Vec<u8>, TextError> {
        let (mut decoder, mut out) = (TextDecoder::default(), Vec::new());
        for part in parts {
            decoder.push(part, &mut out)?;
        }
        decoder.finish()?;
        Ok(out)
    }

    #[test]
    fn padding_may_occur_at_any_flush() {
        assert_eq!(decode_parts(&[b"AA==AAAAAAA="]), Ok(vec![0; 6]));
        assert_eq!(decode_parts(&[b"A", b"A=", b"=AAA", b"AAAA", b"="]), Ok(vec![0; 6]));
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in ["A=AA", "====", "AA=A", "AAA\n", "AA-_", "A==="] {
            assert_eq!(decode_parts(&[text.as_bytes()]), Err(TextError::Invalid), "{text:?}");
        }
        for text in ["A", "AA", "AAA", "AAAAA"] {
            assert_eq!(decode_parts(&[text.as_bytes()]), Err(TextError::Unfinished), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn segments_decode_to_what_was_encoded(
            segments: Vec<Vec<u8>>,
            cuts: Vec<prop::sample::Index>,
        ) {
            let text: String = segments.iter().map(|segment| STANDARD.encode(segment)).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.sort_unstable();
            let (mut decoder, mut out, mut from) = (TextDecoder::default(), Vec::new(), 0);
            for cut in cuts {
                decoder.push(&text.as_bytes()[from..cut], &mut out).unwrap();
                from = cut;
            }
            decoder.push(&text.as_bytes()[from..], &mut out).unwrap();
            prop_assert_eq!(decoder.finish(), Ok(()));
            prop_assert_eq!(out, segments.concat());
        }

        #[test]
        fn any_bytes_decode_or_fail(parts: Vec<Vec<u8>>) {
            let (mut decoder, mut out) = (TextDecoder::default(), Vec::new());
            let length: usize = parts.iter().map(Vec::len).sum();
            if parts.iter().all(|part| decoder.push(part, &mut out).is_ok()) && decoder.finish().is_ok() {
                prop_assert!(out.len() <= length / 4 * 3);
            }
        }
    }
}
