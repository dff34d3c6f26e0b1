use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn finding(answer: &Value) -> Result<Finding, Unusable> {
    read_finding(7, answer.to_string().as_bytes())
}

fn result(result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "result": result })
}

fn error(code: i64, data: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": code, "message": "execution reverted", "data": data } })
}

#[test]
fn requests_are_json_rpc() {
    let question =
        Question { chain: 1, address: [2; 20], hash: [3; 32], signature: Bytes::from_static(b"s") };
    let parse = |body: Vec<u8>| serde_json::from_slice::<Value>(&body).unwrap();
    assert_eq!(
        parse(request(9, CALL, &call_params(&question, 256))),
        json!({ "jsonrpc": "2.0", "id": 9, "method": "eth_call", "params": [{ "data": question.call_data() }, "0x100"] }),
    );
    for (number, text) in [(None, "latest"), (Some(0), "0x0"), (Some(u64::MAX), "0xffffffffffffffff")] {
        assert_eq!(
            parse(request(9, BLOCK, &block_params(number))),
            json!({ "jsonrpc": "2.0", "id": 9, "method": "eth_getBlockByNumber", "params": [text, false] }),
        );
    }
}

#[test]
fn sec_041_exactly_the_byte_01_is_valid_and_exactly_00_is_not() {
    assert_eq!(finding(&result(&json!("0x01"))), Ok(Finding::Valid));
    assert_eq!(finding(&result(&json!("0x00"))), Ok(Finding::Refused));
    let word = format!("0x{:064x}", 1);
    for other in
        [json!("0x"), json!("0x1"), json!("0x02"), json!("01"), json!(word), json!("0x0001"), json!("")]
    {
        assert_eq!(finding(&result(&other)), Err(Unusable::Garbled), "{other}");
    }
    for other in [json!(null), json!(1), json!(true), json!({}), json!(["0x01"])] {
        assert_eq!(finding(&result(&other)), Err(Unusable::Garbled), "{other}");
    }
}

#[test]
fn sec_041_a_clear_revert_is_a_verdict() {
    for clear in [
        error(3, &json!("0x")),
        error(3, &json!("0x08c379a0")),
        error(3, &json!(null)),
        json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": 3, "message": "" } }),
        json!({ "jsonrpc": "2.0", "id": 7, "result": null, "error": { "code": 3, "message": "" } }),
        error(-32_000, &json!("0x08c379a0")),
        error(-32_015, &json!("0x4e487b710000")),
    ] {
        assert_eq!(finding(&clear), Ok(Finding::Reverted), "{clear}");
    }
}

#[test]
fn api_231_a_failure_is_no_verdict_whatever_its_text_says() {
    for (code, data) in [
        (3, json!("reverted")),
        (3, json!({ "reason": "0x08c379a0" })),
        (3, json!("0x123")),
        (-32_000, json!(null)),
        (-32_000, json!("0x")),
        (-32_000, json!("0x08c379")),
        (-32_000, json!("Reverted 0x08c379a0")),
        (-32_603, json!("0x08c379a0")),
        (-32_005, json!({ "see": "limits" })),
        (-31_999, json!("0x08c379a0")),
        (-32_100, json!("0x08c379a0")),
        (429, json!(null)),
    ] {
        assert_eq!(finding(&error(code, &data)), Err(Unusable::Error(code)), "{code} {data}");
    }
}

#[test]
fn api_231_an_answer_to_another_request_is_none() {
    for answer in [
        json!({ "jsonrpc": "2.0", "id": 8, "result": "0x01" }),
        json!({ "jsonrpc": "2.0", "id": "7", "result": "0x01" }),
        json!({ "jsonrpc": "2.0", "id": null, "result": "0x01" }),
        json!({ "jsonrpc": "1.0", "id": 7, "result": "0x01" }),
        json!({ "id": 7, "result": "0x01" }),
        json!({ "jsonrpc": "2.0", "result": "0x01" }),
        json!({ "jsonrpc": "2.0", "id": 7 }),
        json!({ "jsonrpc": "2.0", "id": 7, "result": "0x01", "error": { "code": 3 } }),
        json!({ "jsonrpc": "2.0", "id": 7, "error": "execution reverted" }),
        json!({ "jsonrpc": "2.0", "id": 7, "error": { "message": "execution reverted" } }),
        json!([{ "jsonrpc": "2.0", "id": 7, "result": "0x01" }]),
        json!("0x01"),
    ] {
        assert_eq!(finding(&answer), Err(Unusable::Garbled), "{answer}");
    }
    for body in ["", "<html>", "{", r#"{"jsonrpc":"2.0","id":7,"result":"0x01"} {"#] {
        assert_eq!(read_finding(7, body.as_bytes()), Err(Unusable::Garbled), "{body}");
    }
}

#[test]
fn ident_062_a_block_is_its_number_and_its_time() {
    let read = |number, answer: &Value| read_block(7, number, answer.to_string().as_bytes());
    let header =
        json!({ "number": "0x10", "timestamp": "0x65f00000", "hash": "0x00", "transactions": ["0x00"] });
    let block = Block { number: 16, timestamp: 0x65f0_0000 };
    assert_eq!(read(None, &result(&header)), Ok(Some(block)));
    assert_eq!(read(Some(16), &result(&header)), Ok(Some(block)));
    assert_eq!(read(Some(17), &result(&header)), Err(Unusable::Garbled), "not the one that was asked for");
    assert_eq!(read(Some(16), &result(&json!(null))), Ok(None));
    assert_eq!(read(None, &error(3, &json!("0x"))), Err(Unusable::Error(3)), "a block cannot revert");
    for number in
        [json!(16), json!("16"), json!("0x"), json!("0x+1"), json!("0x10000000000000000"), json!(null)]
    {
        let header = json!({ "number": number, "timestamp": "0x1" });
        assert_eq!(read(None, &result(&header)), Err(Unusable::Garbled), "{number}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer_or_useless(body: Vec<u8>) {
        prop_assert_eq!(read_finding(7, &body), Err(Unusable::Garbled));
        prop_assert_eq!(read_block(7, None, &body), Err(Unusable::Garbled));
    }
}
