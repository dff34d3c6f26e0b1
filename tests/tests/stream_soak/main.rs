//! Two hundred streams over five hundred topics, publishers at full speed, streams that are cut and resumed, and a workerd
//! that is killed with SIGKILL: what every client received is what is stored above its cursor, in order, and nothing came
//! twice within a registration.

#![allow(clippy::disallowed_methods)] // tests live in real time

mod counts;
mod journal;
mod publisher;
mod reader;
mod run;
mod static_stream;
mod stored;
mod stream;

use std::time::Duration;

use run::Run;

/// Proves API-289 besides: everything that was answered is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_252_253_254_260_289_cut_and_killed_streams_deliver_everything_once() {
    let mut run = Run::start().await;
    run.cycle().await;
    // Pushes have a deadline: a machine that is busy with other work makes many of them hints. Here the unusual may
    // not be the rule; what part it may be is for the soak to say.
    run.end(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: half an hour"]
async fn api_252_253_254_260_289_half_an_hour_of_cut_and_killed_streams() {
    let mut run = Run::start().await;
    while run.age() < Duration::from_mins(30) {
        run.cycle().await;
    }
    run.end(100).await;
}
