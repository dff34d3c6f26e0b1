//! The syntax of MLS objects (RFC 9420), walked without building them.
//!
//! Admission needs two facts of an MLS object: that it parses, and a few of its fields. So these functions move
//! a [`Reader`] over the bytes and return borrowed fields; they allocate next to nothing, whatever the input says.
//! Contents behind their own length that RFC 9420 leaves opaque (extension data, ciphertexts) are not looked into.
//! `docs/decisions/0003` says why this is not left to an MLS library.

mod commit;
mod frame;
mod key_package;
mod reader;
mod signed;

pub(crate) use frame::{ContentType, group_frame};
pub(crate) use key_package::{Credential, KeyPackage, LeafNode, LeafNodeSource, key_package};
pub(crate) use reader::Reader;
pub use reader::SyntaxError;
pub(crate) use signed::sign_content;
