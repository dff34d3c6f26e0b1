//! Cutting the client's bytes into gRPC frames (rule 21). WebSocket messages may split a frame anywhere, and the object
//! may hibernate in the middle of one.

use bytes::{Buf, Bytes, BytesMut};
use sealog_proto::status::Code;

use super::store::Store;
use super::turn::{Status, Stop};
use crate::{Fault, Sql};

/// Flag and length.
pub(super) const HEADER: usize = 5;
/// So much of a frame is kept in memory and with the socket. What grows beyond it is moved to storage in one piece, so
/// that a frame costs rows in proportion to its length, however finely it was cut.
pub(super) const MAX_TAIL: usize = 2_048;

/// A frame of which not all has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Partial {
    /// Bytes of the whole frame; 0 while its header is not complete.
    pub(super) length: usize,
    /// How many of the bytes that came are in storage.
    pub(super) stored: usize,
    /// Those behind them.
    pub(super) tail: BytesMut,
}

impl Partial {
    /// Whether a frame has begun.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes the next message off `input`; or all of `input`, when the frame goes on behind it. A frame that is refused
    /// is refused by its header. `max_bytes` is what a message may have.
    pub(super) fn next(
        &mut self,
        sql: &dyn Sql,
        store: &mut Store,
        input: &mut Bytes,
        max_bytes: usize,
    ) -> Result<Option<Bytes>, Stop> {
        if self.length == 0 {
            let missing = HEADER.saturating_sub(self.tail.len()).min(input.len());
            self.tail.extend_from_slice(&input.split_to(missing));
            if self.tail.len() < HEADER {
                return Ok(None);
            }
            self.length = HEADER + judge(&self.tail, max_bytes)?;
        }
        let missing = self.length.saturating_sub(self.stored + self.tail.len());
        if input.len() < missing {
            self.tail.extend_from_slice(input);
            input.clear();
            if self.tail.len() > MAX_TAIL {
                store.add_partial(sql, &self.tail)?;
                self.stored += self.tail.len();
                self.tail.clear();
            }
            return Ok(None);
        }
        let rest = input.split_to(missing);
        let before = std::mem::take(self);
        if before.stored == 0 && before.tail.len() == HEADER {
            return Ok(Some(rest)); // nearly every frame: whole, in one message
        }
        let mut frame = BytesMut::with_capacity(before.length);
        if before.stored > 0 {
            store.take_partial(sql, &mut frame)?;
            Fault::assert(frame.len() == before.stored, "storage has the beginning of the frame")?;
        }
        frame.extend_from_slice(&before.tail);
        frame.extend_from_slice(&rest);
        frame.advance(HEADER);
        Ok(Some(frame.freeze()))
    }
}

/// The length that a header states.
fn judge(header: &[u8], max_bytes: usize) -> Result<usize, Status> {
    let (flag, mut length) = (header[0], &header[1..HEADER]);
    let length = usize::try_from(length.get_u32()).unwrap_or(usize::MAX);
    match flag {
        0 if length <= max_bytes => Ok(length),
        0 => Err(Status::new(
            Code::OutOfRange,
            format!("a request frame has {length} bytes; at most {max_bytes} are taken"),
        )),
        1 => Err(Status::new(Code::Unimplemented, "compressed frames are not taken; send them uncompressed")),
        _ => Err(Status::new(Code::InvalidArgument, "a request frame has an unknown flag; only 0 is taken")),
    }
}
