//! A `Subscribe` stream over its WebSocket, message by message: as a client sends and reads it, and as no client should.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use prost::Message as _;
use sealog_proto::Topic;
use sealog_proto::backend::subscribe_request::{Request, Update};
use sealog_proto::backend::subscribe_response::{Applied, Response};
use sealog_proto::backend::{CatchupTarget, Ping, Pong, ServerEnvelope, SubscribeRequest, SubscribeResponse};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::client::{id_of, topic_query};
use crate::raw::{MESSAGE, TRAILERS, frame, frames, trailer_lines};

/// The method path of a stream.
pub const SUBSCRIBE: &str = "/xmtp.backend.v1.SubscriptionService/Subscribe";
/// The subprotocol.
pub const SUBPROTOCOL: &str = "grpc-websockets";
/// The header block that browsers' clients send.
pub const HEADERS: &[u8] = b"content-type: application/grpc-web+proto\r\nx-grpc-web: 1\r\n";
/// The message that says that the client sends no more.
pub const HALF_CLOSE: &[u8] = &[1];

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// `grpc-status` of the trailers.
    pub code: i32,
    /// `grpc-message`, decoded.
    pub message: String,
    /// The code of the WebSocket's close.
    pub close: u16,
}

/// What the server sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A frame of the response.
    Response(Response),
    /// The trailers, and then the close.
    End(End),
}

/// One stream.
#[derive(Debug)]
pub struct Stream {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Ids of Updates so far.
    last_update: u64,
    /// Messages frames that a search for another frame has passed over, oldest first.
    passed: VecDeque<Vec<ServerEnvelope>>,
}

impl Stream {
    /// Connects, and reads the headers of the answer. Sends nothing.
    pub async fn connect(url: &str) -> anyhow::Result<Self> {
        Self::connect_with(url, &[("sec-websocket-protocol", SUBPROTOCOL)]).await
    }

    /// The same, with headers of the handshake as they are given.
    pub async fn connect_with(url: &str, headers: &[(&'static str, &'static str)]) -> anyhow::Result<Self> {
        let mut request = format!("{}{SUBSCRIBE}", url.replacen("http", "ws", 1)).into_client_request()?;
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        // A frame of the server's may be as long as the ceiling.
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let (socket, response) =
            tokio_tungstenite::connect_async_with_config(request, Some(config), true).await?;
        let chosen = response.headers().get("sec-websocket-protocol").context("no subprotocol was chosen")?;
        ensure!(chosen == SUBPROTOCOL, "the server chose {chosen:?}");
        let mut stream = Self { socket, last_update: 0, passed: VecDeque::new() };
        let (flags, lines) = stream.frame().await?;
        ensure!(flags == TRAILERS, "the answer begins with a frame of flags {flags:#04x}, not with headers");
        let headers = trailer_lines(&lines)?;
        ensure!(headers.contains_key("content-type"), "the headers are {headers:?}");
        ensure!(headers.contains_key("x-request-id"), "the headers are {headers:?}");
        Ok(stream)
    }

    /// Connects, sends the header block, and reads Started: its interval, in milliseconds.
    pub async fn open(url: &str) -> anyhow::Result<(Self, u32)> {
        let mut stream = Self::connect(url).await?;
        stream.send_message(HEADERS).await?;
        match stream.event().await? {
            Event::Response(Response::Started(started)) => Ok((stream, started.keepalive_interval_ms)),
            other => bail!("the stream begins with {other:?}"),
        }
    }

    /// Sends one binary WebSocket message as it is.
    pub async fn send_message(&mut self, message: impl Into<Bytes>) -> anyhow::Result<()> {
        Ok(self.socket.send(Message::Binary(message.into())).await?)
    }

