//! The contracts of tests/chain/Wallets.sol, and calls of them in the encoding of the ABI.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::OnceLock;

use serde::Deserialize;
use xtask::root;

use super::Address;

/// 32 bytes, in which every argument of ours fits.
pub type Word = [u8; 32];

/// What ends a signature that is wrapped as ERC-6492 says.
const WRAPPED: [u8; 2] = [0x64, 0x92];

/// Compiled contracts, by name.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Contracts(BTreeMap<String, Contract>);

#[derive(Debug, Deserialize)]
struct Contract {
    code: String,
    selectors: BTreeMap<String, String>,
}

impl Contracts {
    /// The contracts, compiled once for each test binary.
    ///
    /// # Panics
    /// When they do not compile.
    pub fn get() -> &'static Self {
        static CONTRACTS: OnceLock<Contracts> = OnceLock::new();
        CONTRACTS.get_or_init(|| {
            let node = root().join("node_modules/.bin/node");
            let script = root().join("tests/chain/compile.js");
            let output = Command::new(node).arg(script).output().expect("run scripts/setup --clients first");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).expect("the script prints JSON")
        })
    }

    fn contract(&self, name: &str) -> &Contract {
        self.0.get(name).unwrap_or_else(|| panic!("Wallets.sol has no contract {name}"))
    }

    /// What creates a contract.
    ///
    /// # Panics
    /// When there is no such contract.
    pub fn creation(&self, name: &str, arguments: &[Word]) -> Vec<u8> {
        [unhex(&self.contract(name).code), arguments.concat()].concat()
    }

    /// What calls a function, for example `setOwner(address)`.
    ///
    /// # Panics
    /// When there is no such function.
    pub fn call(&self, name: &str, function: &str, arguments: &[Word]) -> Vec<u8> {
        let selector = self.contract(name).selectors.get(function);
        let selector = selector.unwrap_or_else(|| panic!("{name} has no function {function}"));
        [unhex(selector), arguments.concat()].concat()
    }
}

/// An argument: right-aligned bytes, 32 at most.
pub fn word(bytes: &[u8]) -> Word {
    let mut word = Word::default();
    word[32 - bytes.len()..].copy_from_slice(bytes);
    word
}

/// Wraps a signature for an account that `call` of `factory` would create.
pub fn erc6492(factory: &Address, call: &[u8], signature: &[u8]) -> Vec<u8> {
    let call = dynamic(call);
    let first = 3 * 32_u64;
    let second = first + call.len() as u64;
    let head = [word(factory), word(&first.to_be_bytes()), word(&second.to_be_bytes())].concat();
    [head, call, dynamic(signature), WRAPPED.repeat(16)].concat()
}

/// Bytes of any length: how many, and they, filled up to whole words.
fn dynamic(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = word(&(bytes.len() as u64).to_be_bytes()).to_vec();
    encoded.extend(bytes);
    encoded.resize(encoded.len().next_multiple_of(32), 0);
    encoded
}

/// Reads hexadecimal text, with `0x` or without.
pub(super) fn unhex(text: &str) -> Vec<u8> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    base16ct::mixed::decode_vec(digits).expect("hexadecimal text")
}
