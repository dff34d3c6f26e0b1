//! `SubscriptionService` (contract section 5): each stream gets a session of its own, which does all the work.
//!
//! Subscribe runs over a WebSocket, framed as `grpc-websockets`: a browser, and gRPC-Web over HTTP at all, cannot send
//! while it receives. The session accepts the socket; nothing of the stream passes through the worker.
//! `SubscribeStatic` is a gRPC-Web call whose answer does not end: the session writes the frames of the body.

use bytes::Bytes;
use sealog_objects::{BodyMode, grpc_websocket::SUBPROTOCOL};
use worker::web_sys::{Headers, ReadableStream, Response};

use crate::{
    deployment::Deployment,
    error::Status,
    transport::{metadata::Mode, request::header},
};

/// What to use instead of plain gRPC-Web for a bidirectional call.
pub const ONLY_WEBSOCKET: &str = "Subscribe runs over a WebSocket: connect to this address with the subprotocol \
    grpc-websockets, or call SubscriptionService/SubscribeStatic";

/// Whether a request asks for a WebSocket.
pub fn is_upgrade(headers: &Headers) -> bool {
    header(headers, "upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

/// Whether a client that asks for a WebSocket speaks our framing.
pub fn speaks_grpc(headers: &Headers) -> bool {
    header(headers, "sec-websocket-protocol").is_some_and(|offered| offers(&offered))
}

fn offers(protocols: &str) -> bool {
    protocols.split(',').any(|protocol| protocol.trim() == SUBPROTOCOL)
}

/// `Subscribe`: the response that completes the handshake.
pub async fn subscribe(deployment: &Deployment, request_id: &str) -> Result<Response, Status> {
    Ok(deployment.store.new_session().await?.subscribe(request_id).await?)
}

/// `SubscribeStatic`: the body of the answer, with the trailers at its end.
pub async fn subscribe_static(
    deployment: &Deployment,
    message: Bytes,
    mode: Mode,
) -> Result<ReadableStream, Status> {
    let mode = match mode {
        Mode::Binary => BodyMode::Binary,
        Mode::Text => BodyMode::Text,
    };
    let response = deployment.store.new_session().await?.subscribe_static(&message, mode).await?;
    response.body().ok_or_else(|| Status::platform("the session gave no answer: open the stream again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subprotocol_may_be_one_of_several() {
        for (protocols, offered) in [
            ("grpc-websockets", true),
            ("json, grpc-websockets", true),
            ("", false),
            ("grpc-websockets2", false),
            ("Grpc-Websockets", false),
        ] {
            assert_eq!(offers(protocols), offered, "{protocols:?}");
        }
    }
}
