//! Ids for answers: every one carries its own, whatever id the caller sent (OPS-011).

use std::cell::Cell;

use js_sys::Math;

/// Gives out ids. Unique by a random part for the isolate and a number in it, so that an id costs no call to JavaScript.
#[derive(Debug)]
pub struct RequestIds {
    isolate: u64,
    next: Cell<u64>,
}

impl RequestIds {
    /// Begins a new sequence of ids. Not at start-up: the platform has no randomness there.
    pub fn begin() -> Self {
        Self::from_random(Math::random(), Math::random())
    }

    /// Takes two random numbers in 0..1.
    fn from_random(high: f64, low: f64) -> Self {
        const HALF: f64 = 4_294_967_296.0; // 2^32
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let half = |random: f64| (random * HALF) as u64; // below 2^32
        Self { isolate: half(high) << 32 | half(low), next: Cell::new(0) }
    }

    /// The next id.
    pub fn next(&self) -> String {
        let number = self.next.get();
        self.next.set(number + 1);
        format!("{:016x}-{number:x}", self.isolate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_011_ids_differ_within_an_isolate_and_between_isolates() {
        let ids = RequestIds::from_random(0.5, 0.999_999_999_999);
        assert_eq!(ids.next(), "80000000ffffffff-0");
        assert_eq!(ids.next(), "80000000ffffffff-1");
        assert_ne!(RequestIds::from_random(0.25, 0.5).next(), RequestIds::from_random(0.5, 0.5).next());
    }
}
