//! The page `/-/status`, as an operator reads it.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use tonic::codegen::http::{Method, StatusCode};

use crate::backend::Var;
use crate::raw::Raw;

/// Where the page is.
pub const PATH: &str = "/-/status";

const TOKEN: &str = "a token of the tests only";

/// The setting that opens the page to [`read`].
pub const OPEN: Var<'static> = ("STATUS_TOKEN", TOKEN);

/// What the page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The closed allocation boundary (API-203); `None` when the sequencer did not tell it.
    pub boundary: Option<u64>,
    /// Calls to objects since the worker started, by command.
    pub object_calls: BTreeMap<String, u64>,
    /// The same with the calls between objects.
    pub isolate_calls: BTreeMap<String, u64>,
    /// Bytes of memory that the worker has taken; it gives none back.
    pub memory_bytes: u64,
    /// What streams did since the worker started.
    pub streams: BTreeMap<String, u64>,
}

impl Status {
    /// The calls to objects since `earlier`, by command: only those that were made, and not the question for the
    /// boundary that the page itself asks.
    pub fn calls_since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        let calls = self.object_calls.iter();
        let added = calls.map(|(command, count)| {
            (command.clone(), count - earlier.object_calls.get(command).unwrap_or(&0))
        });
        added.filter(|(command, count)| *count > 0 && command != "boundary").collect()
    }
}

/// Reads the page of a backend that was started with [`OPEN`].
pub async fn read(raw: &Raw) -> anyhow::Result<Status> {
    let authorization = format!("Bearer {TOKEN}");
    let headers = [("authorization", authorization.as_str())];
    let answer = raw.send(Method::GET, PATH, &headers, "").await?;
    ensure!(answer.status == StatusCode::OK, "HTTP {} for {PATH}", answer.status);
    let page: serde_json::Value = serde_json::from_slice(&answer.body).context("the page is no JSON")?;
    Ok(Status {
        boundary: page["boundary"]["sequence_id"].as_u64(),
        object_calls: serde_json::from_value(page["object_calls"].clone())?,
        isolate_calls: serde_json::from_value(page["isolate_calls"].clone())?,
        memory_bytes: page["memory_bytes"].as_u64().context("the page tells the memory")?,
        streams: serde_json::from_value(page["streams"].clone())?,
    })
}
