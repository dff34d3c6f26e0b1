//! The kinds of signatures (IDENT-030): what each is over, and who it stands for.

mod erc191;
mod installation;
mod passkey;
mod wallet;

use std::cell::OnceCell;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sealog_proto::associations::signature::Signature;
use sha2::{Digest, Sha256, Sha512};
use sha3::Keccak256;

pub use installation::INSTALLATION_CONTEXT;
pub use wallet::WalletQuestion;

use super::{Identifier, IdentityRejection};
use crate::Rejection;

/// What a signature of an update establishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Who signed.
    pub signer: Identifier,
    /// The eip155 chain of a contract wallet.
    pub chain_id: Option<u64>,
    /// SHA-256 of the replay key, which is the same for every encoding of a signature (IDENT-050).
    pub replay_key_hash: [u8; 32],
}

impl Evidence {
    fn new(signer: Identifier, chain_id: Option<u64>, replay_key: &[u8]) -> Self {
        Self { signer, chain_id, replay_key_hash: Sha256::digest(replay_key).into() }
    }
}

/// A signature text, and the forms in which each kind signs it, made when first needed.
pub struct SignedText {
    text: String,
    personal_hash: OnceCell<[u8; 32]>,
    sha512: OnceCell<Sha512>,
    challenge: OnceCell<String>,
}

impl SignedText {
    /// For the text that [`signature_text`](super::signature_text) made.
    pub fn new(text: String) -> Self {
        Self { text, personal_hash: OnceCell::new(), sha512: OnceCell::new(), challenge: OnceCell::new() }
    }

    /// What wallets sign: Keccak-256 of the personal message (EIP-191, version `E`).
    pub fn personal_hash(&self) -> [u8; 32] {
        *self.personal_hash.get_or_init(|| {
            let prefix = format!("\x19Ethereum Signed Message:\n{}", self.text.len());
            Keccak256::new().chain_update(prefix).chain_update(&self.text).finalize().into()
        })
    }

    /// The prehash of Ed25519ph.
    pub fn sha512(&self) -> Sha512 {
        self.sha512.get_or_init(|| Sha512::new_with_prefix(&self.text)).clone()
    }

    /// The challenge that a passkey is given: the whole text, not a hash of it.
    pub fn challenge(&self) -> &str {
        self.challenge.get_or_init(|| URL_SAFE_NO_PAD.encode(&self.text))
    }
}

/// A signature of a sound form. Reading one costs no curve operation.
pub(super) enum Form<'a> {
    Ecdsa(erc191::Form),
    Wallet(WalletQuestion),
    Installation(installation::Form),
    Passkey(passkey::Form<'a>),
}

impl<'a> Form<'a> {
    pub(super) fn read(signature: &'a Signature, text: &SignedText) -> Result<Self, IdentityRejection> {
        Ok(match signature {
            Signature::Erc191(signature) => Self::Ecdsa(erc191::Form::read(signature)?),
            Signature::Erc6492(signature) => Self::Wallet(WalletQuestion::read(signature, text)?),
            Signature::InstallationKey(signature) => Self::Installation(installation::Form::read(signature)?),
            Signature::Passkey(signature) => Self::Passkey(passkey::Form::read(signature, text)?),
        })
    }

    /// A wallet's signature is taken as it stands: [`decide`](super::decide()) has the answer.
    pub(super) fn verify(&self, text: &SignedText) -> Result<Evidence, IdentityRejection> {
        match self {
            Self::Ecdsa(form) => form.verify(text),
            Self::Wallet(question) => Ok(question.evidence()),
            Self::Installation(form) => form.verify(text),
            Self::Passkey(form) => form.verify(text),
        }
    }
}

/// Verifies one signature over a text, apart from what a chain must be asked.
pub fn verify(signature: &Signature, text: &SignedText) -> Result<Evidence, Rejection> {
    Ok(Form::read(signature, text)?.verify(text)?)
}
