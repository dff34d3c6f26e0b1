//! One HTTP request, from its headers to its response.

use std::rc::Rc;

use bytes::Bytes;
use sealog_proto::status::Code;
use wasm_bindgen::JsValue;
use worker::{
    Env, console_error,
    web_sys::{Headers, ReadableStream, Request, Response},
};

use crate::{
    deadline::within,
    deployment::Deployment,
    error::Status,
    repair,
    route::{Method, Route, path_of, query_of, route},
    services::{self, subscribe},
    status_page,
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
const ONLY_POST_REPAIR: &str = "The repair writes: call it with POST.\n";
const NO_POSITION: &str =
    "`from` is no position of the repair: leave it out, or give what `next` of a batch said.\n";
const REPAIR_FAILED: &str = "This batch failed; the log says why. Repeat it: nothing is lost by that.\n";
const ONLY_UPGRADE: &str = "Subscribe runs over a WebSocket: connect with the subprotocol grpc-websockets.\n";
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
    if route == Route::Repair {
        return repair(responder, &http_method, query_of(&url, "from"), &headers, env).await;
    }
    if http_method != "POST" {
        return match route {
            Route::Subscribe => upgrade(responder, &headers, env).await,
            Route::Status => status(responder, &headers, env).await,
            Route::Unknown | Route::Repair => responder.explain(404, NO_SUCH_PATH),
            Route::Served(_) | Route::SubscribeStatic | Route::NotBuilt(_) => {
                responder.explain(405, ONLY_POST)
            }
        };
    }
    match Protocol::of(header(&headers, "content-type").as_deref()) {
        Protocol::GrpcWeb(mode) => grpc_web(responder, request, &headers, env, route, mode).await,
        Protocol::NativeGrpc => responder.native_grpc(&Status::new(Code::Unimplemented, NATIVE_GRPC)),
        Protocol::Other => match route {
            Route::Served(_) | Route::Subscribe | Route::SubscribeStatic | Route::NotBuilt(_) => {
                responder.explain(415, WRONG_TYPE)
            }
            Route::Status | Route::Repair | Route::Unknown => responder.explain(404, NO_SUCH_PATH),
        },
    }
}

/// The deployment, for who sends the operators' token.
fn for_operators(headers: &Headers, env: &Env) -> Option<Rc<Deployment>> {
    let authorization = header(headers, "authorization");
    let is_open =
        |deployment: &Rc<Deployment>| status_page::is_open_to(&deployment.config, authorization.as_deref());
    Deployment::get(env).ok().filter(is_open)
}

/// One batch of the repair, or nothing at all.
async fn repair(
    responder: &Responder,
    http_method: &str,
    from: &str,
    headers: &Headers,
    env: &Env,
) -> Result<Response, JsValue> {
    let Some(deployment) = for_operators(headers, env) else { return responder.explain(404, NO_SUCH_PATH) };
    if http_method != "POST" {
        return responder.explain(405, ONLY_POST_REPAIR);
    }
    let Some(from) = repair::Position::parse(from) else { return responder.explain(400, NO_POSITION) };
    match repair::batch(&deployment, &from).await {
        Ok(progress) => responder.json(&to_json(&progress)?),
        Err(status) => {
            console_error!("a batch of the repair failed: {:?}: {}", status.code, status.message);
            responder.explain(503, REPAIR_FAILED)
        }
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<Vec<u8>, JsValue> {
    serde_json::to_vec(value).map_err(|error| JsValue::from(error.to_string()))
}

/// The page for operators, or nothing at all.
async fn status(responder: &Responder, headers: &Headers, env: &Env) -> Result<Response, JsValue> {
    let Some(deployment) = for_operators(headers, env) else { return responder.explain(404, NO_SUCH_PATH) };
    let boundary = deployment.store.boundary().await.ok();
    let seen = status_page::Seen {
        requests: &deployment.counters.requests(),
        object_calls: &deployment.store.object_calls(),
        isolate_calls: &sealog_objects::isolate_calls(),
        memory_bytes: js::memory_bytes(),
        streams: sealog_objects::stream_counters(),
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
        Route::Subscribe => Err(Status::new(Code::Unimplemented, subscribe::ONLY_WEBSOCKET)),
        Route::SubscribeStatic => match open(&id, request, headers, env, mode, answer_mode).await {
            Ok(body) => return responder.grpc_web_stream(&id, answer_mode, &body),
            Err(status) => Err(status),
        },
        Route::Served(method) => served(&id, method, request, headers, env, mode).await,
        Route::NotBuilt(instead) => Err(Status::new(Code::Unimplemented, instead)),
        Route::Status | Route::Repair | Route::Unknown => {
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

/// Answers the handshake of a `Subscribe`.
async fn upgrade(responder: &Responder, headers: &Headers, env: &Env) -> Result<Response, JsValue> {
    if !subscribe::is_upgrade(headers) || !subscribe::speaks_grpc(headers) {
        return responder.explain(426, ONLY_UPGRADE);
    }
    let id = responder.next_id();
    let opened = async {
        let deployment = Deployment::get(env)?;
        let opened = subscribe::subscribe(&deployment, &id).await;
        settle(&id, "SubscriptionService/Subscribe", &deployment, opened)
    };
    match opened.await {
        Ok(response) => Ok(response),
        // A page cannot read it: to a client, a handshake that fails is a broken connection.
        Err(status) => responder.explain(503, &format!("{}\n", status.message)),
    }
}

/// Opens a `SubscribeStatic`: the body of its answer.
async fn open(
    id: &str,
    request: &Request,
    headers: &Headers,
    env: &Env,
    mode: Mode,
    answer_mode: Mode,
) -> Result<ReadableStream, Status> {
    let deployment = Deployment::get(env)?;
    let opened = async {
        let message = message(&deployment, request, headers, mode).await?;
        subscribe::subscribe_static(&deployment, message, answer_mode).await
    };
    // The client's time limit is for opening the stream: it stays open for as long as the client wants (API-259).
    let opened = async { within(request::head(headers)?.timeout, opened).await };
    settle(id, "SubscriptionService/SubscribeStatic", &deployment, opened.await)
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
        | Method::GetInboxIds
        | Method::VerifySmartContractWalletSignatures
        | Method::HealthCheck => outcome,
    };
    settle(id, method.name(), &deployment, outcome)
}

fn settle<T>(
    id: &str,
    method: &'static str,
    deployment: &Deployment,
    outcome: Result<T, Status>,
) -> Result<T, Status> {
    let code = outcome.as_ref().map_or_else(|status| status.code, |_| Code::Ok);
    deployment.counters.request(method, code);
    if let Err(Status { code: Code::Internal | Code::Unavailable, message, .. }) = &outcome {
        console_error!("request {id} failed: {method}: {code:?}: {message}");
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
    within(request::head(headers)?.timeout, async {
        let message = message(deployment, request, headers, mode).await?;
        services::serve(method, deployment, message).await
    })
    .await
}

async fn message(
    deployment: &Deployment,
    request: &Request,
    headers: &Headers,
    mode: Mode,
) -> Result<Bytes, Status> {
    let limit = deployment.config.limits.publish.max_request_bytes;
    Ok(request::message(request, mode, &request::head(headers)?, limit).await?)
}
