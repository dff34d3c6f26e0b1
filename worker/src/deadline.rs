//! Time limits.

use std::{future::Future, pin::pin, time::Duration};

use futures::future::{Either, select};
use worker::Delay;

use crate::error::Status;

/// The platform's timers hold a signed 32-bit number of milliseconds. No call waits that long, so more is no limit.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// Gives `work` so much time. After it the work is dropped, and its outcome is unknown.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match limit {
        Some(Duration::ZERO) => Err(Status::deadline()),
        Some(limit) if limit < LONGEST => match select(pin!(work), pin!(Delay::from(limit))).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(Status::deadline()),
        },
        _ => work.await,
    }
}