    /// Sends one text message.
    pub async fn send_text(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.socket.send(Message::Text(text.into())).await?)
    }

    /// Sends one request, in a message of its own.
    pub async fn send(&mut self, request: Request) -> anyhow::Result<()> {
        self.send_message(data(&framed(request))).await
    }

    /// Sends an Update with the next id, and gives that.
    pub async fn update(&mut self, adds: &[(Topic, u64)], removes: &[Topic]) -> anyhow::Result<u64> {
        let id = self.last_update + 1;
        self.send(update(id, adds, removes)).await?;
        self.last_update = id;
        Ok(id)
    }

    /// Sends an Update, and waits for its Applied: the targets, in the order of the adds.
    pub async fn apply(&mut self, adds: &[(Topic, u64)], removes: &[Topic]) -> anyhow::Result<Vec<u64>> {
        let id = self.update(adds, removes).await?;
        let applied = self.applied().await?;
        ensure!(applied.id == id, "Applied {} instead of {id}", applied.id);
        Ok(targets(&applied.added_targets))
    }

    /// The next Applied. Messages before it are kept for [`Self::messages`]; Pings are answered.
    pub async fn applied(&mut self) -> anyhow::Result<Applied> {
        loop {
            match self.event().await? {
                Event::Response(Response::Applied(applied)) => return Ok(applied),
                Event::Response(Response::Messages(messages)) => self.passed.push_back(messages.envelopes),
                Event::Response(Response::Ping(ping)) => self.pong(ping.nonce).await?,
                other => bail!("{other:?} instead of Applied"),
            }
        }
    }

    /// The envelopes of the next Messages frame. Pings are answered.
    pub async fn messages(&mut self) -> anyhow::Result<Vec<ServerEnvelope>> {
        if let Some(envelopes) = self.passed.pop_front() {
            return Ok(envelopes);
        }
        loop {
            match self.event().await? {
                Event::Response(Response::Messages(messages)) => return Ok(messages.envelopes),
                Event::Response(Response::Ping(ping)) => self.pong(ping.nonce).await?,
                other => bail!("{other:?} instead of Messages"),
            }
        }
    }

    /// The ids of so many envelopes, however they were put into frames.
    pub async fn receive(&mut self, count: usize) -> anyhow::Result<Vec<u64>> {
        let mut ids = Vec::new();
        while ids.len() < count {
            ids.extend(self.messages().await?.iter().map(id_of));
        }
        Ok(ids)
    }

    /// Sends a Pong.
    pub async fn pong(&mut self, nonce: u64) -> anyhow::Result<()> {
        self.send(Request::Pong(Pong { nonce })).await
    }

    /// Sends a Ping.
    pub async fn ping(&mut self, nonce: u64) -> anyhow::Result<()> {
        self.send(Request::Ping(Ping { nonce })).await
    }

    /// What comes next.
    pub async fn event(&mut self) -> anyhow::Result<Event> {
        let (flags, payload) = self.frame().await?;
        match flags {
            MESSAGE => {
                let response = SubscribeResponse::decode(payload)?.response;
                Ok(Event::Response(response.context("a response without a member")?))
            }
            TRAILERS => {
                let lines = trailer_lines(&payload)?;
                let code = lines.get("grpc-status").context("no grpc-status")?.parse()?;
                let message = lines.get("grpc-message").cloned().unwrap_or_default();
                Ok(Event::End(End { code, message, close: self.close().await? }))
            }
            other => bail!("a frame of flags {other:#04x}"),
        }
    }

    /// Nothing comes for so long. Pings do not count, and are answered.
    pub async fn is_silent_for(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while self.passed.is_empty() {
            match timeout_at(end, self.event()).await {
                Err(_) => return true,
                Ok(Ok(Event::Response(Response::Ping(ping)))) if self.pong(ping.nonce).await.is_ok() => {}
                Ok(_) => return false,
            }
        }
        false
    }

    /// Reads to the end, past every response.
    pub async fn end(&mut self) -> anyhow::Result<End> {
        loop {
            if let Event::End(end) = self.event().await? {
                return Ok(end);
            }
        }
    }

    /// Closes the socket as a client does that goes, and waits for the answer: its code.
    pub async fn leave(mut self, code: Option<u16>) -> anyhow::Result<Option<u16>> {
        let close = code.map(|code| CloseFrame { code: code.into(), reason: "".into() });
        self.socket.close(close).await?;
        loop {
            match timeout(PATIENCE, self.socket.next()).await.context("the close was not answered in time")? {
                Some(Ok(Message::Close(answer))) => return Ok(answer.map(|answer| answer.code.into())),
                Some(Ok(_)) => {}
                other => bail!("{other:?} instead of the answer to a close"),
            }
        }
    }

    async fn frame(&mut self) -> anyhow::Result<(u8, Bytes)> {
        match timeout(PATIENCE, self.socket.next()).await.context("the stream brought nothing in time")? {
            Some(Ok(Message::Binary(message))) => {
                let [frame] = <[_; 1]>::try_from(frames(message)?)
                    .map_err(|frames| anyhow::anyhow!("{} frames in one message", frames.len()))?;
                Ok(frame)
            }
            other => bail!("{other:?} instead of a binary message"),
        }
    }

    async fn close(&mut self) -> anyhow::Result<u16> {
        match timeout(PATIENCE, self.socket.next()).await.context("the socket was not closed in time")? {
            Some(Ok(Message::Close(Some(CloseFrame { code, .. })))) => {
                // The close is answered by reading on.
                while let Some(Ok(_) | Err(Error::ConnectionClosed)) = self.socket.next().await {}
                Ok(code.into())
            }
            other => bail!("{other:?} instead of the close behind the trailers"),
        }
    }
}

/// The bytes of a request in its frame.
pub fn framed(request: Request) -> Bytes {
    frame(MESSAGE, &SubscribeRequest { request: Some(request) }.encode_to_vec()).into()
}

/// A WebSocket message with a piece of the stream of frames.
pub fn data(piece: &[u8]) -> Bytes {
    [&[0], piece].concat().into()
}

/// An Update.
pub fn update(id: u64, adds: &[(Topic, u64)], removes: &[Topic]) -> Request {
    Request::Update(Update {
        id,
        adds: adds.iter().map(|(topic, after)| topic_query(topic, *after)).collect(),
        removes: removes.iter().map(Into::into).collect(),
    })
}

/// The sequence ids of targets, in their order.
pub fn targets(targets: &[CatchupTarget]) -> Vec<u64> {
    targets.iter().map(|target| target.through_sequence_id).collect()
}
