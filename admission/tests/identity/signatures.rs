//! The kinds of signatures at their edges (IDENT-030, SEC-030 to SEC-033).

use bytes::Bytes;
use k256::ecdsa::{RecoveryId, VerifyingKey};
use proptest::prelude::*;
use sealog_admission::Rejection;
use sealog_admission::identity::{Evidence, Identifier, IdentityRejection, SignedText, verify};
use sealog_proto::associations::signature::Signature;
use sealog_proto::associations::{RecoverableEcdsaSignature, RecoverableEd25519Signature};
use sha3::{Digest, Keccak256};

use crate::signers::{Signer, passkey_signature, passkey_signature_with};

const TEXT: &str = "a text";

fn text() -> SignedText {
    SignedText::new(TEXT.to_owned())
}

fn erc_191(bytes: &[u8]) -> Result<Evidence, Rejection> {
    let signature = RecoverableEcdsaSignature { bytes: Bytes::copy_from_slice(bytes) };
    verify(&Signature::Erc191(signature), &text())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Our recovery does not verify what it recovered. The library's does, and finds the same signer.
    #[test]
    fn ident_030_recovery_agrees_with_the_library(
        signed in any::<bool>(),
        seed in 1..255_u8,
        damage in any::<[u8; 64]>(),
        parity in 0..2_u8,
    ) {
        let Some(Signature::Erc191(real)) = Signer::wallet(seed).sign(TEXT).signature else { panic!("a wallet") };
        let mut bytes = if signed { real.bytes.to_vec() } else { [&damage[..], &[parity]].concat() };
        let ours = erc_191(&bytes).map(|evidence| evidence.signer);
        bytes[64] %= 27;
        let theirs = k256::ecdsa::Signature::from_slice(&bytes[..64]).ok().and_then(|signature| {
            let recovery = RecoveryId::from_byte(bytes[64])?;
            let (signature, recovery) = match signature.normalize_s() {
                Some(low) => (low, RecoveryId::new(!recovery.is_y_odd(), false)),
                None => (signature, recovery),
            };
            VerifyingKey::recover_from_prehash(&text().personal_hash(), &signature, recovery).ok()
        });
        let theirs = theirs.map(|key| {
            let hash = Keccak256::digest(&key.to_encoded_point(false).as_bytes()[1..]);
            Identifier::Ethereum(format!("0x{}", base16ct::lower::encode_string(&hash[12..])).into())
        });
        prop_assert_eq!(ours.ok(), theirs.clone());
        prop_assert!(!signed || theirs == Some(Signer::wallet(seed).identifier()));
    }
}

#[test]
fn an_ecdsa_signature_has_one_length_and_two_parities() {
    let Some(Signature::Erc191(real)) = Signer::wallet(1).sign(TEXT).signature else { panic!("a wallet") };
    let refused = Err(IdentityRejection::EcdsaForm.into());
    for last in 0..=255_u8 {
        let verdict = erc_191(&[&real.bytes[..64], &[last]].concat());
        assert_eq!(verdict.is_ok(), [0, 1, 27, 28].contains(&last), "{last}");
    }
    for len in (0..=130).filter(|len| *len != 65) {
        assert_eq!(erc_191(&vec![1; len]), refused, "{len}");
    }
    // No point has this x-coordinate.
    let nobody = [&[0; 31][..], &[5], &[0; 31], &[1], &[0]].concat();
    assert_eq!(erc_191(&nobody), Err(IdentityRejection::EcdsaRecovery.into()));
}

#[test]
fn an_installation_key_of_small_order_is_accepted() {
    let identity: Vec<u8> = [&[1][..], &[0; 31]].concat();
    let signature = RecoverableEd25519Signature {
        bytes: [identity.as_slice(), &[0; 32]].concat().into(),
        public_key: identity.clone().into(),
    };
    let evidence = verify(&Signature::InstallationKey(signature), &text()).expect("not the strict check");
    assert_eq!(evidence.signer, Identifier::Installation(identity.into()));
}

#[test]
fn an_installation_signature_has_its_lengths() {
    let Some(Signature::InstallationKey(real)) = Signer::installation(1).sign(TEXT).signature else {
        panic!("an installation")
    };
    for (key, signature) in [(31, 64), (33, 64), (0, 64), (32, 63), (32, 65), (32, 0)] {
        let resized = |bytes: &Bytes, len: usize| {
            let mut bytes = bytes.to_vec();
            bytes.resize(len, 0);
            Bytes::from(bytes)
        };
        let signature = RecoverableEd25519Signature {
            bytes: resized(&real.bytes, signature),
            public_key: resized(&real.public_key, key),
        };
        let verdict = verify(&Signature::InstallationKey(signature), &text());
        assert_eq!(verdict, Err(IdentityRejection::InstallationForm.into()));
    }
}

