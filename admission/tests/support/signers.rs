//! Wallets, installations and passkeys that sign identity updates, and the updates that they sign.
#![allow(dead_code, unreachable_pub)] // each user takes its part

use base16ct::lower;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::Digest;
use k256::ecdsa::signature::hazmat::PrehashSigner;
use p256::ecdsa::signature::Signer as _;
use prost::bytes::Bytes;
use sealog_admission::identity::{Action, INSTALLATION_CONTEXT, Identifier, SignedText, signature_text};
use sealog_proto::associations::{
    AddAssociation, ChangeRecoveryAddress, ClaimHandle, CreateInbox, IdentifierKind, IdentityAction,
    IdentityUpdate, MemberIdentifier, RecoverableEcdsaSignature, RecoverableEd25519Signature,
    RecoverablePasskeySignature, RevokeAssociation, Signature, SmartContractWalletSignature,
    identity_action::Kind, signature,
};
use sha3::Keccak256;

/// Someone who can sign.
#[derive(Clone)]
pub enum Signer {
    /// A key of secp256k1.
    Wallet(k256::ecdsa::SigningKey),
    /// A contract: address and chain. What it signs with is up to it.
    Contract(String, u64),
    Installation(ed25519_dalek::SigningKey),
    Passkey(p256::ecdsa::SigningKey),
}

impl Signer {
    pub fn wallet(seed: u8) -> Self {
        Self::Wallet(k256::ecdsa::SigningKey::from_bytes(&[seed; 32].into()).expect("a scalar"))
    }

    pub fn contract(seed: u8, chain_id: u64) -> Self {
        Self::Contract(format!("0x{}", lower::encode_string(&[seed; 20])), chain_id)
    }

    pub fn installation(seed: u8) -> Self {
        Self::Installation(ed25519_dalek::SigningKey::from_bytes(&[seed; 32]))
    }

    pub fn passkey(seed: u8) -> Self {
        Self::Passkey(p256::ecdsa::SigningKey::from_bytes(&[seed; 32].into()).expect("a scalar"))
    }

    pub fn identifier(&self) -> Identifier {
        match self {
            Self::Wallet(key) => {
                let point = key.verifying_key().to_encoded_point(false);
                let hash = Keccak256::digest(&point.as_bytes()[1..]);
                Identifier::Ethereum(format!("0x{}", lower::encode_string(&hash[12..])).into())
            }
            Self::Contract(address, _) => Identifier::Ethereum(address.as_str().into()),
            Self::Installation(key) => {
                Identifier::Installation(Bytes::copy_from_slice(key.verifying_key().as_bytes()))
            }
            Self::Passkey(key) => Identifier::Passkey(Bytes::copy_from_slice(
                key.verifying_key().to_encoded_point(true).as_bytes(),
            )),
        }
    }

    /// Deterministic. A contract signs with the hash of the text, at block 100.
    pub fn sign(&self, text: &str) -> Signature {
        let signed = SignedText::new(text.to_owned());
        let signature = match self {
            Self::Wallet(key) => {
                let (signature, recovery): (k256::ecdsa::Signature, k256::ecdsa::RecoveryId) =
                    key.sign_prehash(&signed.personal_hash()).expect("a hash of 32 bytes");
                let bytes = [&signature.to_bytes()[..], &[27 + recovery.to_byte()]].concat();
                signature::Signature::Erc191(RecoverableEcdsaSignature { bytes: bytes.into() })
            }
            Self::Contract(address, chain_id) => {
                signature::Signature::Erc6492(SmartContractWalletSignature {
                    account_id: format!("eip155:{chain_id}:{address}"),
                    block_number: 100,
                    signature: Bytes::copy_from_slice(&signed.personal_hash()),
                })
            }
            Self::Installation(key) => {
                let signature =
                    key.sign_prehashed(signed.sha512(), Some(INSTALLATION_CONTEXT)).expect("a short context");
                signature::Signature::InstallationKey(RecoverableEd25519Signature {
                    bytes: Bytes::copy_from_slice(&signature.to_bytes()),
                    public_key: Bytes::copy_from_slice(key.verifying_key().as_bytes()),
                })
            }
            Self::Passkey(key) => {
                let challenge = URL_SAFE_NO_PAD.encode(text);
                let client_data =
                    format!(r#"{{"type":"webauthn.get","challenge":"{challenge}","origin":"o"}}"#);
                passkey_signature(key, client_data.as_bytes())
            }
        };
        Signature { signature: Some(signature) }
    }
}

/// What an authenticator makes of client data.
pub fn passkey_signature(key: &p256::ecdsa::SigningKey, client_data: &[u8]) -> signature::Signature {
    passkey_signature_with(&[7; 37], key, client_data)
}

/// The same by an authenticator that says this of itself.
pub fn passkey_signature_with(
    authenticator_data: &[u8],
    key: &p256::ecdsa::SigningKey,
    client_data: &[u8],
) -> signature::Signature {
    let signed = [authenticator_data, &sha2::Sha256::digest(client_data)].concat();
    let signature: p256::ecdsa::Signature = key.sign(&signed);
    signature::Signature::Passkey(RecoverablePasskeySignature {
        public_key: Bytes::copy_from_slice(key.verifying_key().to_encoded_point(true).as_bytes()),
        signature: Bytes::copy_from_slice(signature.to_der().as_bytes()),
        authenticator_data: Bytes::copy_from_slice(authenticator_data),
        client_data_json: Bytes::copy_from_slice(client_data),
    })
}

/// An action, and who signs it.
#[allow(clippy::large_enum_variant)] // a few at a time
#[derive(Clone)]
pub enum Act {
    Create { founder: Identifier, nonce: u64, by: Signer },
    Add { member: Identifier, by: Signer, new: Signer },
    Revoke { member: Identifier, by: Signer },
    Recover { to: Identifier, by: Signer },
    Claim { handle: String, by: Signer },
}

impl Act {
    pub fn create(founder: &Signer) -> Self {
        Self::Create { founder: founder.identifier(), nonce: 0, by: founder.clone() }
    }

