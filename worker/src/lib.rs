//! The worker: what clients talk to. It keeps no state of its own; the Durable Objects do.
//!
//! A request goes through [`call`] (which path, which protocol), [`transport`] (gRPC-Web), a service (one file per
//! method), and, over [`fan_out`] and [`store`], to the objects. [`error`] is the one place that chooses status codes.

use std::{cell::OnceCell, rc::Rc};

use worker::{
    Context, Env, event,
    web_sys::{Request, Response},
};

pub use sealog_objects::{Directory, LogPartition, Sequencer, Session};

mod admit;
pub mod call;
pub mod chain;
pub mod config;
pub mod counters;
mod deadline;
pub mod deployment;
mod directories;
pub mod error;
pub mod fan_out;
pub mod repair;
pub mod request_id;
pub mod route;
pub mod services;
pub mod status_page;
pub mod store;
pub mod transport;

use transport::response::Responder;

/// Runs when an isolate starts.
#[event(start)]
fn start() {
    console_error_panic_hook::set_once();
    sealog_objects::provide_stream_settings(deployment::stream_settings);
}

/// Runs for each HTTP request.
#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> worker::Result<Response> {
    let responder = responder()?;
    Ok(call::respond(&responder, &request, &env).await?)
}

/// What makes the responses of this isolate.
fn responder() -> worker::Result<Rc<Responder>> {
    thread_local! {
        static RESPONDER: OnceCell<Rc<Responder>> = const { OnceCell::new() };
    }
    RESPONDER.with(|cell| {
        if let Some(responder) = cell.get() {
            return Ok(responder.clone());
        }
        let responder = Rc::new(Responder::new()?);
        Ok(cell.get_or_init(|| responder).clone())
    })
}
