//! What a stream does on which nothing happens.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use sealog_proto::Kind;
use sealog_tests::fixtures::fresh_topic;
use sealog_tests::raw::Raw;
use sealog_tests::status;
use tokio::time::sleep;

use crate::backend;
use crate::watchers::Watchers;

const STREAMS: usize = 20;
/// Four intervals, and what is over.
const TIME: Duration = Duration::from_secs(125);

pub(crate) async fn measure(state: &Path) -> Result<()> {
    let (workerd, _state) = backend(state, &[status::OPEN]).await?;
    let raw = Raw::new(workerd.url());
    let topics = (0..STREAMS).map(|_| vec![fresh_topic(Kind::GroupMessage)]).collect();
    let _streams = Watchers::open(workerd.url(), topics).await?;
    let before = status::read(&raw).await?;
    sleep(TIME).await;
    let after = status::read(&raw).await?;
    let of = |name: &str| after.streams[name] - before.streams[name];
    let calls = |name: &str| {
        let [after, before] =
            [&after, &before].map(|page| page.isolate_calls.get(name).copied().unwrap_or(0));
        after - before
    };
    let each = |count: u64| count as f64 / STREAMS as f64 / (TIME.as_secs_f64() / 30.0);
    println!(
        "\n{STREAMS} streams on which nothing happens, for each stream and 30 s, the keepalive interval:"
    );
    println!("| objects that woke from sleep | frames sent: Pings, at an alarm | calls between objects |");
    println!("| --- | --- | --- |");
    println!(
        "| {:.2} | {:.2} | {:.2} |",
        each(of("wakes")),
        each(of("frames")),
        each(calls("push") + calls("control") + calls("pull"))
    );
    println!("{} of {} wakings ended a stream", of("busy_restarts"), of("wakes"));
    Ok(())
}
