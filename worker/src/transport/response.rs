//! Making the platform's responses. Headers that are always the same are made once per isolate: a response copies them.

use js_sys::Uint8Array;
use sealog_proto::grpc_web;
use wasm_bindgen::JsValue;
use worker::web_sys::{Headers, ReadableStream, Response, ResponseInit};

use super::{answer::Answer, cors, metadata::Mode};
use crate::{error::Status, request_id::RequestIds};

/// Makes every response of an isolate.
#[derive(Debug)]
pub struct Responder {
    ids: RequestIds,
    binary: Template,
    text: Template,
}

/// A response without its body. Only the id changes from one to the next.
#[derive(Debug)]
struct Template {
    headers: Headers,
    init: ResponseInit,
}

impl Template {
    fn new(status: u16, headers: &[(&str, &str)]) -> Result<Self, JsValue> {
        let all = Headers::new()?;
        for (name, value) in cors::ALWAYS.iter().chain(headers) {
            all.set(name, value)?;
        }
        let init = ResponseInit::new();
        init.set_status(status);
        init.set_headers(&all);
        Ok(Self { headers: all, init })
    }

    fn respond(&self, id: &str, body: Option<&[u8]>) -> Result<Response, JsValue> {
        self.headers.set("x-request-id", id)?;
        let body = body.map(Uint8Array::new_from_slice);
        Response::new_with_opt_buffer_source_and_init(body.as_deref(), &self.init)
    }
}

impl Responder {
    /// Prepares what is the same for all.
    pub fn new() -> Result<Self, JsValue> {
        let of = |mode: Mode| Template::new(200, &[("content-type", mode.content_type())]);
        Ok(Self { ids: RequestIds::begin(), binary: of(Mode::Binary)?, text: of(Mode::Text)? })
    }

    /// The id of the next response, for the log and the response.
    pub fn next_id(&self) -> String {
        self.ids.next()
    }

    /// The answer to a gRPC-Web call: HTTP 200 whatever its status, which is in the trailers.
    pub fn grpc_web(&self, id: &str, mode: Mode, answer: Answer) -> Result<Response, JsValue> {
        self.template(mode).respond(id, Some(&answer.into_body(mode)))
    }

    /// The answer to a gRPC-Web call that goes on for as long as its body.
    pub fn grpc_web_stream(&self, id: &str, mode: Mode, body: &ReadableStream) -> Result<Response, JsValue> {
        let template = self.template(mode);
        template.headers.set("x-request-id", id)?;
        Response::new_with_opt_readable_stream_and_init(Some(body), &template.init)
    }

    /// The answer to a native gRPC call: the status in headers, as a call without a message has it.
    pub fn native_grpc(&self, status: &Status) -> Result<Response, JsValue> {
        let code = (status.code as i32).to_string();
        let message = grpc_web::escape(&status.message).to_string();
        let headers =
            [("content-type", "application/grpc"), ("grpc-status", &code), ("grpc-message", &message)];
        self.once(200, &headers, None)
    }

    /// The answer to a preflight.
    pub fn preflight(&self, requested_headers: Option<&str>) -> Result<Response, JsValue> {
        let headers = [
            ("access-control-allow-methods", cors::METHODS),
            ("access-control-allow-headers", &cors::allowed_headers(requested_headers)),
            ("access-control-max-age", cors::MAX_AGE),
        ];
        self.once(204, &headers, None)
    }

    /// An explanation for a person, to a request that is no call.
    pub fn explain(&self, status: u16, text: &str) -> Result<Response, JsValue> {
        let headers = [("content-type", "text/plain; charset=utf-8"), ("allow", "POST, OPTIONS")];
        self.once(status, if status == 405 { &headers } else { &headers[..1] }, Some(text.as_bytes()))
    }

    /// A JSON document.
    pub fn json(&self, document: &[u8]) -> Result<Response, JsValue> {
        self.once(200, &[("content-type", "application/json"), ("cache-control", "no-store")], Some(document))
    }

    fn template(&self, mode: Mode) -> &Template {
        match mode {
            Mode::Binary => &self.binary,
            Mode::Text => &self.text,
        }
    }

    fn once(&self, status: u16, headers: &[(&str, &str)], body: Option<&[u8]>) -> Result<Response, JsValue> {
        Template::new(status, headers)?.respond(&self.next_id(), body)
    }
}
