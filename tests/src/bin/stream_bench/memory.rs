//! The memory of a stream.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use sealog_proto::{Kind, Topic};
use sealog_tests::client::Client;
use sealog_tests::fixtures::{fresh_topic, group_message};
use sealog_tests::raw::Raw;
use sealog_tests::status;
use sealog_tests::workerd::Workerd;
use tokio::time::sleep;

use crate::backend;
use crate::watchers::Watchers;

const STREAMS: usize = 500;
/// Topics of each, that nobody else watches.
const TOPICS: usize = 20;
/// Long enough for the objects to go to sleep.
const SLEEP: Duration = Duration::from_secs(20);
/// Bytes of an envelope's payload.
const SIZE: usize = 256;

/// Memory at one moment, in bytes.
#[derive(Clone, Copy)]
struct Memory {
    process: u64,
    instance: u64,
}

impl Memory {
    async fn now(workerd: &Workerd) -> Result<Self> {
        let instance = status::read(&Raw::new(workerd.url())).await?.memory_bytes;
        Ok(Self { process: workerd.resident_bytes()?, instance })
    }

    fn tell(self, what: &str, before: Self) {
        let kib = |now: u64, before: u64| (now as f64 - before as f64) / 1024.0 / STREAMS as f64;
        println!(
            "| {what} | {:.1} | {:.1} | {:.0} |",
            kib(self.process, before.process),
            kib(self.instance, before.instance),
            self.process as f64 / f64::from(1 << 20)
        );
    }
}

pub(crate) async fn measure(state: &Path) -> Result<()> {
    println!(
        "\n{STREAMS} streams of {TOPICS} topics: memory, KiB for each stream above the same backend without them"
    );
    println!("| streams | process | of it, the worker's instance (never given back) | process in all, MiB |");
    println!("| --- | --- | --- | --- |");
    let (workerd, _state) =
        backend(state, &[status::OPEN, ("KEEPALIVE_INTERVAL_MS", "600000"), ("MAX_PONG_WAIT_MS", "700000")])
            .await?;
    let client = Client::new(workerd.url())?;
    let topics: Vec<Vec<Topic>> =
        (0..STREAMS).map(|_| (0..TOPICS).map(|_| fresh_topic(Kind::GroupMessage)).collect()).collect();
    // One stream of each kind of thing first, so that what every backend has is not counted.
    drop(Watchers::open(workerd.url(), vec![vec![fresh_topic(Kind::GroupMessage)]]).await?);
    publish(&client, &topics[..10]).await?;
    let before = Memory::now(&workerd).await?;

    let mut streams = Watchers::open(workerd.url(), topics.clone()).await?;
    streams.receive(10 * TOPICS).await?;
    Memory::now(&workerd).await?.tell("just opened", before);
    sleep(SLEEP).await;
    Memory::now(&workerd).await?.tell("asleep", before);
    for _ in 0..5 {
        publish(&client, &topics).await?;
        streams.receive(STREAMS * TOPICS).await?;
    }
    Memory::now(&workerd).await?.tell("busy: 100 envelopes each, within the last seconds", before);
    sleep(SLEEP).await;
    Memory::now(&workerd).await?.tell("asleep again", before);
    Ok(())
}

/// An envelope on every topic.
async fn publish(client: &Client, topics: &[Vec<Topic>]) -> Result<()> {
    for streams in topics.chunks(25) {
        let envelopes =
            streams.iter().flatten().map(|topic| group_message(topic.identifier(), SIZE)).collect();
        client.publish(envelopes).await?;
    }
    Ok(())
}
