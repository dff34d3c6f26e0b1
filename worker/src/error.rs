//! The one place where a failure becomes a gRPC status (contract section 7, API-281).
//!
//! Every other module speaks of what went wrong in its own terms; the code is chosen here, by kind, never by text.
//! Messages are for people and name no topic, key or payload (SEC-051).

use std::borrow::Cow;

use sealog_admission::PublishRefusal;
use sealog_objects::{CallError, OpenError, Published};
use sealog_proto::{
    TopicError,
    backend::publish_error::Reason,
    internal::failure::Kind,
    status::{Code, PublishFailure},
};

use crate::{
    chain::ChainError,
    config::ConfigError,
    fan_out::FanOutError,
    transport::{
        body::BodyError, frame::FrameError, metadata::HeadError, request::ReadError, timeout::TimeoutError,
    },
};

/// How a call failed, as the client learns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What a client goes by.
    pub code: Code,
    /// For a person.
    pub message: Cow<'static, str>,
    /// An encoded `google.rpc.Status`, on a failed publish only.
    pub details: Option<Vec<u8>>,
}

impl Status {
    /// A status without details.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    /// The request breaks a rule of the contract.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// The message of an answer is longer than what is carried (API-282).
    pub fn answer_too_long(length: usize, limit: usize) -> Self {
        Self::new(
            Code::OutOfRange,
            format!("the answer has {length} bytes, over the limit of {limit}: ask for less at once"),
        )
    }

    /// The time of the caller, or ours, is over before the answer was there.
    pub fn deadline() -> Self {
        Self::new(
            Code::DeadlineExceeded,
            "the time limit passed before the answer was there; the request may still take effect",
        )
    }

    /// What is stored is not as the backend left it. No fault of the request.
    pub fn invariant() -> Self {
        Self::new(Code::Internal, "a stored value violates an invariant that the backend maintains")
    }

    /// The platform broke off a read or an answer.
    pub fn platform(what: &'static str) -> Self {
        Self::new(Code::Unavailable, what)
    }

    /// Adds the detail that every `INVALID_ARGUMENT` of a publish carries, where none is there yet (API-223).
    #[must_use]
    pub fn with_publish_detail(self) -> Self {
        if self.code != Code::InvalidArgument || self.details.is_some() {
            return self;
        }
        PublishFailure { index: None, reason: Reason::MalformedPayload, message: self.message.into_owned() }
            .into()
    }
}

impl Status {
    /// A publish that the objects refused.
    pub fn refused(refusal: &Published) -> Self {
        match refusal {
            Published::HeadMoved => Self::new(
                Code::Aborted,
                "the identity history moved: read the inbox's identity topic and build the update anew",
            ),
            Published::Busy => {
                Self::new(Code::Unavailable, "too many publishes wait at once: repeat after a pause")
            }
            Published::Stored(_) | Published::Taken => {
                Self::new(Code::Internal, "a publish ended in a way that is answered elsewhere")
            }
        }
    }
}

impl From<PublishFailure> for Status {
    fn from(failure: PublishFailure) -> Self {
        let details = failure.to_details();
        Self { details: Some(details), ..Self::invalid(failure.message) }
    }
}

impl From<PublishRefusal> for Status {
    fn from(refusal: PublishRefusal) -> Self {
        match refusal {
            PublishRefusal::Invalid { failure, .. } => failure.into(),
            PublishRefusal::ResponseTooLong => Self::new(
                Code::OutOfRange,
                "the answer to so many envelopes would be too long; nothing was stored: split the request",
            ),
        }
    }
}

impl From<HeadError> for Status {
    fn from(error: HeadError) -> Self {
        let code = match error {
            HeadError::Compressed(_) => Code::Unimplemented,
            HeadError::Timeout(TimeoutError) => Code::InvalidArgument,
        };
        Self::new(code, error.to_string())
    }
}

impl From<FrameError> for Status {
    fn from(error: FrameError) -> Self {
        let code = match error {
            FrameError::TooLong { .. } => Code::OutOfRange,
            FrameError::Compressed => Code::Unimplemented,
            FrameError::Missing
            | FrameError::NotAMessage(_)
            | FrameError::Short { .. }
            | FrameError::Trailing => Code::InvalidArgument,
        };
        Self::new(code, error.to_string())
    }
}

impl From<BodyError> for Status {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Frame(error) => error.into(),
            BodyError::Text(error) => Self::invalid(error.to_string()),
        }
    }
}

impl From<ReadError> for Status {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Body(error) => error.into(),
            ReadError::BrokenOff => {
                Self::platform("the request body could not be read to its end: send it again")
            }
        }
    }
}

impl From<prost::DecodeError> for Status {
    fn from(error: prost::DecodeError) -> Self {
        Self::invalid(format!("the request message does not decode: {error}"))
    }
}

