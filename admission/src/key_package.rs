//! Key packages: one `KeyPackage` of RFC 9420 section 10 and nothing behind it, addressed by its leaf's signature key.

use sealog_proto::backend::KeyPackage;
use sealog_proto::{Kind, Topic};

use crate::Rejection;
use crate::mls::{self, Reader};

pub(crate) fn topic(package: &KeyPackage) -> Result<Topic, Rejection> {
    let mut reader = Reader::new(&package.key_package_tls_serialized);
    let parsed = mls::key_package(&mut reader)
        .and_then(|parsed| reader.finish().map(|()| parsed))
        .map_err(Rejection::KeyPackage)?;
    Topic::derive(Kind::KeyPackage, parsed.signature_key)
        .map_err(|_| Rejection::SignatureKeyLength(parsed.signature_key.len()))
}
