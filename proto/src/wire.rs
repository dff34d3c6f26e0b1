//! Looking at protobuf bytes before they are decoded.
//!
//! Two bytes on the wire can become hundreds in memory: an empty element of a repeated field costs a whole struct.
//! A worker has 128 MB, and a request may carry 25 MiB, so a bound on a repeated field must be checked on the wire.

use bytes::{Buf, Bytes};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// One field of a message, as it stands on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field number.
    pub number: u32,
    /// The bytes of a length-delimited field, borrowed from the message; `None` for any other wire type.
    pub bytes: Option<Bytes>,
}

/// The top-level fields of a message, in wire order. Ends after the first error.
///
/// It accepts what `prost` accepts, apart from the wire type and the content of known fields, which are the
/// caller's to judge.
pub fn fields(message: Bytes) -> Fields {
    Fields { rest: message }
}

/// The iterator behind [`fields`].
#[derive(Clone, Debug)]
pub struct Fields {
    rest: Bytes,
}

impl Fields {
    fn read(&mut self) -> Result<Field, DecodeError> {
        let (number, wire_type) = decode_key(&mut self.rest)?;
        if wire_type != WireType::LengthDelimited {
            skip_field(wire_type, number, &mut self.rest, DecodeContext::default())?;
            return Ok(Field { number, bytes: None });
        }
        let mut ahead = self.rest.clone();
        let len = decode_varint(&mut ahead)?;
        // Moves over the field and reports a length that runs past the end.
        skip_field(wire_type, number, &mut self.rest, DecodeContext::default())?;
        let len = usize::try_from(len).expect("not longer than the message");
        Ok(Field { number, bytes: Some(ahead.split_to(len)) })
    }
}

impl Iterator for Fields {
    type Item = Result<Field, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.rest.has_remaining() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest.clear();
        }
        Some(field)
    }
}

/// How many elements of the repeated message field `number` a message has, counted without decoding them.
///
/// The guard of every request that bounds a count: call it before `decode`, and refuse what is over the bound. On
/// bytes that are no message it counts up to the fault, which is as far as `decode` would get.
pub fn count_repeated(message: &Bytes, number: u32) -> usize {
    fields(message.clone()).map_while(Result::ok).filter(|field| field.number == number).count()
}
