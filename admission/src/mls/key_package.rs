//! `KeyPackage` and `LeafNode` (RFC 9420 sections 10 and 7.2).

use std::collections::BTreeSet;

use super::reader::{Reader, Result, SyntaxError};

/// The field of a key package that admission needs.
pub(crate) struct KeyPackage<'a> {
    /// The leaf node's signature key, of any length.
    pub(crate) signature_key: &'a [u8],
}

/// Reads one `KeyPackage`. Version and cipher suite are read, not judged.
pub(crate) fn key_package<'a>(reader: &mut Reader<'a>) -> Result<KeyPackage<'a>> {
    let _version = reader.u16()?;
    let _cipher_suite = reader.u16()?;
    let _init_key = reader.vector()?;
    let signature_key = leaf_node(reader)?;
    extensions(reader)?;
    let _signature = reader.vector()?;
    Ok(KeyPackage { signature_key })
}

/// Reads one `LeafNode` and returns its signature key.
pub(super) fn leaf_node<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let _encryption_key = reader.vector()?;
    let signature_key = reader.vector()?;
    credential(reader)?;
    capabilities(reader)?;
    match reader.u8()? {
        // key_package: a lifetime
        1 => {
            let _not_before = reader.u64()?;
            let _not_after = reader.u64()?;
        }
        // update
        2 => {}
        // commit: the parent hash
        3 => drop(reader.vector()?),
        other => return Err(SyntaxError::UnknownValue { field: "leaf_node_source", value: other.into() }),
    }
    extensions(reader)?;
    let _signature = reader.vector()?;
    Ok(signature_key)
}

/// A type and, for the two types of RFC 9420 as for any other in use, one vector.
fn credential(reader: &mut Reader<'_>) -> Result<()> {
    let _credential_type = reader.u16()?;
    let _content = reader.vector()?;
    Ok(())
}

/// Five lists of numbers: versions, cipher suites, extensions, proposals, credentials. Any number may stand there.
fn capabilities(reader: &mut Reader<'_>) -> Result<()> {
    for _ in 0..5 {
        reader.list(|number| number.u16().map(drop))?;
    }
    Ok(())
}

/// A list of typed, opaque values, each type at most once.
pub(super) fn extensions(reader: &mut Reader<'_>) -> Result<()> {
    let mut seen = BTreeSet::new();
    reader.list(|extension| {
        let extension_type = extension.u16()?;
        let _extension_data = extension.vector()?;
        if seen.insert(extension_type) { Ok(()) } else { Err(SyntaxError::RepeatedExtension(extension_type)) }
    })
}
