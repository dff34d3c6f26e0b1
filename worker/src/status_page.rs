//! `/-/status`: what this isolate has done, for operators.
//!
//! The page exists only where the secret `STATUS_TOKEN` is set, and only for who sends it as a bearer token; for
//! everyone else there is nothing at this path.

use std::collections::BTreeMap;

use sealog_objects::StreamCounters;
use serde::Serialize;

use crate::{config::Config, counters::Requests};

#[derive(Serialize)]
struct Page<'a> {
    version: &'static str,
    log_partitions: u32,
    /// Bytes of memory that the instance has taken. It gives none back, so this is also the most that it needed.
    memory_bytes: u32,
    /// Answered calls of this isolate, by method and status code.
    requests: &'a Requests,
    /// Calls of this isolate's worker to objects, by command.
    object_calls: &'a BTreeMap<&'static str, u64>,
    /// The same with those that objects of this isolate made to each other.
    isolate_calls: &'a BTreeMap<&'static str, u64>,
    /// What the streams that ran in this isolate did. More than one in a hundred of what is unusual is a defect.
    streams: BTreeMap<&'static str, u64>,
    /// The closed allocation boundary (API-203); null when the sequencer did not tell it.
    boundary: Option<Boundary>,
}

/// The boundary as it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Boundary {
    /// Every sequence id at or below it is settled.
    pub sequence_id: u64,
    /// When it was told, in milliseconds since the Unix epoch.
    pub told_at_ms: u64,
}

/// What the page shows.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Answered calls.
    pub requests: &'a Requests,
    /// Calls to objects.
    pub object_calls: &'a BTreeMap<&'static str, u64>,
    /// The same with those between objects.
    pub isolate_calls: &'a BTreeMap<&'static str, u64>,
    /// Bytes of memory.
    pub memory_bytes: u32,
    /// Counts of streams.
    pub streams: StreamCounters,
    /// The boundary, if the sequencer told it.
    pub boundary: Option<Boundary>,
}

/// Whether the header `authorization` opens the page.
pub fn is_open_to(config: &Config, authorization: Option<&str>) -> bool {
    let (Some(secret), Some(authorization)) = (&config.status_token, authorization) else { return false };
    authorization
        .split_once(' ')
        .is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && secret.matches(token))
}

/// The page, as JSON.
pub fn page(config: &Config, seen: &Seen<'_>) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Page {
        version: env!("CARGO_PKG_VERSION"),
        log_partitions: config.log_partitions,
        memory_bytes: seen.memory_bytes,
        streams: streams(&seen.streams),
        requests: seen.requests,
        object_calls: seen.object_calls,
        isolate_calls: seen.isolate_calls,
        boundary: seen.boundary,
    })
}

fn streams(counters: &StreamCounters) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([
        ("frames", counters.frames),
        ("envelopes", counters.envelopes),
        ("items", counters.items),
        ("unwanted", counters.unwanted),
        ("hints", counters.hints),
        ("pulls_after_push", counters.pulls_after_push),
        ("pages", counters.pages),
        ("pages_dropped", counters.pages_dropped),
        ("wakes", counters.wakes),
        ("busy_restarts", counters.busy_restarts),
        ("syncs", counters.syncs),
        ("sync_repairs", counters.sync_repairs),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn config(token: Option<&str>) -> Config {
        let mut settings = vec![("LOG_PARTITIONS".to_owned(), "8".to_owned())];
        settings.extend(token.map(|token| ("STATUS_TOKEN".to_owned(), token.to_owned())));
        Config::read(settings).unwrap()
    }

    #[test]
    fn the_page_opens_only_to_the_token() {
        let open = config(Some(TOKEN));
        assert!(is_open_to(&open, Some("Bearer 0123456789abcdef")));
        assert!(is_open_to(&open, Some("bearer 0123456789abcdef")));
        for header in [None, Some(""), Some("Bearer "), Some(TOKEN), Some("Basic 0123456789abcdef")] {
            assert!(!is_open_to(&open, header), "{header:?}");
        }
        for header in [None, Some("Bearer "), Some("Bearer 0123456789abcdef")] {
            assert!(!is_open_to(&config(None), header), "{header:?}");
        }
    }

    #[test]
    fn the_page_holds_the_counters() {
        let object_calls = BTreeMap::from([("read", 3)]);
        let isolate_calls = BTreeMap::from([("read", 3), ("push", 4)]);
        let seen = Seen {
            requests: &Requests::default(),
            object_calls: &object_calls,
            isolate_calls: &isolate_calls,
            memory_bytes: 65_536,
            streams: StreamCounters { frames: 5, ..StreamCounters::default() },
            boundary: Some(Boundary { sequence_id: 7, told_at_ms: 9 }),
        };
        let page: serde_json::Value = serde_json::from_slice(&page(&config(None), &seen).unwrap()).unwrap();
        assert_eq!(
            page,
            serde_json::json!({
                "version": env!("CARGO_PKG_VERSION"),
                "log_partitions": 8,
                "memory_bytes": 65_536,
                "requests": {},
                "object_calls": { "read": 3 },
                "isolate_calls": { "read": 3, "push": 4 },
                "streams": {
                    "frames": 5, "envelopes": 0, "items": 0, "unwanted": 0, "hints": 0, "pulls_after_push": 0,
                    "pages": 0, "pages_dropped": 0, "wakes": 0, "busy_restarts": 0, "syncs": 0, "sync_repairs": 0,
                },
                "boundary": { "sequence_id": 7, "told_at_ms": 9 },
            })
        );
    }
}
