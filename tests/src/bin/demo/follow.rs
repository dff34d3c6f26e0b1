//! How a person hears of what is new on their topics: over a stream of either kind.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use sealog_proto::Topic;
use sealog_proto::backend::{ServerEnvelope, SubscribeStaticResponse, subscribe_static_response::Response};
use sealog_tests::client::{Client, id_of, topic_of};
use sealog_tests::stream::Stream;
use tokio::time::timeout;
use tonic::Streaming;

use crate::plain;

/// How long an envelope may take that is stored.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `Subscribe`, over a WebSocket: topics come and go.
    Bidirectional,
    /// `SubscribeStatic`, over gRPC-Web: the topics are those of the request.
    Static,
}

enum Feed {
    Bidirectional(Box<Stream>),
    Static(Box<Streaming<SubscribeStaticResponse>>),
}

/// A person's stream, and how far they have read each topic.
pub(crate) struct Follower {
    client: Client,
    feed: Feed,
    positions: Vec<(Topic, u64)>,
    /// Received, and not read yet.
    waiting: VecDeque<ServerEnvelope>,
}

impl Follower {
    /// Follows a topic from the position on, exclusive. Returns when the backend has said that it delivers from there.
    pub(crate) async fn open(url: &str, kind: Kind, topic: Topic, position: u64) -> anyhow::Result<Self> {
        let client = Client::new(url)?;
        let positions = vec![(topic, position)];
        let feed = match kind {
            Kind::Static => Feed::Static(open_static(&client, &positions).await?),
            Kind::Bidirectional => {
                let (mut stream, _) = Stream::open(url).await.context("Subscribe failed")?;
                stream.apply(&positions, &[]).await.context("the first Update failed")?;
                Feed::Bidirectional(Box::new(stream))
            }
        };
        Ok(Self { client, feed, positions, waiting: VecDeque::new() })
    }

    /// Follows another topic, too.
    pub(crate) async fn add(&mut self, topic: Topic, position: u64) -> anyhow::Result<()> {
        self.positions.push((topic, position));
        match &mut self.feed {
            Feed::Bidirectional(stream) => {
                let added = self.positions.last().into_iter().cloned().collect::<Vec<_>>();
                stream.apply(&added, &[]).await.context("an Update failed")?;
            }
            // Another stream, of all topics; what has been received is not asked for again.
            Feed::Static(stream) => *stream = open_static(&self.client, &self.positions).await?,
        }
        Ok(())
    }

    /// The next envelope, as soon as it is stored.
    pub(crate) async fn next(&mut self) -> anyhow::Result<ServerEnvelope> {
        loop {
            if let Some(envelope) = self.waiting.pop_front() {
                return Ok(envelope);
            }
            let envelopes = match &mut self.feed {
                Feed::Bidirectional(stream) => stream.messages().await.context("the stream broke")?,
                Feed::Static(stream) => match next_static(stream).await? {
                    Response::Messages(messages) => messages.envelopes,
                    Response::Keepalive(_) => continue,
                    Response::Started(_) => bail!("the stream started twice"),
                },
            };
            for envelope in envelopes {
                self.take(envelope)?;
            }
        }
    }

    fn take(&mut self, envelope: ServerEnvelope) -> anyhow::Result<()> {
        let topic = topic_of(envelope.meta.as_ref().context("an envelope without metadata")?);
        let known = self.positions.iter_mut().find(|(followed, _)| *followed == topic);
        let (_, position) = known.context("an envelope of a topic that nobody follows")?;
        let id = id_of(&envelope);
        ensure!(id > *position, "envelope {id} came after envelope {position}");
        *position = id;
        self.waiting.push_back(envelope);
        Ok(())
    }
}

async fn open_static(
    client: &Client,
    positions: &[(Topic, u64)],
) -> anyhow::Result<Box<Streaming<SubscribeStaticResponse>>> {
    let opened = client.subscribe_static(positions).await;
    let mut stream = opened.map_err(plain).context("SubscribeStatic failed")?;
    match next_static(&mut stream).await? {
        Response::Started(started) => {
            ensure!(started.targets.len() == positions.len(), "a target for each topic");
            Ok(Box::new(stream))
        }
        other => bail!("{other:?} instead of Started"),
    }
}

async fn next_static(stream: &mut Streaming<SubscribeStaticResponse>) -> anyhow::Result<Response> {
    let message = timeout(PATIENCE, stream.message()).await.context("the stream brought nothing in time")?;
    let message = message.map_err(plain).context("the stream failed")?.context("the stream ended")?;
    message.response.context("a response without a member")
}
