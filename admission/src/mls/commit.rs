//! Proposals and commits (RFC 9420 section 12), with the proposals of the extensions draft that clients use.

use super::key_package::{extensions, key_package, leaf_node};
use super::reader::{Reader, Result, SyntaxError};

/// Reads one Commit: its proposals, by value or by reference, and the path if there is one.
pub(super) fn commit(reader: &mut Reader<'_>) -> Result<()> {
    reader.list(|reader| match reader.u8()? {
        1 => proposal(reader),
        2 => reader.vector().map(drop),
        other => Err(SyntaxError::UnknownValue { field: "ProposalOrRef.type", value: other.into() }),
    })?;
    reader.optional(update_path)
}

fn update_path(reader: &mut Reader<'_>) -> Result<()> {
    leaf_node(reader)?;
    reader.list(|node| {
        let _encryption_key = node.vector()?;
        node.list(|encrypted_path_secret| {
            let _kem_output = encrypted_path_secret.vector()?;
            let _ciphertext = encrypted_path_secret.vector()?;
            Ok(())
        })
    })
}

/// Reads one Proposal.
pub(super) fn proposal(reader: &mut Reader<'_>) -> Result<()> {
    match reader.u16()? {
        // add
        1 => key_package(reader).map(drop),
        // update
        2 => leaf_node(reader).map(drop),
        // remove: a leaf index
        3 => reader.u32().map(drop),
        // psk
        4 => pre_shared_key_id(reader),
        // reinit
        5 => {
            let _group_id = reader.vector()?;
            let _version = reader.u16()?;
            let _cipher_suite = reader.u16()?;
            extensions(reader).map(drop)
        }
        // group_context_extensions
        7 => extensions(reader).map(drop),
        // app_data_update (draft)
        8 => app_data_update(reader),
        // app_ephemeral (draft)
        9 => {
            let _component_id = reader.u16()?;
            reader.vector().map(drop)
        }
        // self_remove (draft)
        10 => Ok(()),
        // external_init (6): the KEM output. Of a type that is unknown here RFC 9420 does not say where it ends:
        // clients read one vector, and so does this.
        _ => reader.vector().map(drop),
    }
}

fn app_data_update(reader: &mut Reader<'_>) -> Result<()> {
    let _component_id = reader.u16()?;
    match reader.u8()? {
        // update
        1 => reader.vector().map(drop),
        // remove
        2 => Ok(()),
        other => Err(SyntaxError::UnknownValue { field: "AppDataUpdate.op", value: other.into() }),
    }
}

fn pre_shared_key_id(reader: &mut Reader<'_>) -> Result<()> {
    match reader.u8()? {
        // external: its id
        1 => drop(reader.vector()?),
        // resumption: usage, group id, epoch
        2 => {
            let _usage = reader.u8()?;
            let _group_id = reader.vector()?;
            let _epoch = reader.u64()?;
        }
        // application (draft): component and id
        3 => {
            let _component_id = reader.u16()?;
            let _psk_id = reader.vector()?;
        }
        other => return Err(SyntaxError::UnknownValue { field: "psktype", value: other.into() }),
    }
    let _psk_nonce = reader.vector()?;
    Ok(())
}
