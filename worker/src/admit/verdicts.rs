//! What was found so far about the envelopes of one publish.

use sealog_admission::Rejection;
use sealog_proto::status::PublishFailure;

use crate::error::Status;

/// The failure at the lowest index, and the first thing that kept a verdict from being reached.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    failure: Option<PublishFailure>,
    outage: Option<Status>,
}

impl Verdicts {
    /// Starts with a failure that is known already.
    pub(crate) fn with(failure: PublishFailure) -> Self {
        Self { failure: Some(failure), outage: None }
    }

    /// The envelope at `index` of the request is refused.
    pub(crate) fn reject(&mut self, index: u32, rejection: &Rejection) {
        if !self.is_moot(index) {
            self.failure = Some(PublishFailure {
                index: Some(index),
                reason: rejection.reason(),
                message: rejection.to_string(),
            });
        }
    }

    /// No verdict on some envelope can be reached now.
    pub(crate) fn outage(&mut self, status: Status) {
        self.outage.get_or_insert(status);
    }

    /// Whether what is found at `index` cannot change the answer: an envelope at or below it has failed.
    pub(crate) fn is_moot(&self, index: u32) -> bool {
        self.failure.as_ref().and_then(|failure| failure.index).is_some_and(|lowest| lowest <= index)
    }

    /// The answer, unless everything passed.
    pub(crate) fn finish(self) -> Result<(), Status> {
        match (self.failure, self.outage) {
            (Some(failure), _) => Err(failure.into()),
            (None, Some(outage)) => Err(outage),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use sealog_proto::{backend::publish_error::Reason, status::Code};

    use super::*;

    fn index(verdicts: Verdicts) -> Option<u32> {
        let details = verdicts.finish().unwrap_err().details;
        details.and_then(|details| PublishFailure::from_details(&details)).and_then(|failure| failure.index)
    }

    #[test]
    fn api_223_the_lowest_index_is_told() {
        let mut verdicts = Verdicts::default();
        for at in [4, 2, 3] {
            verdicts.reject(at, &Rejection::InboxId);
        }
        assert!(verdicts.is_moot(2) && verdicts.is_moot(3) && !verdicts.is_moot(1));
        assert_eq!(index(verdicts), Some(2));
    }

    #[test]
    fn a_structural_failure_gives_way_to_a_lower_one_only() {
        let structural =
            || PublishFailure { index: Some(5), reason: Reason::MalformedPayload, message: "m".to_owned() };
        let mut verdicts = Verdicts::with(structural());
        verdicts.reject(6, &Rejection::InboxId);
        assert_eq!(index(verdicts), Some(5));
        let mut verdicts = Verdicts::with(structural());
        verdicts.reject(1, &Rejection::InboxId);
        assert_eq!(index(verdicts), Some(1));
    }

    #[test]
    fn api_231_an_outage_is_told_when_nothing_is_certain() {
        let outage = || Status::new(Code::Unavailable, "down");
        let mut verdicts = Verdicts::default();
        verdicts.outage(outage());
        verdicts.outage(Status::deadline());
        assert_eq!(verdicts.finish(), Err(outage()));
        let mut verdicts = Verdicts::default();
        verdicts.outage(outage());
        verdicts.reject(9, &Rejection::InboxId);
        assert_eq!(index(verdicts), Some(9));
        assert_eq!(Verdicts::default().finish(), Ok(()));
    }
}
