//! What the backend takes for a chain's node: it counts calls, and passes them on, or does whatever a test
//! makes it do.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::codegen::http::{Method, Request, Response};

use super::Evm;
use crate::raw::Raw;

/// A call, as the node got it.
#[derive(Debug)]
pub struct Call<'a> {
    /// For example `eth_call`.
    pub method: &'a str,
    /// What the answer has to repeat.
    pub id: &'a Value,
    /// The arguments.
    pub params: &'a Value,
}

/// What the node does with a call.
#[derive(Clone, Debug)]
pub enum Reply {
    /// It does its work.
    Honest,
    /// It does its work, but first takes its time.
    After(Duration),
    /// It answers with this HTTP status, these headers and this body.
    Http(u16, Vec<(&'static str, String)>, Bytes),
    /// It cuts the connection.
    HangUp,
}

impl Reply {
    /// A JSON answer.
    pub fn json(value: &Value) -> Self {
        Self::Http(200, vec![("content-type", "application/json".to_owned())], value.to_string().into())
    }
}

type Rule = Arc<dyn Fn(&Call<'_>) -> Reply + Send + Sync>;

/// A node between the backend and an EVM.
pub struct Node {
    url: String,
    shared: Arc<Shared>,
    server: JoinHandle<Infallible>,
}

struct Shared {
    rule: Mutex<Rule>,
    seen: Mutex<Seen>,
    evm: Raw,
}

/// What was seen so far.
#[derive(Default)]
struct Seen {
    calls: BTreeMap<String, usize>,
    now: usize,
    most: usize,
    abandoned: usize,
}

impl Node {
    /// An honest node of a chain.
    ///
    /// # Panics
    /// When there is no port for it.
    pub async fn start(evm: &Evm) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let shared = Arc::new(Shared {
            rule: Mutex::new(Arc::new(|_| Reply::Honest)),
            seen: Mutex::default(),
            evm: Raw::new(evm.url()),
        });
        let server = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Self { url, shared, server }
    }

    /// Where it answers.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on, this decides over each call.
    pub fn rule(&self, rule: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static) {
        *self.shared.rule.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(rule);
    }

    /// From now on, every call gets this.
    pub fn always(&self, reply: Reply) {
        self.rule(move |_| reply.clone());
    }

    /// How often each method was called since the last time this was asked.
    pub fn calls(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.shared.seen().calls)
    }

    /// The most calls that were under way at one time.
    pub fn most_at_once(&self) -> usize {
        self.shared.seen().most
    }

    /// How many calls the backend gave up before they were answered.
    pub fn abandoned(&self) -> usize {
        self.shared.seen().abandoned
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Incoming>) -> anyhow::Result<Response<Full<Bytes>>> {
        let body = request.into_body().collect().await?.to_bytes();
        let call: Value = serde_json::from_slice(&body)?;
        let method = call["method"].as_str().unwrap_or_default();
        let rule = Arc::clone(&self.rule.lock().unwrap_or_else(PoisonError::into_inner));
        let reply = rule(&Call { method, id: &call["id"], params: &call["params"] });
        let mut under_way = UnderWay::begin(self, method);
        let response = self.carry_out(reply, body).await;
        under_way.is_over = true;
        response
    }

    async fn carry_out(&self, reply: Reply, body: Bytes) -> anyhow::Result<Response<Full<Bytes>>> {
        match reply {
            Reply::Honest => {}
            Reply::After(time) => tokio::time::sleep(time).await,
            Reply::Http(status, headers, body) => {
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                return Ok(response.body(Full::new(body))?);
            }
            Reply::HangUp => bail!("it hangs up"),
        }
        let answer = self.evm.send(Method::POST, "/", &[("content-type", "application/json")], body).await?;
        Ok(Response::builder().status(answer.status).body(Full::new(answer.body))?)
    }
}

/// A call that is under way; when it is dropped before its end, the backend has gone.
struct UnderWay<'a> {
    shared: &'a Shared,
    is_over: bool,
}

impl<'a> UnderWay<'a> {
    fn begin(shared: &'a Shared, method: &str) -> Self {
        let mut seen = shared.seen();
        *seen.calls.entry(method.to_owned()).or_default() += 1;
        seen.now += 1;
        seen.most = seen.most.max(seen.now);
        drop(seen);
        Self { shared, is_over: false }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut seen = self.shared.seen();
        seen.now -= 1;
        seen.abandoned += usize::from(!self.is_over);
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) -> Infallible {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let shared = Arc::clone(&shared);
                async move { shared.answer(request).await }
            });
            // An error is a connection that one of both sides cut.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
