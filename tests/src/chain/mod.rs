//! A real EVM on this machine, accounts of every kind on it, and a node in front of it that can be made to
//! fail.
//!
//! The EVM is anvil, from the npm package that tests/chain pins; so is the compiler of its contracts.

mod abi;
mod evm;
mod node;

pub use abi::{Contracts, Word, erc6492, word};
pub use evm::{Evm, Signer};
pub use node::{Call, Node, Reply};

/// An address of an account.
pub type Address = [u8; 20];

/// The CAIP-10 id of an account.
pub fn account_id(chain: u64, address: &Address) -> String {
    format!("eip155:{chain}:0x{}", crate::fixtures::hex(address))
}
