//! What clients say about accounts, and what nodes answer.
//!
//! `fuzz_targets/` runs these under libFuzzer; the tests of `sealog-worker` include this file and run them on
//! generated input, on the stable toolchain.
#![allow(unreachable_pub)] // public in one crate, private in the other

use sealog_worker::chain::{Account, Finding, rpc};
use serde_json::{Value, json};

/// Every target.
pub const ALL: [fn(&[u8]); 2] = [account_id, node_answer];

/// The request that a node answers.
const ID: u64 = 7;

/// An account id has one meaning, and says so in one way but for the case of its digits.
pub fn account_id(data: &[u8]) {
    let Ok(id) = std::str::from_utf8(data) else { return };
    match Account::parse(id) {
        Ok(Account::Evm { chain, address }) => {
            let expected = format!("eip155:{chain}:0x{}", base16ct::lower::encode_string(&address));
            assert!(id.starts_with("eip155:") && id.eq_ignore_ascii_case(&expected), "{id}");
        }
        Ok(Account::Foreign) => {
            assert!(!id.starts_with("eip155:"));
            assert_eq!(id.matches(':').count(), 2);
        }
        Err(_) => {}
    }
}

/// Nothing but the validator's own answer is a verdict of its own, and nothing but an error is a revert.
pub fn node_answer(data: &[u8]) {
    let answer: Value = serde_json::from_slice(data).unwrap_or_default();
    match rpc::read_finding(ID, data) {
        Ok(Finding::Valid) => assert_eq!(answer["result"], "0x01"),
        Ok(Finding::Refused) => assert_eq!(answer["result"], "0x00"),
        Ok(Finding::Reverted) => assert!(answer["error"]["code"].is_i64() && answer["result"].is_null()),
        Err(_) => {}
    }
    if rpc::read_finding(ID, data).is_ok() || matches!(rpc::read_block(ID, None, data), Ok(Some(_))) {
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(ID), &json!("2.0")));
    }
}
