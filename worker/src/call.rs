//! One HTTP request, from its headers to its response.

use std::rc::Rc;

use sealog_proto::status::Code;
use wasm_bindgen::JsValue;
use worker::{
    Env, console_error,
    web_sys::{Headers, Request, Response},
};

use crate::{
    deadline::within,
    deployment::Deployment,
    error::Status,
    route::{Method, Route, path_of, route},
    services, status_page,
    transport::{
        answer::Answer,
        js,
        metadata::{Mode, Protocol, answer_mode},
        request::{self, header},
        response::Responder,
    },
};

const NO_SUCH_PATH: &str = "There is nothing at this path. sealog serves gRPC-Web: POST to \
    /xmtp.backend.v1.QueryService/Query, for example.\n";
const ONLY_POST: &str = "This is a gRPC-Web method: call it with POST.\n";
const WRONG_TYPE: &str = "This is a gRPC-Web method: send content-type application/grpc-web+proto, or \
    application/grpc-web-text for base64.\n";
const NATIVE_GRPC: &str = "this port speaks gRPC-Web, not gRPC over HTTP/2: use a gRPC-Web client (content-type \
    application/grpc-web+proto), or put a gRPC to gRPC-Web gateway in between";

/// Answers any request.
pub async fn respond(responder: &Responder, request: &Request, env: &Env) -> Result<Response, JsValue> {
    let http_method = request.method();
    let headers = request.headers();
    if http_method == "OPTIONS" {
        return responder.preflight(header(&headers, "access-control-request-headers").as_deref());
    }
    let url = request.url();
    let route = route(path_of(&url));
    if http_method != "POST" {
        return match route {
            Route::Status => status(responder, &headers, env).await,
            Route::Unknown => responder.explain(404, NO_SUCH_PATH),
            Route::Served(_) | Route::NotBuilt(_) => responder.explain(405, ONLY_POST),
        };
    }
    match Protocol::of(header(&headers, "content-type").as_deref()) {
        Protocol::GrpcWeb(mode) => grpc_web(responder, request, &headers, env, route, mode).await,
        Protocol::NativeGrpc => responder.native_grpc(&Status::new(Code::Unimplemented, NATIVE_GRPC)),
        Protocol::Other => match route {
            Route::Served(_) | Route::NotBuilt(_) => responder.explain(415, WRONG_TYPE),
            Route::Status | Route::Unknown => responder.explain(404, NO_SUCH_PATH),
        },
    }
}

/// The page for operators, or nothing at all.
async fn status(responder: &Responder, headers: &Headers, env: &Env) -> Result<Response, JsValue> {
    let Ok(deployment) = Deployment::get(env) else { return responder.explain(404, NO_SUCH_PATH) };
    if !status_page::is_open_to(&deployment.config, header(headers, "authorization").as_deref()) {
        return responder.explain(404, NO_SUCH_PATH);
    }
    let boundary = deployment.store.boundary().await.ok();
    let seen = status_page::Seen {
        requests: &deployment.counters.requests(),
        object_calls: &deployment.store.object_calls(),
        memory_bytes: js::memory_bytes(),
        boundary: boundary.map(|sequence_id| status_page::Boundary {
            sequence_id,
            told_at_ms: worker::Date::now().as_millis(),
        }),
    };
    let page = status_page::page(&deployment.config, &seen);
    responder.json(&page.map_err(|error| JsValue::from(error.to_string()))?)
}

/// Answers a gRPC-Web call.
async fn grpc_web(
    responder: &Responder,
    request: &Request,
    headers: &Headers,
    env: &Env,
    route: Route,
    mode: Mode,
) -> Result<Response, JsValue> {
    let id = responder.next_id();
    let answer_mode = answer_mode(header(headers, "accept").as_deref(), mode);
    let outcome = match route {
        Route::Served(method) => served(&id, method, request, headers, env, mode).await,
        Route::NotBuilt(instead) => Err(Status::new(Code::Unimplemented, instead)),
        Route::Status | Route::Unknown => {
            Err(Status::new(Code::Unimplemented, "the API has no method at this path"))
        }
    };
    let answer = match outcome {
        Ok(answer) => answer,
        Err(status) => {
            request::discard(request).await;
            Answer::failure(&status)
        }
    };
    responder.grpc_web(&id, answer_mode, answer)
}

/// Calls a method, counts it, and logs what an operator should know of.
async fn served(
    id: &str,
    method: Method,
    request: &Request,
    headers: &Headers,
    env: &Env,
    mode: Mode,
) -> Result<Answer, Status> {
    let deployment = Deployment::get(env)?;
    let outcome = answer(method, &deployment, request, headers, mode).await;
    let outcome = match method {
        Method::Publish => outcome.map_err(Status::with_publish_detail),
        Method::Query
        | Method::QueryNewest
        | Method::VerifySmartContractWalletSignatures
        | Method::HealthCheck => outcome,
    };
    let code = outcome.as_ref().map_or_else(|status| status.code, |_| Code::Ok);
    deployment.counters.request(method.name(), code);
    if let Err(Status { code: Code::Internal | Code::Unavailable, message, .. }) = &outcome {
        console_error!("request {id} failed: {}: {code:?}: {message}", method.name());
    }
    outcome
}

async fn answer(
    method: Method,
    deployment: &Rc<Deployment>,
    request: &Request,
    headers: &Headers,
    mode: Mode,
) -> Result<Answer, Status> {
    let head = request::head(headers)?;
    within(head.timeout, async {
        let limit = deployment.config.limits.publish.max_request_bytes;
        let message = request::message(request, mode, &head, limit).await?;
        services::serve(method, deployment, message).await
    })
    .await
}
