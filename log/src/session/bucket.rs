//! Token buckets (API-258).

use super::Rate;
use crate::Nanos;

/// Tokens are counted in millionths, so that a refill loses nothing that matters.
const TOKEN: u64 = 1_000_000;

/// One bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    /// Millionths of a token.
    pub(super) tokens: u64,
    /// When they were counted.
    pub(super) at: Nanos,
}

impl Bucket {
    pub(super) fn full(rate: Rate, now: Nanos) -> Self {
        Self { tokens: u64::from(rate.burst) * TOKEN, at: now }
    }

    /// Takes one token; `false` when there is none. A clock that jumped back gives nothing and takes nothing.
    pub(super) fn take(&mut self, rate: Rate, now: Nanos) -> bool {
        let passed = now.saturating_sub(self.at);
        let most = u64::from(rate.burst) * TOKEN;
        // A token per second is a millionth per microsecond.
        let refill = (passed / 1_000).saturating_mul(rate.per_second.into());
        self.tokens = self.tokens.saturating_add(refill).min(most);
        // What is left of the last microsecond counts next time.
        self.at = now - passed % 1_000;
        let has = self.tokens >= TOKEN;
        if has {
            self.tokens -= TOKEN;
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MILLISECOND, SECOND};

    const RATE: Rate = Rate { per_second: 10, burst: 100 };

    #[test]
    fn api_258_the_burst_is_exact_and_refills_in_fractions() {
        let mut bucket = Bucket::full(RATE, SECOND);
        for _ in 0..100 {
            assert!(bucket.take(RATE, SECOND));
        }
        assert!(!bucket.take(RATE, SECOND));
        assert!(!bucket.take(RATE, SECOND + 99 * MILLISECOND));
        assert!(bucket.take(RATE, SECOND + 100 * MILLISECOND));
        assert!(!bucket.take(RATE, SECOND + 100 * MILLISECOND));
        assert!(bucket.take(RATE, SECOND + 200 * MILLISECOND), "asking without a token costs nothing");
    }

    #[test]
    fn api_258_a_steady_rate_is_admitted_for_ever_and_a_faster_one_is_not() {
        let mut bucket = Bucket::full(RATE, 0);
        let mut slow = Bucket::full(RATE, 0);
        let mut refused = 0;
        for frame in 0..100_000 {
            assert!(slow.take(RATE, frame * 100 * MILLISECOND));
            refused += u64::from(!bucket.take(RATE, frame * 99_999_999));
        }
        assert_eq!(refused, 0, "a clock that rounds does not end a stream");
        let mut bucket = Bucket::full(RATE, 0);
        let admitted = (0..1_000).filter(|frame| bucket.take(RATE, frame * 50 * MILLISECOND)).count();
        assert_eq!(admitted, 100 + 499, "the burst, and half of twice the rate");
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_burst_whatever_the_clock_does() {
        let mut bucket = Bucket::full(RATE, 100 * SECOND);
        assert!(bucket.take(RATE, 0), "the clock jumped back");
        assert!(bucket.take(RATE, u64::MAX), "and far ahead");
        assert_eq!(bucket.tokens, 99 * TOKEN);
    }
}
