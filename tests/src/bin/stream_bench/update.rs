//! One Update that adds as many topics as a stream may have.

use std::path::Path;

use anyhow::{Context as _, Result};
use rusqlite::{Connection, OpenFlags};
use sealog_proto::Kind;
use sealog_tests::fixtures::fresh_topic;
use sealog_tests::raw::Raw;
use sealog_tests::status;
use sealog_tests::stream::Stream;
use sealog_tests::workerd::Workerd;
use tokio::time::Instant;

use crate::backend;

const ADDS: usize = 100_000;
const MIB: f64 = (1 << 20) as f64;

pub(crate) async fn measure(state: &Path) -> Result<()> {
    println!("\n{ADDS} adds in one Update, the longest that is allowed; then one that removes them");
    println!(
        "| LOG_PARTITIONS | Applied after | calls to objects | rows: session, partitions | instance, MiB more | process, MiB more | removes applied after |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for partitions in ["1", "8"] {
        measure_one(state, partitions).await?;
    }
    Ok(())
}

async fn measure_one(state: &Path, partitions: &str) -> Result<()> {
    let (mut workerd, _state) = backend(state, &[status::OPEN, ("LOG_PARTITIONS", partitions)]).await?;
    let raw = Raw::new(workerd.url());
    let adds: Vec<_> = (0..ADDS).map(|_| (fresh_topic(Kind::GroupMessage), 0)).collect();
    let (mut stream, _) = Stream::open(workerd.url()).await?;
    stream.apply(&[(fresh_topic(Kind::Welcome), 0)], &[]).await?;
    stream.apply(&[], &[adds[0].0.clone()]).await?;
    let rows = rows(&workerd)?;
    let before = status::read(&raw).await?;
    let process = workerd.resident_bytes()?;

    let start = Instant::now();
    // One topic is registered: the bound counts it.
    stream.apply(&adds[1..], &[]).await?;
    let took = start.elapsed();
    let after = status::read(&raw).await?;
    let grown = workerd.resident_bytes()? - process;
    let calls: Vec<_> = after
        .isolate_calls
        .iter()
        .map(|(name, count)| (name, count - before.isolate_calls.get(name).unwrap_or(&0)))
        .filter(|(name, count)| *count > 0 && *name != "boundary")
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let written = self::rows(&workerd)?;
    let removes: Vec<_> = adds[1..].iter().map(|(topic, _)| topic.clone()).collect();
    let start = Instant::now();
    stream.apply(&[], &removes).await?;
    println!(
        "| {partitions} | {:.2} s | {} | {}, {} | {:.1} | {:.1} | {:.2} s |",
        took.as_secs_f64(),
        calls.join(", "),
        written.0 - rows.0,
        written.1 - rows.1,
        (after.memory_bytes - before.memory_bytes) as f64 / MIB,
        grown as f64 / MIB,
        start.elapsed().as_secs_f64()
    );
    workerd.kill9();
    Ok(())
}

/// Rows of registrations at sessions, and of watches at partitions.
fn rows(workerd: &Workerd) -> Result<(u64, u64)> {
    let count = |class: &str, table: &str| -> Result<u64> {
        let mut rows = 0;
        for file in workerd.databases(class)? {
            let database = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let query = format!("SELECT count(*) FROM {table}");
            rows += database.query_row(&query, [], |row| row.get::<_, u64>(0)).context("count rows")?;
        }
        Ok(rows)
    };
    Ok((count("Session", "blocks")?, count("LogPartition", "watches")?))
}
