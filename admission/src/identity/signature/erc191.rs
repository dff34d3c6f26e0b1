//! A plain wallet: recoverable ECDSA over secp256k1 (EIP-191).
//!
//! There is no wrong signature of a sound form, only a wrong signer: whatever recovers names some address.

use k256::elliptic_curve::ops::{LinearCombination, Reduce};
use k256::elliptic_curve::point::DecompressPoint;
use k256::elliptic_curve::scalar::IsHigh;
use k256::elliptic_curve::sec1::ToEncodedPoint;
use k256::elliptic_curve::subtle::Choice;
use k256::elliptic_curve::{Field, PrimeField};
use k256::{AffinePoint, FieldBytes, ProjectivePoint, Scalar, U256};
use sealog_proto::associations::RecoverableEcdsaSignature;
use sha3::{Digest, Keccak256};

use super::{Evidence, SignedText};
use crate::identity::{Identifier, IdentityRejection};

/// A signature in its one canonical form: s in the lower half, recovery parity 0 or 1.
pub(crate) struct Form {
    /// As in the signature: the x-coordinate of a point, or nothing.
    r_bytes: FieldBytes,
    r: Scalar,
    s: Scalar,
    is_odd: bool,
}

impl Form {
    pub(super) fn read(signature: &RecoverableEcdsaSignature) -> Result<Self, IdentityRejection> {
        const REFUSED: IdentityRejection = IdentityRejection::EcdsaForm;
        let bytes: &[u8; 65] = signature.bytes.as_ref().try_into().map_err(|_| REFUSED)?;
        let is_odd = match bytes[64] {
            0 | 27 => false,
            1 | 28 => true,
            _ => return Err(REFUSED),
        };
        let r_bytes = *FieldBytes::from_slice(&bytes[..32]);
        let r = scalar(r_bytes).ok_or(REFUSED)?;
        let s = scalar(*FieldBytes::from_slice(&bytes[32..64])).ok_or(REFUSED)?;
        // Of s and -s, each with its own parity, both stand for the same signer.
        let is_high = bool::from(s.is_high());
        Ok(Self { r_bytes, r, s: if is_high { -s } else { s }, is_odd: is_odd ^ is_high })
    }

    pub(super) fn verify(&self, text: &SignedText) -> Result<Evidence, IdentityRejection> {
        let key = self.recover(&text.personal_hash()).ok_or(IdentityRejection::EcdsaRecovery)?;
        let replay_key = [&self.r_bytes[..], &self.s.to_repr(), &[u8::from(self.is_odd)]].concat();
        Ok(Evidence::new(address(&key), None, &replay_key))
    }

    /// The public key (SEC 1, section 4.1.6). It verifies the signature by construction, so that verifying it, as
    /// `ecdsa::VerifyingKey::recover_from_prehash` does, would only double the cost; a test compares the two.
    fn recover(&self, hash: &[u8; 32]) -> Option<AffinePoint> {
        let point = AffinePoint::decompress(&self.r_bytes, Choice::from(u8::from(self.is_odd)));
        let point = ProjectivePoint::from(Option::<AffinePoint>::from(point)?);
        let hash = <Scalar as Reduce<U256>>::reduce_bytes(&(*hash).into());
        let inverse: Scalar = Option::from(Field::invert(&self.r))?;
        let key = ProjectivePoint::lincomb(
            &ProjectivePoint::GENERATOR,
            &-(inverse * hash),
            &point,
            &(inverse * self.s),
        )
        .to_affine();
        (key != AffinePoint::IDENTITY).then_some(key)
    }
}

/// In 1 to n - 1.
fn scalar(bytes: FieldBytes) -> Option<Scalar> {
    Option::from(Scalar::from_repr(bytes)).filter(|scalar| *scalar != Scalar::ZERO)
}

fn address(key: &AffinePoint) -> Identifier {
    let point = key.to_encoded_point(false);
    let hash = Keccak256::digest(&point.as_bytes()[1..]);
    Identifier::Ethereum(format!("0x{}", base16ct::lower::encode_string(&hash[12..])).into())
}
