//! No account id and no answer of a node makes the worker panic, or is taken for something else.

#[path = "../../fuzz/src/chain.rs"]
mod targets;

use proptest::prelude::*;

/// Texts that look like account ids.
fn account_id() -> impl Strategy<Value = String> {
    let namespace = prop_oneof![Just("eip155".to_owned()), "[a-zA-Z0-9-]{0,9}"];
    let chain = prop_oneof!["0?[0-9]{1,21}", "[a-zA-Z0-9_+-]{0,34}"];
    let address = prop_oneof!["0[xX][0-9a-fA-F]{38,42}", "[a-zA-Z0-9.%-]{0,130}", ".{0,9}"];
    (namespace, chain, address, ":?")
        .prop_map(|(namespace, chain, address, end)| format!("{namespace}:{chain}:{address}{end}"))
}

/// Texts that look like answers of a node to a call.
fn answer() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        r#""0x0[01]""#,
        r#""(0x)?[0-9a-f]{0,12}""#,
        "null|true|\\{\\}|\\[\\]",
        any::<i64>().prop_map(|number| number.to_string()),
    ];
    let code = prop_oneof![Just(3), -32_110_i64..-31_990, any::<i64>()];
    let error = (code, value.clone()).prop_map(|(code, data)| format!(r#"{{"code":{code},"data":{data}}}"#));
    let member = prop_oneof![
        4 => value.clone().prop_map(|value| format!(r#""result":{value}"#)),
        4 => error.prop_map(|error| format!(r#""error":{error}"#)),
        1 => value.prop_map(|value| format!(r#""result":{{"number":{value},"timestamp":"0x1"}}"#)),
    ];
    let members = proptest::collection::vec(member, 0..3);
    (prop_oneof![9 => Just(7), 1 => any::<u64>()], members).prop_map(|(id, members)| {
        let members = [vec![format!(r#""jsonrpc":"2.0","id":{id}"#)], members].concat();
        format!("{{{}}}", members.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_fuzz_target_holds_on_generated_input(id in account_id(), answer in answer(), bytes: Vec<u8>) {
        for target in targets::ALL {
            target(id.as_bytes());
            target(answer.as_bytes());
            target(&bytes);
        }
    }
}
