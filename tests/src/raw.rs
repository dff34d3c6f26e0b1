//! Plain HTTP: requests that no well-behaved client sends, and answers read byte by byte.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD, engine::general_purpose::STANDARD_NO_PAD};
use bytes::{Buf as _, Bytes};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::{Client as Pool, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use sealog_proto::status::PublishFailure;
use tonic::codegen::Body;
use tonic::codegen::http::{HeaderMap, Method, Request, StatusCode};

/// The flag of a message frame.
pub const MESSAGE: u8 = 0x00;
/// The flag of a compressed message frame.
pub const COMPRESSED: u8 = 0x01;
/// The flag of a trailers frame.
pub const TRAILERS: u8 = 0x80;

/// The content type that a binary gRPC-Web client sends.
pub const GRPC_WEB: &str = "application/grpc-web+proto";
/// The content type that a text-mode gRPC-Web client sends.
pub const GRPC_WEB_TEXT: &str = "application/grpc-web-text+proto";

/// How long a connection is kept that nobody uses. workerd closes one after 15 s, about when a test that let objects
/// sleep goes on: a request must not meet that.
const KEPT: Duration = Duration::from_secs(5);

/// HTTP/1.1 connections for a client.
pub(crate) fn connections<B: Body<Data: Send> + Send>() -> Pool<HttpConnector, B> {
    Pool::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(KEPT).build_http()
}

/// A plain HTTP/1.1 client.
#[derive(Clone)]
pub struct Raw {
    http: Pool<HttpConnector, Full<Bytes>>,
    origin: String,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The HTTP headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub body: Bytes,
}

/// A gRPC-Web answer taken apart.
#[derive(Debug)]
pub struct Unary {
    /// The message frames' payloads.
    pub messages: Vec<Bytes>,
    /// The lines of the trailers frame, or the HTTP headers of an answer without a body.
    pub trailers: BTreeMap<String, String>,
}

impl Raw {
    /// A client of the server at `origin`.
    pub fn new(origin: &str) -> Self {
        let http = connections();
        Self { http, origin: origin.trim_end_matches('/').to_owned() }
    }

    /// Sends one request as it is given.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> anyhow::Result<Answer> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.origin));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.http.request(request.body(Full::new(body.into()))?).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.context("the answer broke off")?.to_bytes();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// Posts a body as a binary gRPC-Web request.
    pub async fn post(&self, path: &str, body: impl Into<Bytes>) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, &[("content-type", GRPC_WEB)], body).await
    }

    /// Posts one message, framed, as a binary gRPC-Web request.
    pub async fn unary(&self, path: &str, message: &[u8]) -> anyhow::Result<Unary> {
        self.post(path, frame(MESSAGE, message)).await?.unary()
    }
}

impl Answer {
    /// The text of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Reads the body as gRPC-Web, in the mode that its content type names.
    pub fn unary(&self) -> anyhow::Result<Unary> {
        ensure!(self.status == StatusCode::OK, "HTTP {} instead of 200: {:?}", self.status, self.body);
        let content_type = self.header("content-type").context("no content-type")?;
        let body = if content_type.starts_with("application/grpc-web-text") {
            from_text(&self.body)?
        } else {
            ensure!(content_type.starts_with("application/grpc-web"), "content-type is {content_type}");
            self.body.clone()
        };
        let mut answer = Unary { messages: Vec::new(), trailers: BTreeMap::new() };
        for (flag, payload) in frames(body)? {
            ensure!(answer.trailers.is_empty(), "a frame follows the trailers frame");
            match flag {
                MESSAGE => answer.messages.push(payload),
                TRAILERS => answer.trailers = trailer_lines(&payload)?,
                other => bail!("unknown frame flag {other:#04x}"),
            }
        }
        ensure!(answer.trailers.contains_key("grpc-status"), "the answer ends without a grpc-status");
        Ok(answer)
    }
}

impl Unary {
    /// The gRPC status code.
    ///
    /// # Panics
    /// When `grpc-status` is not a number.
    pub fn code(&self) -> i32 {
        self.trailers["grpc-status"].parse().expect("grpc-status is a number")
    }

    /// The text of `grpc-message`, still percent-encoded.
    pub fn message(&self) -> &str {
        self.trailers.get("grpc-message").map_or("", String::as_str)
    }

    /// The detail of a failed publish, when there is one.
    pub fn failure(&self) -> Option<PublishFailure> {
        let text = self.trailers.get("grpc-status-details-bin")?;
        PublishFailure::from_details(&STANDARD_NO_PAD.decode(text.trim_end_matches('=')).ok()?)
    }
}

/// One gRPC-Web frame.
///
/// # Panics
/// When the payload is longer than a frame can say.
pub fn frame(flag: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame holds less than 4 GiB");
    [&[flag], length.to_be_bytes().as_slice(), payload].concat()
}

/// Text mode: base64 over the frames.
pub fn to_text(frames: &[u8]) -> String {
    STANDARD.encode(frames)
}

/// Text mode the other way. Every flush may end in padding, so that a body is a row of base64 texts.
fn from_text(body: &[u8]) -> anyhow::Result<Bytes> {
    let mut out = Vec::new();
    ensure!(body.len().is_multiple_of(4), "text mode comes in groups of 4 characters");
    for group in body.chunks(4) {
        out.extend(STANDARD.decode(group).context("a group of the text is not base64")?);
    }
    Ok(out.into())
}

pub(crate) fn frames(mut body: Bytes) -> anyhow::Result<Vec<(u8, Bytes)>> {
    let mut out = Vec::new();
    while body.has_remaining() {
        ensure!(body.remaining() >= 5, "{} bytes are no frame header", body.remaining());
        let flag = body.get_u8();
        let length = usize::try_from(body.get_u32())?;
        ensure!(body.remaining() >= length, "a frame of {length} bytes is cut short");
        out.push((flag, body.split_to(length)));
    }
    Ok(out)
}

pub(crate) fn trailer_lines(payload: &[u8]) -> anyhow::Result<BTreeMap<String, String>> {
    let text = std::str::from_utf8(payload).context("trailers are ASCII")?;
    let mut lines = BTreeMap::new();
    for line in text.split_terminator("\r\n") {
        let (name, value) = line.split_once(':').with_context(|| format!("no colon in {line:?}"))?;
        ensure!(name == name.to_ascii_lowercase(), "trailer names are lower-case: {name}");
        lines.insert(name.to_owned(), value.trim().to_owned());
    }
    Ok(lines)
}
