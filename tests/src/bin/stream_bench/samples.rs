//! Times, and what most of them were.

use std::time::Duration;

/// Samples of one thing.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn add(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// The smallest sample that so many percent do not exceed, in milliseconds; 0 when there is none.
    pub(crate) fn percentile(&mut self, percent: usize) -> f64 {
        self.0.sort_unstable();
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(at).map_or(0.0, |sample| sample.as_secs_f64() * 1e3)
    }
}
