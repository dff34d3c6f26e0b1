//! Many seeds, two at a time: each is independent of all others.

use std::sync::Mutex;
use std::thread;

use crate::{Mutation, Report, run};

/// Threads of a search.
const THREADS: usize = 2;

/// What a search came to.
#[derive(Debug, Default)]
pub struct Found {
    /// The seed that broke something, with what it broke. The search ends there.
    pub broken: Option<(u64, String)>,
    /// All runs together.
    pub sum: Report,
}

/// Runs seeds until one breaks something.
///
/// # Panics
/// When a run panics.
pub fn search(seeds: impl IntoIterator<Item = u64, IntoIter: Send>, mutation: Option<Mutation>) -> Found {
    let seeds = Mutex::new(seeds.into_iter());
    let found = Mutex::new(Found::default());
    let next = || match found.lock().expect("no run panics").broken {
        Some(_) => None,
        None => seeds.lock().expect("no run panics").next(),
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(seed) = next() {
                    let report = run(seed, mutation, false);
                    found.lock().expect("no run panics").add(seed, report);
                }
            });
        }
    });
    found.into_inner().expect("no run panics")
}

impl Found {
    fn add(&mut self, seed: u64, report: Report) {
        self.sum.events += report.events;
        self.sum.rows += report.rows;
        self.sum.successes += report.successes;
        self.sum.transactions += report.transactions;
        self.sum.decided += report.decided;
        self.sum.aborted += report.aborted;
        self.sum.lookups += report.lookups;
        if let Some(what) = report.broken {
            let earlier = self.broken.take().filter(|(known, _)| *known < seed);
            self.broken = Some(earlier.unwrap_or((seed, what)));
        }
    }
}
