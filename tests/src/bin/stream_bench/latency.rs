//! From publish to delivery, on a topic with few and with many watchers.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use sealog_proto::{Kind, Topic};
use sealog_tests::client::Client;
use sealog_tests::fixtures::{fresh_topic, group_message};
use sealog_tests::status;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::backend;
use crate::samples::Samples;
use crate::watchers::Watchers;

/// Watchers of the topic, and publishes that are timed one by one.
const SHAPES: [(usize, usize); 3] = [(1, 300), (100, 100), (1_000, 30)];
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(20);
/// Publishers, and how long they go on, when the topic is busy.
const PUBLISHERS: usize = 16;
const BUSY: Duration = Duration::from_secs(5);
/// Bytes of an envelope's payload.
const SIZE: usize = 256;

pub(crate) async fn measure(state: &Path) -> Result<()> {
    println!(
        "\nOne topic: from the call of Publish to the frame at each watcher, in ms; then {PUBLISHERS} publishers at once"
    );
    println!(
        "| watchers | answer p50 | delivery p50 | p99 | the last watcher, p50 | busy: envelopes/s published | delivered | envelopes per frame | frames per watcher and batch | delivery p50 | p99 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (watchers, timed) in SHAPES {
        measure_one(state, watchers, timed).await?;
    }
    Ok(())
}

async fn measure_one(state: &Path, watchers: usize, timed: usize) -> Result<()> {
    let (workerd, _state) = backend(state, &[status::OPEN]).await?;
    let client = Client::new(workerd.url())?;
    let topic = fresh_topic(Kind::GroupMessage);
    publish(&client, &topic).await?; // the objects are there
    let mut streams = Watchers::open(workerd.url(), vec![vec![topic.clone()]; watchers]).await?;
    streams.receive(watchers).await?;

    let (mut answers, mut deliveries, mut lasts) = <(Samples, Samples, Samples)>::default();
    for _ in 0..timed {
        let start = Instant::now();
        publish(&client, &topic).await?;
        answers.add(start.elapsed());
        let frames = streams.receive(watchers).await?;
        for frame in &frames {
            deliveries.add(frame.at - start);
        }
        lasts.add(frames.iter().map(|frame| frame.at - start).max().unwrap_or_default());
        sleep(PAUSE).await;
    }
    print!(
        "| {watchers} | {:.1} | {:.1} | {:.1} | {:.1} ",
        answers.percentile(50),
        deliveries.percentile(50),
        deliveries.percentile(99),
        lasts.percentile(50)
    );

    let start = Instant::now();
    let mut publishers = JoinSet::new();
    for _ in 0..PUBLISHERS {
        publishers.spawn(publish_until(client.clone(), topic.clone(), start + BUSY));
    }
    let starts: HashMap<u64, Instant> =
        publishers.join_all().await.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let answered_in = start.elapsed();
    let frames = streams.receive(starts.len() * watchers).await?;
    let took = start.elapsed();
    let envelopes = frames.iter().flat_map(|frame| &frame.envelopes);
    // All rows of one step of the partition have one server time.
    let batches: HashSet<u64> = envelopes.map(|(_, server_ns)| *server_ns).collect();
    let mut busy = Samples::default();
    for frame in &frames {
        for (id, _) in &frame.envelopes {
            busy.add(frame.at - starts[id]);
        }
    }
    let (count, frames) = (starts.len() as f64, frames.len() as f64);
    println!(
        "| {:.0} | {:.0} | {:.1} | {:.2} | {:.0} | {:.0} |",
        count / answered_in.as_secs_f64(),
        count * watchers as f64 / took.as_secs_f64(),
        count * watchers as f64 / frames,
        frames / (watchers * batches.len()) as f64,
        busy.percentile(50),
        busy.percentile(99)
    );
    Ok(())
}

async fn publish(client: &Client, topic: &Topic) -> Result<u64> {
    let meta = client.publish_one(group_message(topic.identifier(), SIZE)).await?;
    Ok(sealog_tests::client::sequence_id(&meta))
}

/// Publishes one after another; gives the id of each, and when its call began.
async fn publish_until(client: Client, topic: Topic, end: Instant) -> Result<Vec<(u64, Instant)>> {
    let mut published = Vec::new();
    while Instant::now() < end {
        let start = Instant::now();
        published.push((publish(&client, &topic).await?, start));
    }
    Ok(published)
}
