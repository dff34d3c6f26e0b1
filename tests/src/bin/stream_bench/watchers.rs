//! Streams that note when each envelope comes.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use sealog_proto::Topic;
use sealog_proto::backend::subscribe_response::Response;
use sealog_tests::client::id_of;
use sealog_tests::stream::{Event, Stream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Streams that are opened at once.
const OPENED_AT_ONCE: usize = 16;
/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_mins(2);

/// Shorter than what [`Stream::event`] waits at most.
const SILENCE: Duration = Duration::from_secs(10);

/// A frame with envelopes, as one watcher received it.
pub(crate) struct Frame {
    pub(crate) at: Instant,
    /// Id and server time of each envelope.
    pub(crate) envelopes: Vec<(u64, u64)>,
}

/// Open streams. Dropping it cuts them.
pub(crate) struct Watchers {
    frames: UnboundedReceiver<Result<Frame>>,
    _tasks: JoinSet<()>,
}

impl Watchers {
    /// Opens a stream for each list of topics, from their beginning.
    pub(crate) async fn open(url: &str, topics: Vec<Vec<Topic>>) -> Result<Self> {
        let (sender, frames) = unbounded_channel();
        let mut opening =
            futures::stream::iter(topics).map(|topics| open(url, topics)).buffer_unordered(OPENED_AT_ONCE);
        let mut tasks = JoinSet::new();
        while let Some(stream) = opening.try_next().await? {
            let sender = sender.clone();
            tasks.spawn(async move {
                if let Err(error) = read(stream, &sender).await {
                    let _ = sender.send(Err(error)); // nobody listens any more, or it is told
                }
            });
        }
        Ok(Self { frames, _tasks: tasks })
    }

    /// Frames until so many envelopes have come.
    pub(crate) async fn receive(&mut self, envelopes: usize) -> Result<Vec<Frame>> {
        let (mut frames, mut count) = (Vec::new(), 0);
        while count < envelopes {
            let next = timeout(PATIENCE, self.frames.recv()).await;
            let next = next.with_context(|| format!("{count} of {envelopes} envelopes came, and no more"))?;
            let frame = next.context("every stream has ended")??;
            count += frame.envelopes.len();
            frames.push(frame);
        }
        Ok(frames)
    }
}

async fn open(url: &str, topics: Vec<Topic>) -> Result<Stream> {
    let (mut stream, _) = Stream::open(url).await?;
    let adds: Vec<_> = topics.into_iter().map(|topic| (topic, 0)).collect();
    stream.apply(&adds, &[]).await?;
    Ok(stream)
}

async fn read(mut stream: Stream, frames: &UnboundedSender<Result<Frame>>) -> Result<()> {
    loop {
        // Asked anew before its own patience ends: here a stream may be silent for any time.
        let Ok(event) = timeout(SILENCE, stream.event()).await else { continue };
        match event? {
            Event::Response(Response::Messages(messages)) => {
                let at = Instant::now();
                let envelopes = messages.envelopes.iter();
                let envelopes = envelopes
                    .map(|envelope| {
                        (id_of(envelope), envelope.meta.as_ref().map_or(0, |meta| meta.server_ns))
                    })
                    .collect();
                if frames.send(Ok(Frame { at, envelopes })).is_err() {
                    return Ok(());
                }
            }
            Event::Response(Response::Ping(ping)) => stream.pong(ping.nonce).await?,
            Event::Response(_) => {}
            Event::End(end) => bail!("a stream ended: {end:?}"),
        }
    }
}
