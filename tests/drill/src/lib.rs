//! A worker that breaks on demand, with object classes of the same names as the real one. The path of a request says where
//! and how: `/worker/HOW`, `/sequencer/HOW` or `/partition/HOW`; `/session/` gives an answer that goes on.

use std::{cell::RefCell, time::Duration};

use wasm_bindgen::prelude::wasm_bindgen;
use worker::{
    Context, Delay, DurableObject, Env, Request, Response, ResponseBody, Result, SqlStorage, State,
    durable_object, event, wasm_bindgen_futures::spawn_local, web_sys::TransformStream,
};

/// How long a slow call takes: longer than any test waits for it.
const SLOW: Duration = Duration::from_secs(30);

/// When the timer fires that an object sets.
const TIMER: Duration = Duration::from_secs(1);

/// Runs for each HTTP request.
#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
    let path = request.path();
    let (place, how) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
    let binding = match place {
        "sequencer" => "SEQUENCER",
        "partition" => "LOG_PARTITION",
        "session" => "SESSION",
        "worker" => return break_down(how).await,
        _ => return Response::ok("grpc-status: 0"), // the health check at the start
    };
    let object = env.durable_object(binding)?.get_by_name("drill")?;
    object.fetch_with_str(&format!("http://object/{how}")).await
}

async fn break_down(how: &str) -> Result<Response> {
    match how {
        "panic" => panic!("as ordered"),
        "panic-later" => {
            Delay::from(Duration::from_millis(20)).await;
            panic!("as ordered")
        }
        "slow" => Delay::from(SLOW).await,
        "outlast-the-timer" => Delay::from(2 * TIMER).await,
        _ => {}
    }
    Response::ok("sound")
}

/// Counts calls in its storage.
#[derive(Debug)]
#[durable_object(fetch)]
pub struct Sequencer(SqlStorage);

impl DurableObject for Sequencer {
    fn new(state: State, _env: Env) -> Self {
        Self(state.storage().sql())
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        count(&self.0, request.path().trim_start_matches('/')).await
    }
}

/// Counts calls in its storage.
#[derive(Debug)]
#[durable_object(fetch)]
pub struct LogPartition(SqlStorage);

impl DurableObject for LogPartition {
    fn new(state: State, _env: Env) -> Self {
        Self(state.storage().sql())
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        count(&self.0, request.path().trim_start_matches('/')).await
    }
}

/// The drill has no use for it; the deployment names it.
#[derive(Debug)]
#[durable_object(fetch)]
pub struct Directory;

impl DurableObject for Directory {
    fn new(_state: State, _env: Env) -> Self {
        Self
    }

    async fn fetch(&self, _request: Request) -> Result<Response> {
        Response::error("nothing is here", 404)
    }
}

/// Gives answers that go on.
#[derive(Debug)]
#[durable_object(fetch)]
pub struct Session(RefCell<Option<TransformStream>>);

impl DurableObject for Session {
    fn new(_state: State, _env: Env) -> Self {
        Self(RefCell::default())
    }

    /// A body that stays open: its other end is held, and nothing is written.
    async fn fetch(&self, _request: Request) -> Result<Response> {
        let pipe = TransformStream::new()?;
        let body = pipe.readable();
        self.0.replace(Some(pipe));
        Response::from_body(ResponseBody::Stream(body))
    }
}

#[wasm_bindgen]
impl Session {
    /// When the body has ended: never, as far as a test can wait.
    pub async fn finished(&self) {
        Delay::from(SLOW).await;
    }
}

/// Writes a row, breaks down where ordered, and answers with the number of rows.
async fn count(sql: &SqlStorage, how: &str) -> Result<Response> {
    sql.exec("CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY)", None)?;
    if how == "slow" {
        Delay::from(SLOW).await;
    }
    if how == "panic-later" {
        Delay::from(Duration::from_millis(20)).await;
    }
    sql.exec("INSERT INTO calls DEFAULT VALUES", None)?;
    match how {
        "panic" | "panic-later" => panic!("as ordered"),
        "timer" => spawn_local(Delay::from(TIMER)),
        // `one` is bound without a catch: the exception goes through the frames above.
        "throw" => sql.exec("SELECT id FROM calls WHERE id < 0", None)?.one::<Vec<u32>>().map(drop)?,
        _ => {}
    }
    let rows = sql.exec("SELECT count(*) FROM calls", None)?.raw().next();
    match rows {
        Some(Ok(row)) => Response::ok(format!("{row:?}")),
        other => Response::error(format!("{other:?}"), 500),
    }
}
