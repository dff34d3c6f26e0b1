//! `MLSMessage`, `PublicMessage` and `PrivateMessage` (RFC 9420 section 6).

use super::commit;
use super::reader::{Reader, Result, SyntaxError};

const MLS10: u16 = 1;
const PUBLIC_MESSAGE: u16 = 1;
const PRIVATE_MESSAGE: u16 = 2;

/// What a group message says in the clear.
pub(crate) struct Frame<'a> {
    pub(crate) group_id: &'a [u8],
    pub(crate) content_type: ContentType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentType {
    Application,
    Proposal,
    Commit,
}

impl ContentType {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.u8()? {
            1 => Ok(Self::Application),
            2 => Ok(Self::Proposal),
            3 => Ok(Self::Commit),
            other => Err(SyntaxError::UnknownValue { field: "content_type", value: other.into() }),
        }
    }
}

/// Reads one whole `MLSMessage` that carries a `PublicMessage` or a `PrivateMessage`; what follows it stays in the reader.
pub(crate) fn group_frame<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>> {
    match reader.u16()? {
        MLS10 => {}
        other => return Err(SyntaxError::UnknownValue { field: "version", value: other }),
    }
    match reader.u16()? {
        PUBLIC_MESSAGE => public_message(reader),
        PRIVATE_MESSAGE => private_message(reader),
        other => Err(SyntaxError::UnknownValue { field: "wire_format", value: other }),
    }
}

fn private_message<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>> {
    let group_id = reader.vector()?;
    let _epoch = reader.u64()?;
    let content_type = ContentType::read(reader)?;
    let _authenticated_data = reader.vector()?;
    let _encrypted_sender_data = reader.vector()?;
    let _ciphertext = reader.vector()?;
    Ok(Frame { group_id, content_type })
}

fn public_message<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>> {
    let group_id = reader.vector()?;
    let _epoch = reader.u64()?;
    let from_member = sender_is_member(reader)?;
    let _authenticated_data = reader.vector()?;
    let content_type = ContentType::read(reader)?;
    match content_type {
        ContentType::Application => drop(reader.vector()?),
        ContentType::Proposal => commit::proposal(reader)?,
        ContentType::Commit => commit::commit(reader)?,
    }
    let _signature = reader.vector()?;
    if content_type == ContentType::Commit {
        let _confirmation_tag = reader.vector()?;
    }
    if from_member {
        let _membership_tag = reader.vector()?;
    }
    Ok(Frame { group_id, content_type })
}

fn sender_is_member(reader: &mut Reader<'_>) -> Result<bool> {
    let sender_type = reader.u8()?;
    match sender_type {
        // member and external: an index follows
        1 | 2 => drop(reader.u32()?),
        // new_member_proposal and new_member_commit
        3 | 4 => {}
        other => return Err(SyntaxError::UnknownValue { field: "sender_type", value: other.into() }),
    }
    Ok(sender_type == 1)
}
