//! An installation: Ed25519ph (RFC 8032 section 5.1) with a context of its own.

use ed25519_dalek::{Signature, VerifyingKey};
use sealog_proto::associations::RecoverableEd25519Signature;

use super::{Evidence, SignedText};
use crate::identity::{Identifier, IdentityRejection};

/// The context that no other signature of a client has.
pub const INSTALLATION_CONTEXT: &[u8] = b"IDENTITY UPDATE SIGNATURE";

pub(crate) struct Form {
    key: bytes::Bytes,
    signature: Signature,
}

impl Form {
    pub(super) fn read(signature: &RecoverableEd25519Signature) -> Result<Self, IdentityRejection> {
        const REFUSED: IdentityRejection = IdentityRejection::InstallationForm;
        if signature.public_key.len() != ed25519_dalek::PUBLIC_KEY_LENGTH {
            return Err(REFUSED);
        }
        Ok(Self {
            key: signature.public_key.clone(),
            signature: Signature::from_slice(&signature.bytes).map_err(|_| REFUSED)?,
        })
    }

    /// Not the strict check: every other party accepts keys of small order here.
    pub(super) fn verify(&self, text: &SignedText) -> Result<Evidence, IdentityRejection> {
        VerifyingKey::try_from(self.key.as_ref())
            .and_then(|key| key.verify_prehashed(text.sha512(), Some(INSTALLATION_CONTEXT), &self.signature))
            .map_err(|_| IdentityRejection::InstallationSignature)?;
        Ok(Evidence::new(Identifier::Installation(self.key.clone()), None, &self.signature.to_bytes()))
    }
}
