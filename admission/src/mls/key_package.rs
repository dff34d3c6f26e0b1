//! `KeyPackage` and `LeafNode` (RFC 9420 sections 10 and 7.2).

use std::collections::BTreeMap;

use super::reader::{Reader, Result, SyntaxError};

/// One `KeyPackage`. Keys and signatures may have any length here.
pub(crate) struct KeyPackage<'a> {
    pub(crate) version: u16,
    pub(crate) cipher_suite: u16,
    pub(crate) init_key: &'a [u8],
    pub(crate) leaf: LeafNode<'a>,
    pub(crate) extensions: Extensions<'a>,
    /// `KeyPackageTBS`: the bytes that `signature` is over.
    pub(crate) signed: &'a [u8],
    pub(crate) signature: &'a [u8],
}

/// One `LeafNode`.
pub(crate) struct LeafNode<'a> {
    pub(crate) encryption_key: &'a [u8],
    pub(crate) signature_key: &'a [u8],
    pub(crate) credential: Credential<'a>,
    /// `capabilities.extensions`: numbers of 2 bytes.
    pub(crate) listed_extensions: &'a [u8],
    pub(crate) source: LeafNodeSource,
    pub(crate) extensions: Extensions<'a>,
    /// The leaf up to its signature. Of a leaf that is part of a key package, this is the whole `LeafNodeTBS`.
    pub(crate) signed: &'a [u8],
    pub(crate) signature: &'a [u8],
}

/// A type and, for the two types of RFC 9420 as for any other in use, one vector.
pub(crate) struct Credential<'a> {
    pub(crate) credential_type: u16,
    pub(crate) content: &'a [u8],
}

/// What the leaf node was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafNodeSource {
    /// A key package, with its lifetime in seconds since 1970: from the first, up to the second.
    KeyPackage {
        not_before: u64,
        not_after: u64,
    },
    Update,
    Commit,
}

/// The data of each extension, by its type.
pub(crate) type Extensions<'a> = BTreeMap<u16, &'a [u8]>;

/// Reads one `KeyPackage`. Version and cipher suite are read, not judged.
pub(crate) fn key_package<'a>(reader: &mut Reader<'a>) -> Result<KeyPackage<'a>> {
    let start = reader.clone();
    let version = reader.u16()?;
    let cipher_suite = reader.u16()?;
    let init_key = reader.vector()?;
    let leaf = leaf_node(reader)?;
    let extensions = extensions(reader)?;
    let signed = reader.since(&start);
    let signature = reader.vector()?;
    Ok(KeyPackage { version, cipher_suite, init_key, leaf, extensions, signed, signature })
}

/// Reads one `LeafNode`.
pub(super) fn leaf_node<'a>(reader: &mut Reader<'a>) -> Result<LeafNode<'a>> {
    let start = reader.clone();
    let encryption_key = reader.vector()?;
    let signature_key = reader.vector()?;
    let credential = Credential { credential_type: reader.u16()?, content: reader.vector()? };
    let listed_extensions = capabilities(reader)?;
    let source = match reader.u8()? {
        1 => LeafNodeSource::KeyPackage { not_before: reader.u64()?, not_after: reader.u64()? },
        2 => LeafNodeSource::Update,
        3 => {
            let _parent_hash = reader.vector()?;
            LeafNodeSource::Commit
        }
        other => return Err(SyntaxError::UnknownValue { field: "leaf_node_source", value: other.into() }),
    };
    let extensions = extensions(reader)?;
    let signed = reader.since(&start);
    let signature = reader.vector()?;
    Ok(LeafNode {
        encryption_key,
        signature_key,
        credential,
        listed_extensions,
        source,
        extensions,
        signed,
        signature,
    })
}

/// Five lists of numbers, of which the third is returned. Any number may stand in any of them.
fn capabilities<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let _versions = numbers(reader)?;
    let _cipher_suites = numbers(reader)?;
    let extensions = numbers(reader)?;
    let _proposals = numbers(reader)?;
    let _credentials = numbers(reader)?;
    Ok(extensions)
}

/// `uint16 field<V>`, as its bytes.
fn numbers<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let bytes = reader.vector()?;
    if bytes.len().is_multiple_of(2) { Ok(bytes) } else { Err(SyntaxError::Truncated) }
}

/// A list of typed, opaque values, each type at most once.
pub(super) fn extensions<'a>(reader: &mut Reader<'a>) -> Result<Extensions<'a>> {
    let mut extensions = Extensions::new();
    reader.list(|extension| {
        let extension_type = extension.u16()?;
        match extensions.insert(extension_type, extension.vector()?) {
            None => Ok(()),
            Some(_) => Err(SyntaxError::RepeatedExtension(extension_type)),
        }
    })?;
    Ok(extensions)
}