impl From<TopicError> for Status {
    fn from(error: TopicError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<ConfigError> for Status {
    fn from(error: ConfigError) -> Self {
        Self::new(Code::Unavailable, format!("the deployment is misconfigured: {error}"))
    }
}

impl From<FanOutError> for Status {
    fn from(error: FanOutError) -> Self {
        match error {
            FanOutError::TooLong { limit } => Self::new(
                Code::OutOfRange,
                format!(
                    "the answer is longer than the limit of {limit} bytes: ask for fewer envelopes or topics"
                ),
            ),
            FanOutError::Contradiction => Self::new(Code::Internal, "a partition answered against its rules"),
        }
    }
}

impl From<ChainError> for Status {
    fn from(error: ChainError) -> Self {
        Self::new(
            Code::Unavailable,
            format!("the signature has no verdict, repeat the request later: {error}"),
        )
    }
}

impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        match error.kind {
            Kind::Deadline => Self::deadline(),
            Kind::Invariant => Self::invariant(),
            Kind::TooLong => Self::new(Code::OutOfRange, error.message),
            Kind::Configuration => Self::new(Code::Unavailable, error.message),
            Kind::Unavailable | Kind::BadCommand | Kind::Unspecified => {
                Self::new(Code::Unavailable, "the store is unreachable for the moment: repeat the request")
            }
        }
    }
}

impl From<OpenError> for Status {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Invalid(message) => Self::invalid(message),
            OpenError::Call(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chain::ChainFailure, transport::text::TextError};

    #[test]
    fn api_281_each_condition_has_the_code_of_the_status_table() {
        let call = |kind| Status::from(CallError { kind, message: "m".to_owned() }).code;
        for (code, expected) in [
            (Status::from(HeadError::Compressed("grpc-encoding")).code, Code::Unimplemented),
            (Status::from(HeadError::Timeout(TimeoutError)).code, Code::InvalidArgument),
            (Status::from(FrameError::Compressed).code, Code::Unimplemented),
            (Status::from(FrameError::TooLong { length: 2, limit: 1 }).code, Code::OutOfRange),
            (Status::from(FrameError::Missing).code, Code::InvalidArgument),
            (Status::from(FrameError::NotAMessage(2)).code, Code::InvalidArgument),
            (Status::from(FrameError::Short { announced: 9, received: 6 }).code, Code::InvalidArgument),
            (Status::from(FrameError::Trailing).code, Code::InvalidArgument),
            (Status::from(BodyError::Text(TextError::Invalid)).code, Code::InvalidArgument),
            (Status::from(ReadError::BrokenOff).code, Code::Unavailable),
            (Status::from(PublishRefusal::ResponseTooLong).code, Code::OutOfRange),
            (Status::from(TopicError::Empty).code, Code::InvalidArgument),
            (Status::from(FanOutError::TooLong { limit: 1 }).code, Code::OutOfRange),
            (Status::from(FanOutError::Contradiction).code, Code::Internal),
            (Status::from(ChainError { chain: 1, failure: ChainFailure::NoRoute }).code, Code::Unavailable),
            (Status::answer_too_long(2, 1).code, Code::OutOfRange),
            (Status::deadline().code, Code::DeadlineExceeded),
            (Status::from(OpenError::Invalid("m".to_owned())).code, Code::InvalidArgument),
            (call(Kind::Deadline), Code::DeadlineExceeded),
            (call(Kind::Invariant), Code::Internal),
            (call(Kind::TooLong), Code::OutOfRange),
            (call(Kind::Configuration), Code::Unavailable),
            (call(Kind::Unavailable), Code::Unavailable),
            (call(Kind::BadCommand), Code::Unavailable),
            (call(Kind::Unspecified), Code::Unavailable),
        ] {
            assert_eq!(code, expected);
        }
    }

    #[test]
    fn api_223_a_malformed_publish_carries_a_detail_without_index() {
        let status = Status::from(FrameError::Missing).with_publish_detail();
        let detail = PublishFailure::from_details(status.details.as_deref().unwrap()).unwrap();
        assert_eq!(detail.index, None);
        assert_eq!(detail.reason, Reason::MalformedPayload);
        assert_eq!(detail.message, status.message);
    }

    #[test]
    fn api_223_a_detail_is_never_replaced_and_other_codes_have_none() {
        let failure = PublishFailure { index: Some(7), reason: Reason::TooLarge, message: "m".to_owned() };
        let status = Status::from(failure.clone()).with_publish_detail();
        assert_eq!(PublishFailure::from_details(status.details.as_deref().unwrap()), Some(failure));
        assert_eq!(Status::deadline().with_publish_detail().details, None);
    }
}
