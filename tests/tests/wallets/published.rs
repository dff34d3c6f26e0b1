//! The validator that is sent to chains is the one that a published library sends.

use std::fs;

use xtask::root;

#[test]
fn sec_040_the_validator_is_byte_for_byte_that_of_the_pinned_library() {
    let ours = fs::read_to_string(root().join("worker/src/chain/universal-validator.hex")).unwrap();
    let library = root().join("tests/chain/node_modules/viem/constants/contracts.ts");
    let library = fs::read_to_string(library).expect("run scripts/setup --clients first");
    let (_, after) = library.split_once("export const erc6492SignatureValidatorByteCode =").unwrap();
    let theirs = after.trim_start().strip_prefix("'0x").and_then(|text| text.split('\'').next()).unwrap();
    assert_eq!(ours.trim_end(), theirs);
}
