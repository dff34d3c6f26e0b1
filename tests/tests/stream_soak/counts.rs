//! What streams count (stream-protocol part 3), over all lives of the backend.

use std::collections::BTreeMap;

use sealog_tests::raw::Raw;
use sealog_tests::status;

/// Counts by name.
#[derive(Debug, Default)]
pub(crate) struct Counts(BTreeMap<String, u64>);

/// What is unusual, what it is a part of, and how many of those there must be for the part to say something.
const UNUSUAL: [(&str, &str, u64); 6] = [
    ("unwanted", "items", 1_000),
    ("hints", "items", 1_000),
    ("pulls_after_push", "items", 1_000),
    ("pages_dropped", "pages", 1_000),
    ("busy_restarts", "wakes", 1),
    // A late answer may store a watch again that an Update has just removed (docs/decisions/0011).
    ("sync_repairs", "wakes", 100),
];

impl Counts {
    /// Adds what the backend counted since it started. It forgets when it is killed.
    pub(crate) async fn add(&mut self, raw: &Raw) {
        let page = status::read(raw).await.expect("the page of counts");
        for (name, count) in page.streams {
            *self.0.entry(name).or_default() += count;
        }
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// # Panics
    /// When more than one in `limit` was unusual.
    pub(crate) fn judge(&self, limit: u64) {
        println!("counts: {:?}", self.0);
        for (unusual, of, enough) in UNUSUAL {
            let (part, whole) = (self.get(unusual), self.get(of));
            println!("  {unusual}: {part} of {whole} {of}");
            assert!(whole < enough || part * limit <= whole, "{part} of {whole} {of} are {unusual}");
        }
    }
}
