//! One Subscribe stream of a reader: what it sends at random, and what must come.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{bail, ensure};
use sealog_proto::Topic;
use sealog_proto::backend::subscribe_response::{Applied, Response};
use sealog_tests::stream::{Event, HALF_CLOSE, Stream, targets};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tonic::Code;

use crate::reader::{Ended, Reader, SILENCE};

/// How many topics one random Update is about at most.
const CHANGED: usize = 3;
/// How far a registration is rewound at most, in envelopes.
const REWOUND: usize = 20;
/// How long a client stops reading at most, in milliseconds.
const STOPPED: u64 = 3_000;

/// An Update that has no Applied yet.
#[derive(Debug)]
struct Update {
    id: u64,
    adds: Vec<(Topic, u64)>,
    removes: Vec<Topic>,
}

/// A stream, and its Updates under way.
struct Conversation<'r> {
    reader: &'r mut Reader,
    stream: Stream,
    line: VecDeque<Update>,
}

impl Reader {
    /// Opens a stream of all topics at their cursors, and reads it until something ends it.
    pub(crate) async fn follow(&mut self) -> anyhow::Result<Ended> {
        let url = self.world.url.clone();
        let (stream, _) = timeout(SILENCE, Stream::open(&url)).await??;
        self.tally.streams += 1;
        let mut all = Conversation { reader: self, stream, line: VecDeque::new() };
        let adds = all.reader.positions();
        for part in adds.chunks(adds.len().div_ceil(all.reader.rng.usize(1..=3))) {
            all.update(part.to_vec(), Vec::new()).await?;
        }
        all.read().await
    }
}

impl Conversation<'_> {
    async fn read(&mut self) -> anyhow::Result<Ended> {
        let cut_at = self.reader.cut_at();
        let mut act_at = self.reader.act_at();
        let mut heard = Instant::now();
        loop {
            let pause = act_at.min(cut_at);
            tokio::select! {
                event = self.stream.event() => {
                    heard = Instant::now();
                    if let Some(end) = self.take(event?).await? {
                        return Ok(end);
                    }
                }
                () = sleep_until(pause) => {}
                () = self.reader.news() => {}
            }
            ensure!(heard.elapsed() < SILENCE, "nothing came for {:?}", heard.elapsed());
            if self.reader.world.is_wild() {
                if Instant::now() >= cut_at {
                    return self.cut().await;
                }
                if Instant::now() >= act_at {
                    act_at = self.reader.act_at();
                    self.act().await?;
                }
            } else {
                act_at = self.reader.act_at().max(act_at);
                self.add_all().await?;
            }
            if self.line.is_empty() && self.reader.is_done() {
                return self.stay_silent().await;
            }
        }
    }

    /// What came; the end of the stream.
    async fn take(&mut self, event: Event) -> anyhow::Result<Option<Ended>> {
        match event {
            Event::Response(Response::Messages(messages)) => self.reader.receive(&messages.envelopes),
            Event::Response(Response::Applied(applied)) => self.applied(&applied)?,
            Event::Response(Response::Ping(ping)) => self.stream.pong(ping.nonce).await?,
            Event::Response(other) => bail!("{other:?} was not to be expected"),
            Event::End(end) => {
                return Ok(Some(Ended::Status { code: Code::from(end.code), message: end.message }));
            }
        }
        Ok(None)
    }

    async fn update(&mut self, adds: Vec<(Topic, u64)>, removes: Vec<Topic>) -> anyhow::Result<()> {
        let id = self.stream.update(&adds, &removes).await?;
        self.line.push_back(Update { id, adds, removes });
        Ok(())
    }

    /// Updates are applied in their order, each add with a target (API-252).
    fn applied(&mut self, applied: &Applied) -> anyhow::Result<()> {
        let Some(Update { id, adds, removes }) = self.line.pop_front() else { bail!("an Applied too many") };
        ensure!(applied.id == id, "Applied {} instead of {id}", applied.id);
        let targets = targets(&applied.added_targets);
        ensure!(targets.len() == adds.len(), "{} targets for {} adds", targets.len(), adds.len());
        for topic in &removes {
            self.reader.journal(topic).is_registered = false;
        }
        for ((topic, cursor), (target, named)) in adds.iter().zip(targets.iter().zip(&applied.added_targets))
        {
            let named = named.topic.as_ref().map(|named| named.topic.as_ref());
            ensure!(named == Some(topic.as_bytes()), "the targets are not in the order of the adds");
            self.reader.register(topic, *cursor, *target)?;
        }
        Ok(())
    }

    /// Removes topics and adds them again, without waiting in between, from the cursor or from before it; or leaves
    /// them out for a while; or stops reading.
    async fn act(&mut self) -> anyhow::Result<()> {
        if self.reader.rng.u8(..8) == 0 {
            sleep(Duration::from_millis(self.reader.rng.u64(..STOPPED))).await;
            return Ok(());
        }
        let count = self.reader.rng.usize(1..=CHANGED);
        let mut chosen = self.reader.choose(count);
        chosen.retain(|topic| !self.is_in_line(topic));
        let removes: Vec<_> =
            chosen.iter().filter(|topic| self.reader.journal(topic).is_registered).cloned().collect();
        let all_again = self.reader.rng.bool();
        if !removes.is_empty() {
            self.update(Vec::new(), removes.clone()).await?;
        }
        let mut adds = Vec::new();
        for topic in chosen.into_iter().filter(|topic| all_again || !removes.contains(topic)) {
            let rewound = self.reader.rng.usize(..REWOUND);
            adds.push((topic.clone(), self.reader.journal(&topic).cursor_before(rewound)));
        }
        if !adds.is_empty() {
            self.update(adds, Vec::new()).await?;
        }
        Ok(())
    }

    fn is_in_line(&self, topic: &Topic) -> bool {
        self.line.iter().any(|update| {
            update.removes.contains(topic) || update.adds.iter().any(|(added, _)| added == topic)
        })
    }

    /// Adds what was left out.
    async fn add_all(&mut self) -> anyhow::Result<()> {
        let mut adds = self.reader.unregistered();
        adds.retain(|(topic, _)| !self.is_in_line(topic));
        if adds.is_empty() { Ok(()) } else { self.update(adds, Vec::new()).await }
    }

    /// The client goes: mostly without a word, sometimes as it should. Then every Update is still answered.
    async fn cut(&mut self) -> anyhow::Result<Ended> {
        if self.reader.rng.u8(..4) > 0 {
            return Ok(Ended::Cut);
        }
        self.stream.send_message(HALF_CLOSE).await?;
        loop {
            let event = self.stream.event().await?;
            match self.take(event).await? {
                Some(Ended::Status { code: Code::Ok, .. }) => {
                    ensure!(
                        self.line.is_empty(),
                        "Updates were not answered before the end: {:?}",
                        self.line
                    );
                    return Ok(Ended::Cut);
                }
                Some(end) => return Ok(end),
                None => {}
            }
        }
    }

    /// Nothing comes any more, and above all nothing twice.
    async fn stay_silent(&mut self) -> anyhow::Result<Ended> {
        while let Ok(event) = timeout(Duration::from_millis(300), self.stream.event()).await {
            if let Some(end) = self.take(event?).await? {
                return Ok(end);
            }
        }
        Ok(Ended::Done)
    }
}