fn passkey(client_data: &str) -> Result<Evidence, Rejection> {
    let Signer::Passkey(key) = Signer::passkey(1) else { panic!("a passkey") };
    let client_data = client_data.replace("CHALLENGE", text().challenge());
    verify(&passkey_signature(&key, client_data.as_bytes()), &text())
}

#[test]
fn sec_030_client_data_is_an_object_with_a_challenge_and_an_origin() {
    for accepted in [
        r#"{"challenge":"CHALLENGE","origin":""}"#,
        r#" { "origin" : "https://example.org" , "challenge" : "CHALLENGE" } "#,
        r#"{"challenge":"CHALLENGE","origin":"o","type":7,"x":[{}],"x":null}"#,
        r#"{"\u0063hallenge":"CHALLENGE","origin":"\u00fc"}"#,
    ] {
        passkey(accepted).expect(accepted);
    }
    for refused in [
        "",
        "null",
        r#""CHALLENGE""#,
        r#"["CHALLENGE","o"]"#,
        r#"{"challenge":"CHALLENGE"}"#,
        r#"{"challenge":"CHALLENGE","origin":null}"#,
        r#"{"challenge":"CHALLENGE","origin":1}"#,
        r#"{"challenge":["CHALLENGE"],"origin":"o"}"#,
        r#"{"challenge":"CHALLENGE","challenge":"CHALLENGE","origin":"o"}"#,
        r#"{"Challenge":"CHALLENGE","origin":"o"}"#,
        r#"{"challenge":"CHALLENGE","origin":"o"}{}"#,
        r#"{"challenge":"CHALLENGE","origin":"o",}"#,
        "\u{feff}{\"challenge\":\"CHALLENGE\",\"origin\":\"o\"}",
    ] {
        assert_eq!(passkey(refused), Err(IdentityRejection::PasskeyClientData.into()), "{refused}");
    }
    let other = |challenge: &str| passkey(&format!(r#"{{"challenge":"{challenge}","origin":"o"}}"#));
    for challenge in ["", "CHALLENGE=", "CHALLENGE ", TEXT] {
        assert_eq!(other(challenge), Err(IdentityRejection::PasskeyChallenge.into()), "{challenge}");
    }
}

/// Flags, counter and the hash of the relying party are in it, and none of them is looked at. It is signed, though.
#[test]
fn sec_032_authenticator_data_may_say_anything_or_nothing() {
    let Signer::Passkey(key) = Signer::passkey(1) else { panic!("a passkey") };
    let client_data = format!(r#"{{"challenge":"{}","origin":"o"}}"#, text().challenge());
    for data in [&[][..], &[0], &[0; 37], &[0xff; 500]] {
        let signature = passkey_signature_with(data, &key, client_data.as_bytes());
        verify(&signature, &text()).expect("any authenticator data");
        let Signature::Passkey(mut other) = signature else { panic!("a passkey") };
        other.authenticator_data = [data, &[1]].concat().into();
        let verdict = verify(&Signature::Passkey(other), &text());
        assert_eq!(verdict, Err(IdentityRejection::PasskeySignature.into()), "not what was signed");
    }
}

#[test]
fn sec_031_a_passkey_is_a_sec1_point_in_the_form_that_it_came_in() {
    let Signer::Passkey(key) = Signer::passkey(1) else { panic!("a passkey") };
    let client_data = format!(r#"{{"challenge":"{}","origin":"o"}}"#, text().challenge());
    let Signature::Passkey(real) = passkey_signature(&key, client_data.as_bytes()) else {
        panic!("a passkey")
    };
    let with_key = |public_key: Vec<u8>| {
        let mut signature = real.clone();
        signature.public_key = public_key.into();
        verify(&Signature::Passkey(signature), &text())
    };
    let uncompressed = key.verifying_key().to_encoded_point(false).as_bytes().to_vec();
    let evidence = with_key(uncompressed.clone()).expect("uncompressed");
    assert_eq!(evidence.signer, Identifier::Passkey(uncompressed.clone().into()));
    let compressed = real.public_key.to_vec();
    assert_eq!(with_key(compressed.clone()).unwrap().replay_key_hash, evidence.replay_key_hash);
    // Of the identity, of the compact and the hybrid form, and of other lengths.
    let retagged = |tag: u8, mut bytes: Vec<u8>| {
        bytes[0] = tag;
        bytes
    };
    for bytes in [
        vec![],
        vec![0],
        retagged(5, compressed.clone()),
        retagged(6, uncompressed.clone()),
        retagged(7, uncompressed.clone()),
        compressed[..32].to_vec(),
        [compressed, vec![0]].concat(),
    ] {
        assert_eq!(with_key(bytes.clone()), Err(IdentityRejection::PasskeyKey.into()), "{bytes:02x?}");
    }
}
