//! The headers of a call, read once: what the body is, what the answer shall be, how long it may take.

use std::time::Duration;

use super::timeout::{self, TimeoutError};

/// How frames are written into a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As they are.
    Binary,
    /// As base64.
    Text,
}

impl Mode {
    /// The content type of an answer.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Binary => "application/grpc-web+proto",
            Self::Text => "application/grpc-web-text+proto",
        }
    }

    /// The mode that a media type names; parameters and letter case do not matter.
    fn of(media_type: &str) -> Option<Self> {
        let essence = essence(media_type);
        let is = |name: &str| essence.eq_ignore_ascii_case(name);
        if is("application/grpc-web+proto") || is("application/grpc-web") {
            Some(Self::Binary)
        } else if is("application/grpc-web-text") || is("application/grpc-web-text+proto") {
            Some(Self::Text)
        } else {
            None
        }
    }
}

/// What kind of caller a request's content type shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC-Web, with its request in this mode.
    GrpcWeb(Mode),
    /// gRPC over HTTP/2, which a Worker cannot answer as such.
    NativeGrpc,
    /// Anything else.
    Other,
}

impl Protocol {
    /// Reads a `content-type`; a missing one is something else.
    pub fn of(content_type: Option<&str>) -> Self {
        let Some(content_type) = content_type else { return Self::Other };
        if let Some(mode) = Mode::of(content_type) {
            return Self::GrpcWeb(mode);
        }
        let essence = essence(content_type);
        if essence.eq_ignore_ascii_case("application/grpc")
            || essence.eq_ignore_ascii_case("application/grpc+proto")
        {
            return Self::NativeGrpc;
        }
        Self::Other
    }
}

/// The mode of the answer: what `accept` names first, else the request's.
pub fn answer_mode(accept: Option<&str>, request: Mode) -> Mode {
    accept.and_then(|accept| accept.split(',').find_map(Mode::of)).unwrap_or(request)
}

/// Why a call is refused by its headers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The request is compressed.
    #[error("the header {0} names a compression: send requests uncompressed (identity)")]
    Compressed(&'static str),
    /// The timeout cannot be read.
    #[error(transparent)]
    Timeout(#[from] TimeoutError),
}

/// What the headers say beside the content type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// How long the caller waits.
    pub timeout: Option<Duration>,
    /// Bytes of the body, where the header says it.
    pub content_length: Option<u64>,
}

impl Head {
    /// Reads the headers through `get`, which gives a header's value by its lower-case name.
    pub fn read(get: impl Fn(&'static str) -> Option<String>) -> Result<Self, HeadError> {
        for name in ["grpc-encoding", "content-encoding"] {
            if get(name).is_some_and(|value| is_compression(&value)) {
                return Err(HeadError::Compressed(name));
            }
        }
        let timeout = get("grpc-timeout").as_deref().map(timeout::parse).transpose()?;
        let content_length = get("content-length").and_then(|value| value.parse().ok());
        Ok(Self { timeout, content_length })
    }
}

fn is_compression(encoding: &str) -> bool {
    let encoding = encoding.trim();
    !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity")
}

fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_content_type_is_known() {
        for (value, protocol) in [
            ("application/grpc-web", Protocol::GrpcWeb(Mode::Binary)),
            ("application/grpc-web+proto", Protocol::GrpcWeb(Mode::Binary)),
            ("Application/gRPC-Web+Proto; charset=utf-8", Protocol::GrpcWeb(Mode::Binary)),
            ("application/grpc-web-text", Protocol::GrpcWeb(Mode::Text)),
            (" application/grpc-web-text+proto ;a=b;c", Protocol::GrpcWeb(Mode::Text)),
            ("application/grpc", Protocol::NativeGrpc),
            ("application/grpc+proto", Protocol::NativeGrpc),
            ("application/grpc-web+json", Protocol::Other),
            ("application/json", Protocol::Other),
            ("", Protocol::Other),
        ] {
            assert_eq!(Protocol::of(Some(value)), protocol, "{value:?}");
        }
        assert_eq!(Protocol::of(None), Protocol::Other);
    }

    #[test]
    fn the_answer_follows_accept_and_else_the_request() {
        assert_eq!(answer_mode(None, Mode::Text), Mode::Text);
        assert_eq!(answer_mode(Some("*/*"), Mode::Text), Mode::Text);
        assert_eq!(answer_mode(Some("application/grpc-web+proto"), Mode::Text), Mode::Binary);
        assert_eq!(answer_mode(Some("text/html, application/grpc-web-text;q=1"), Mode::Binary), Mode::Text);
    }

    fn read(headers: &[(&str, &str)]) -> Result<Head, HeadError> {
        Head::read(|name| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn api_281_only_identity_is_no_compression() {
        for name in ["grpc-encoding", "content-encoding"] {
            assert!(read(&[(name, "identity")]).is_ok());
            assert!(read(&[(name, " Identity ")]).is_ok());
            assert_eq!(read(&[(name, "gzip")]), Err(HeadError::Compressed(name)));
            assert_eq!(read(&[(name, "identity, gzip")]), Err(HeadError::Compressed(name)));
        }
    }

    #[test]
    fn the_rest_is_read_where_it_is_there() {
        assert_eq!(read(&[]), Ok(Head { timeout: None, content_length: None }));
        assert_eq!(
            read(&[("grpc-timeout", "5S"), ("content-length", "12")]),
            Ok(Head { timeout: Some(Duration::from_secs(5)), content_length: Some(12) })
        );
        assert_eq!(read(&[("grpc-timeout", "soon")]), Err(HeadError::Timeout(TimeoutError)));
    }
}