    pub fn add(new: &Signer, by: &Signer) -> Self {
        Self::Add { member: new.identifier(), by: by.clone(), new: new.clone() }
    }

    pub fn revoke(member: &Signer, by: &Signer) -> Self {
        Self::Revoke { member: member.identifier(), by: by.clone() }
    }

    pub fn recover(to: &Signer, by: &Signer) -> Self {
        Self::Recover { to: to.identifier(), by: by.clone() }
    }

    pub fn claim(handle: &str, by: &Signer) -> Self {
        Self::Claim { handle: handle.to_owned(), by: by.clone() }
    }

    fn action(&self) -> Action {
        match self.clone() {
            Self::Create { founder, nonce, .. } => Action::Create { founder, nonce, signature: 0 },
            Self::Add { member, .. } => Action::Add { member, existing: 0, new: 0 },
            Self::Revoke { member, .. } => Action::Revoke { member, signature: 0 },
            Self::Recover { to, .. } => Action::ChangeRecovery { recovery: to, signature: 0 },
            Self::Claim { handle, .. } => Action::Claim { handle, signature: 0 },
        }
    }

    fn signed(&self, text: &str) -> IdentityAction {
        let sign = |by: &Signer| Some(by.sign(text));
        let kind = match self {
            Self::Create { founder, nonce, by } => Kind::CreateInbox(CreateInbox {
                initial_identifier: founder.text().into_owned(),
                nonce: *nonce,
                initial_identifier_signature: sign(by),
                initial_identifier_kind: kind_of(founder),
                relying_party: None,
            }),
            Self::Add { member, by, new } => Kind::Add(AddAssociation {
                new_member_identifier: Some(MemberIdentifier::from(member)),
                existing_member_signature: sign(by),
                new_member_signature: sign(new),
                relying_party: None,
            }),
            Self::Revoke { member, by } => Kind::Revoke(RevokeAssociation {
                member_to_revoke: Some(MemberIdentifier::from(member)),
                recovery_identifier_signature: sign(by),
            }),
            Self::Recover { to, by } => Kind::ChangeRecoveryAddress(ChangeRecoveryAddress {
                new_recovery_identifier: to.text().into_owned(),
                existing_recovery_identifier_signature: sign(by),
                new_recovery_identifier_kind: kind_of(to),
                relying_party: None,
            }),
            Self::Claim { handle, by } => {
                Kind::ClaimHandle(ClaimHandle { handle: handle.clone(), existing_member_signature: sign(by) })
            }
        };
        IdentityAction { kind: Some(kind) }
    }
}

fn kind_of(identifier: &Identifier) -> i32 {
    match identifier {
        Identifier::Passkey(_) => IdentifierKind::Passkey.into(),
        Identifier::Ethereum(_) | Identifier::Installation(_) => IdentifierKind::Ethereum.into(),
    }
}

/// The update of these actions, signed.
pub fn update(inbox_id: &str, client_timestamp_ns: u64, acts: &[Act]) -> IdentityUpdate {
    let actions: Vec<_> = acts.iter().map(Act::action).collect();
    let text = signature_text(inbox_id, client_timestamp_ns, &actions);
    IdentityUpdate {
        actions: acts.iter().map(|act| act.signed(&text)).collect(),
        client_timestamp_ns,
        inbox_id: inbox_id.to_owned(),
    }
}
