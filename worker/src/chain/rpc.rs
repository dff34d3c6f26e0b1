//! JSON-RPC 2.0 as nodes of EVM chains speak it: bytes to send, and what came back.

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Block, Finding, Question};

/// The method that runs code and keeps nothing.
pub(super) const CALL: &str = "eth_call";
/// The method that reads a block.
pub(super) const BLOCK: &str = "eth_getBlockByNumber";
/// Where a read of a block names the newest.
pub(super) const NEWEST: &str = "latest";

/// The error code for code that reverted, as the execution API of Ethereum defines it.
const REVERTED: i64 = 3;
/// The codes that servers choose for themselves. Some report a revert with one of them.
const SERVER_ERRORS: std::ops::RangeInclusive<i64> = -32_099..=-32_000;
/// Bytes of the selector that begins a revert's data.
const SELECTOR: usize = 4;

/// Why an answer is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Not an answer to this request.
    Garbled,
    /// The node says that it failed, with this code.
    Error(i64),
}

/// The body of a request.
pub(super) fn request(id: u64, method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: &'a str,
        id: u64,
        method: &'a str,
        params: P,
    }
    let request = Request { jsonrpc: "2.0", id, method, params };
    serde_json::to_vec(&request).expect("texts and numbers have a JSON form")
}

/// The parameters of a call at a block that asks the question.
pub(super) fn call_params(question: &Question, number: u64) -> impl Serialize {
    #[derive(Serialize)]
    struct Call {
        data: String,
    }
    (Call { data: question.call_data() }, quantity(number))
}

/// The parameters of a read of a block, without its transactions.
pub(super) fn block_params(number: Option<u64>) -> impl Serialize {
    (number.map_or_else(|| NEWEST.to_owned(), quantity), false)
}

fn quantity(number: u64) -> String {
    format!("{number:#x}")
}

/// What the answer to a read of a block says; `None` when the node does not know the block.
pub fn read_block(id: u64, number: Option<u64>, body: &[u8]) -> Result<Option<Block>, Unusable> {
    #[derive(Deserialize)]
    struct Header {
        number: Quantity,
        timestamp: Quantity,
    }
    let answer: Answer<Header> = Answer::read(id, body)?;
    if let Some(error) = answer.error {
        return Err(Unusable::Error(error.code));
    }
    let header = match answer.result {
        Outcome::Is(header) => header,
        Outcome::Null => return Ok(None),
        Outcome::Absent => return Err(Unusable::Garbled),
    };
    let block = Block { number: header.number.0, timestamp: header.timestamp.0 };
    if number.is_some_and(|number| number != block.number) {
        return Err(Unusable::Garbled);
    }
    Ok(Some(block))
}

/// What the answer to a call means.
pub fn read_finding(id: u64, body: &[u8]) -> Result<Finding, Unusable> {
    let answer: Answer<String> = Answer::read(id, body)?;
    match (answer.error, answer.result) {
        (Some(error), _) if error.is_revert() => Ok(Finding::Reverted),
        (Some(error), _) => Err(Unusable::Error(error.code)),
        (None, Outcome::Is(result)) if result == "0x01" => Ok(Finding::Valid),
        (None, Outcome::Is(result)) if result == "0x00" => Ok(Finding::Refused),
        // For example "0x", from a node that did not run the code.
        (None, _) => Err(Unusable::Garbled),
    }
}

#[derive(Deserialize)]
#[serde(bound = "R: DeserializeOwned")]
struct Answer<R> {
    jsonrpc: String,
    id: u64,
    #[serde(default)]
    result: Outcome<R>,
    error: Option<RpcError>,
}

/// The member `result`: a block that a node does not know is `null`, which is not the same as no result.
#[derive(Default)]
enum Outcome<R> {
    #[default]
    Absent,
    Null,
    Is(R),
}

impl<'de, R: Deserialize<'de>> Deserialize<'de> for Outcome<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Null, Self::Is))
    }
}

impl<R: DeserializeOwned> Answer<R> {
    fn read(id: u64, body: &[u8]) -> Result<Self, Unusable> {
        let answer: Self = serde_json::from_slice(body).map_err(|_| Unusable::Garbled)?;
        let contradicts = answer.error.is_some() && matches!(answer.result, Outcome::Is(_));
        if answer.jsonrpc != "2.0" || answer.id != id || contradicts {
            return Err(Unusable::Garbled);
        }
        Ok(answer)
    }
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    #[serde(default)]
    data: Value,
}

impl RpcError {
    /// Whether the code ran and reverted, which is a verdict, and not just somebody's word for a failure. The
    /// message is never looked at: everyone may write anything there (SEC-050).
    fn is_revert(&self) -> bool {
        let data = match &self.data {
            Value::Null => Some(0),
            Value::String(text) => hex_len(text),
            _ => None,
        };
        match self.code {
            REVERTED => data.is_some(),
            code if SERVER_ERRORS.contains(&code) => data.is_some_and(|length| length >= SELECTOR),
            _ => false,
        }
    }
}

/// How many bytes a text spells, if it spells bytes.
fn hex_len(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("0x")?;
    let is_hex = digits.len() % 2 == 0 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then_some(digits.len() / 2)
}

/// A number as nodes write it: `0x` and hexadecimal digits.
struct Quantity(u64);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits =
            text.strip_prefix("0x").filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        digits
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("not a number of 64 bits"))
    }
}

#[cfg(test)]
#[path = "rpc_tests.rs"]
mod tests;
