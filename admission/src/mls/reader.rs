//! The TLS presentation language as RFC 9420 section 2.1 uses it, over a slice.

use thiserror::Error;

/// Why bytes are not what the syntax demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SyntaxError {
    /// The bytes end inside a field.
    #[error("it ends in the middle of a field")]
    Truncated,
    /// The first two bits of a vector length are 11, which RFC 9420 section 2.1.2 forbids.
    #[error("a vector length starts with the reserved bits 11")]
    ReservedLength,
    /// A vector length takes more bytes than it needs.
    #[error("a vector length is not written in its shortest form")]
    LongLength,
    /// Something follows where the object must end.
    #[error("{0} bytes follow it")]
    TrailingBytes(usize),
    /// A field that selects what follows has a value that selects nothing.
    #[error("{field} has the value {value}, which is not allowed here")]
    UnknownValue {
        /// The field's name in RFC 9420.
        field: &'static str,
        /// What it held.
        value: u16,
    },
    /// The data of an extension is not what its type holds.
    #[error("the data of an extension of type {0} is not what this type holds")]
    ExtensionData(u16),
    /// One list of extensions has a type twice.
    #[error("extension type {0} stands twice in one list")]
    RepeatedExtension(u16),
}

pub(super) type Result<T> = std::result::Result<T, SyntaxError>;

/// A position in bytes that are being parsed.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Demands that nothing is left.
    pub(crate) const fn finish(&self) -> Result<()> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(SyntaxError::TrailingBytes(left)),
        }
    }

    /// The bytes that were read since the reader stood at `start`.
    pub(super) fn since(&self, start: &Self) -> &'a [u8] {
        &start.rest[..start.rest.len() - self.rest.len()]
    }

    /// `opaque field[len]`.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(SyntaxError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(SyntaxError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// `opaque field<V>`: a length of 1, 2 or 4 bytes in its shortest form, and as many bytes.
    pub(crate) fn vector(&mut self) -> Result<&'a [u8]> {
        let first = self.u8()?;
        let head = u32::from(first & 0b0011_1111);
        let (len, shortest_for) = match first >> 6 {
            0 => (head, 0),
            1 => (head << 8 | u32::from(self.u8()?), 1 << 6),
            2 => {
                let [a, b, c] = self.array()?;
                (u32::from_be_bytes([first & 0b0011_1111, a, b, c]), 1 << 14)
            }
            _ => return Err(SyntaxError::ReservedLength),
        };
        if len < shortest_for {
            return Err(SyntaxError::LongLength);
        }
        self.take(usize::try_from(len).map_err(|_| SyntaxError::Truncated)?)
    }

    /// `T field<V>`: a vector that is filled by elements exactly. Every element of MLS takes at least one byte.
    pub(super) fn list(&mut self, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let mut elements = Self::new(self.vector()?);
        while !elements.rest.is_empty() {
            element(&mut elements)?;
        }
        Ok(())
    }

    /// `optional<T> field`.
    pub(super) fn optional(&mut self, value: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        match self.u8()? {
            0 => Ok(()),
            1 => value(self),
            other => Err(SyntaxError::UnknownValue { field: "optional.present", value: other.into() }),
        }
    }
}
