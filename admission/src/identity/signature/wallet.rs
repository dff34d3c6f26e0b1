//! A contract wallet: only its chain knows whether it accepts a signature (ERC-1271, ERC-6492).

use bytes::Bytes;
use sealog_proto::associations::SmartContractWalletSignature;

use super::{Evidence, SignedText};
use crate::identity::identifier::is_address;
use crate::identity::{Identifier, IdentityRejection};

/// Does the account accept the signature over the hash, in the state of the block?
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WalletQuestion {
    /// The eip155 reference.
    pub chain_id: u64,
    /// `0x` and 40 lowercase hexadecimal digits.
    pub address: String,
    /// Of the personal message (EIP-191).
    pub hash: [u8; 32],
    /// As given.
    pub signature: Bytes,
    /// As given.
    pub block_number: u64,
}

impl WalletQuestion {
    pub(super) fn read(
        signature: &SmartContractWalletSignature,
        text: &SignedText,
    ) -> Result<Self, IdentityRejection> {
        let (chain_id, address) = account(&signature.account_id).ok_or(IdentityRejection::AccountId)?;
        Ok(Self {
            chain_id,
            address,
            hash: text.personal_hash(),
            signature: signature.signature.clone(),
            block_number: signature.block_number,
        })
    }

    pub(super) fn evidence(&self) -> Evidence {
        Evidence::new(
            Identifier::Ethereum(self.address.as_str().into()),
            Some(self.chain_id),
            &self.signature,
        )
    }
}

/// Chain and lowercase address of a CAIP-10 account id of the namespace eip155 (IDENT-060).
fn account(account_id: &str) -> Option<(u64, String)> {
    let mut parts = account_id.split(':');
    let (namespace, reference, address) = (parts.next()?, parts.next()?, parts.next()?);
    let chain_id: u64 = reference.parse().ok()?;
    // The one spelling of the number: no sign, no leading zero.
    let is_canonical = chain_id.to_string() == reference;
    (namespace == "eip155" && is_canonical && is_address(address) && parts.next().is_none())
        .then(|| (chain_id, address.to_ascii_lowercase()))
}
