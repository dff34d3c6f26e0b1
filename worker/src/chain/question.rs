//! What a chain is asked, and the words it is asked in.

use bytes::Bytes;

use super::account::{Address, parse_address};

/// Creation code of the validator that ERC-6492 publishes for use off chain, in hexadecimal. Its constructor
/// takes the account, the hash and the signature, makes the account's contract if the signature says how, asks
/// it, or recovers the signer of a plain key's signature, and then, instead of code, returns one byte: 1 for
/// valid, 0 for invalid. So one call that creates nothing decides all three kinds of account. See
/// `universal-validator.LICENSE` for where it is from.
const VALIDATOR: &str = include_str!("universal-validator.hex");

/// Bytes of creation code at most, arguments included (EIP-3860): a node does not run more. It also bounds what
/// a request makes us hold.
const MAX_CODE_BYTES: usize = 49_152;

/// Bytes of a word of the ABI.
const WORD: usize = 32;

/// Is this the account's signature over this hash?
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// The number of the chain.
    pub chain: u64,
    /// The account.
    pub address: Address,
    /// What is signed.
    pub hash: [u8; 32],
    /// Whatever the account takes for a signature, or one wrapped as ERC-6492 says.
    pub signature: Bytes,
}

impl Question {
    /// A question about an account whose address is text: `0x` and 40 hexadecimal digits.
    pub fn new(chain: u64, address: &str, hash: [u8; 32], signature: Bytes) -> Option<Self> {
        Some(Self { chain, address: parse_address(address)?, hash, signature })
    }

    /// Whether the call would be longer than what a node runs.
    pub(super) fn is_too_long(&self) -> bool {
        VALIDATOR.trim_ascii_end().len() / 2 + WORD * self.words() > MAX_CODE_BYTES
    }

    /// How many words the arguments take.
    fn words(&self) -> usize {
        4 + self.signature.len().div_ceil(WORD)
    }

    /// The data of the call: creation code, and `abi.encode(address, bytes32, bytes)`. With `0x`.
    pub(super) fn call_data(&self) -> String {
        let code = VALIDATOR.trim_ascii_end();
        let mut data = String::with_capacity(2 + code.len() + 2 * WORD * self.words());
        data.push_str("0x");
        data.push_str(code);
        push_word(&mut data, &self.address);
        push_word(&mut data, &self.hash);
        push_word(&mut data, &(3 * WORD as u64).to_be_bytes()); // where the signature is, counted from the first word
        push_word(&mut data, &(self.signature.len() as u64).to_be_bytes());
        push_hex(&mut data, &self.signature);
        let padding = self.signature.len().next_multiple_of(WORD) - self.signature.len();
        push_hex(&mut data, &[0; WORD][..padding]);
        data
    }
}

/// Appends at most 32 bytes as a word, right-aligned.
fn push_word(data: &mut String, bytes: &[u8]) {
    push_hex(data, &[0; WORD][bytes.len()..]);
    push_hex(data, bytes);
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn arguments(signature: &[u8]) -> Vec<String> {
        let address = "0x00112233445566778899aabbccddeeff00112233";
        let question =
            Question::new(1, address, [0xab; 32], Bytes::copy_from_slice(signature)).expect("an address");
        let data = question.call_data();
        let arguments = data.strip_prefix("0x").unwrap().strip_prefix(VALIDATOR.trim_ascii_end()).unwrap();
        assert_eq!(arguments.len() % 64, 0, "whole words");
        arguments.as_bytes().chunks(64).map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
    }

    #[test]
    fn sec_040_the_arguments_are_encoded_as_the_abi_says() {
        let fixed = [
            format!("{}00112233445566778899aabbccddeeff00112233", "0".repeat(24)),
            "ab".repeat(32),
            format!("{}60", "0".repeat(62)),
        ];
        for (length, words) in [(0, 0), (1, 1), (31, 1), (32, 1), (33, 2), (65, 3)] {
            let arguments = arguments(&vec![0xcd; length]);
            assert_eq!(arguments[..3], fixed);
            assert_eq!(arguments[3], format!("{length:064x}"));
            assert_eq!(arguments.len(), 4 + words, "{length}");
            let tail = arguments[4..].concat();
            assert_eq!(tail, format!("{:0<1$}", "cd".repeat(length), 64 * words), "zeros on the right");
        }
    }

    #[test]
    fn a_question_is_no_longer_than_what_a_node_runs() {
        let question = |length: usize| Question {
            chain: 1,
            address: [0; 20],
            hash: [0; 32],
            signature: vec![0; length].into(),
        };
        let longest = question(47_296);
        assert!(!longest.is_too_long());
        assert_eq!((longest.call_data().len() - 2) / 2, 49_133);
        assert!(question(47_297).is_too_long(), "one word more");
    }

    #[test]
    fn the_validator_is_the_published_one() {
        // tests/chain compares with the package itself; this holds on a machine without npm, too.
        let code = VALIDATOR.trim_ascii_end();
        assert_eq!(code.len(), 2 * 1_709);
        assert!(code.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit)));
        assert_eq!(
            format!("{:x}", Sha256::digest(code)),
            "77f6a53fbf3bcbd6add2da36a62249db78d6ba6646b73d7702b057bfabbb05e5"
        );
    }
}
