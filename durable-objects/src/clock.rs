//! The platform's clock and timers.

use std::time::Duration;

use sealog_log::{MILLISECOND, Nanos};
use worker::{Date, Delay};

/// The time. It stands still between two awaits, and counts whole milliseconds.
pub(crate) fn now() -> Nanos {
    Date::now().as_millis() * MILLISECOND
}

/// Waits; rounded up to a whole millisecond, so that a timer never fires before its time.
pub(crate) async fn sleep(nanos: Nanos) {
    Delay::from(Duration::from_millis(nanos.div_ceil(MILLISECOND))).await;
}
