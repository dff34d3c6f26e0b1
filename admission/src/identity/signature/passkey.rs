//! A passkey: ECDSA over P-256 with what an authenticator wraps around a challenge (WebAuthn).
//!
//! Only the challenge and the signature are judged. Ceremony, origin, relying party, flags and counters are not
//! (SEC-032), so this is no WebAuthn relying party.

use bytes::Bytes;
use p256::ecdsa::signature::Verifier;
use p256::ecdsa::{Signature, VerifyingKey};
use sealog_proto::associations::RecoverablePasskeySignature;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Evidence, SignedText};
use crate::identity::{Identifier, IdentityRejection};

/// `CollectedClientData`, as far as every party reads it: an origin must be there, and can be any.
#[derive(Deserialize)]
struct ClientData {
    challenge: String,
    #[serde(rename = "origin")]
    _origin: String,
}

pub(crate) struct Form<'a> {
    carried: &'a RecoverablePasskeySignature,
    signature: Signature,
}

impl<'a> Form<'a> {
    pub(super) fn read(
        carried: &'a RecoverablePasskeySignature,
        text: &SignedText,
    ) -> Result<Self, IdentityRejection> {
        if client_data(&carried.client_data_json)?.challenge != text.challenge() {
            return Err(IdentityRejection::PasskeyChallenge);
        }
        // Compressed or uncompressed. p256 would also take the compact form, which SEC1 does not have.
        if !matches!(carried.public_key.first(), Some(2..=4)) {
            return Err(IdentityRejection::PasskeyKey);
        }
        let signature =
            Signature::from_der(&carried.signature).map_err(|_| IdentityRejection::PasskeySignatureForm)?;
        Ok(Self { carried, signature })
    }

    pub(super) fn verify(&self, _: &SignedText) -> Result<Evidence, IdentityRejection> {
        let RecoverablePasskeySignature { public_key, authenticator_data, client_data_json, .. } =
            self.carried;
        let key = VerifyingKey::from_sec1_bytes(public_key).map_err(|_| IdentityRejection::PasskeyKey)?;
        let signed = [authenticator_data, &Sha256::digest(client_data_json)[..]].concat();
        key.verify(&signed, &self.signature).map_err(|_| IdentityRejection::PasskeySignature)?;
        // s and -s verify alike: the lower stands for both.
        let canonical = self.signature.normalize_s().unwrap_or(self.signature);
        Ok(Evidence::new(Identifier::Passkey(public_key.clone()), None, &canonical.to_bytes()))
    }
}

fn client_data(json: &Bytes) -> Result<ClientData, IdentityRejection> {
    // serde would also read the members from an array.
    let is_object = json.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if !is_object {
        return Err(IdentityRejection::PasskeyClientData);
    }
    serde_json::from_slice(json).map_err(|_| IdentityRejection::PasskeyClientData)
}
