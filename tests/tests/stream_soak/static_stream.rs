//! One `SubscribeStatic` stream of a reader.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use sealog_proto::backend::SubscribeStaticResponse;
use sealog_proto::backend::subscribe_static_response::{Response, Started};
use sealog_tests::stream::targets;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tonic::{Code, Status};

use crate::reader::{Ended, Reader, SILENCE};

/// How long a client stops reading at most, in milliseconds.
const STOPPED: u64 = 3_000;

impl Reader {
    /// Opens a static stream of all topics at their cursors, and reads it until something ends it.
    pub(crate) async fn follow_static(&mut self) -> anyhow::Result<Ended> {
        let positions = self.positions();
        let opened = timeout(SILENCE, self.client.subscribe_static(&positions)).await?;
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(status) => return ended(status),
        };
        self.tally.streams += 1;
        match timeout(SILENCE, stream.message()).await? {
            Ok(Some(SubscribeStaticResponse { response: Some(Response::Started(started)) })) => {
                self.started(&positions, &started)?;
            }
            Ok(other) => bail!("{other:?} instead of Started"),
            Err(status) => return ended(status),
        }
        let cut_at = self.cut_at();
        let mut act_at = self.act_at();
        let mut heard = Instant::now();
        loop {
            let pause = act_at.min(cut_at);
            tokio::select! {
                message = stream.message() => {
                    heard = Instant::now();
                    match message {
                        Ok(Some(message)) => self.take(message)?,
                        Ok(None) => bail!("the server ended a healthy stream (API-259)"),
                        Err(status) => return ended(status),
                    }
                }
                () = sleep_until(pause) => {}
                () = self.news() => {}
            }
            ensure!(heard.elapsed() < SILENCE, "nothing came for {:?}", heard.elapsed());
            if self.world.is_wild() && Instant::now() >= cut_at {
                return Ok(Ended::Cut);
            }
            if Instant::now() >= act_at {
                act_at = self.act_at();
                if self.world.is_wild() && self.rng.u8(..8) == 0 {
                    sleep(Duration::from_millis(self.rng.u64(..STOPPED))).await;
                }
            }
            if self.is_done() {
                // Nothing comes any more, and above all nothing twice.
                while let Ok(message) = timeout(Duration::from_millis(300), stream.message()).await {
                    self.take(message?.context("the server ended a healthy stream (API-259)")?)?;
                }
                return Ok(Ended::Done);
            }
        }
    }

    /// One target for each topic, in their order (API-260).
    fn started(&mut self, positions: &[(sealog_proto::Topic, u64)], started: &Started) -> anyhow::Result<()> {
        let targets = targets(&started.targets);
        ensure!(targets.len() == positions.len(), "{} targets for {} topics", targets.len(), positions.len());
        for ((topic, cursor), target) in positions.iter().zip(targets) {
            self.register(topic, *cursor, target)?;
        }
        Ok(())
    }

    fn take(&mut self, message: SubscribeStaticResponse) -> anyhow::Result<()> {
        match message.response {
            Some(Response::Messages(messages)) => self.receive(&messages.envelopes),
            Some(Response::Keepalive(_)) => {}
            other => bail!("{other:?} was not to be expected"),
        }
        Ok(())
    }
}

/// A status that came from the server, or a connection that broke.
fn ended(status: Status) -> anyhow::Result<Ended> {
    match status.code() {
        Code::Unknown | Code::Internal => Err(status.into()),
        code => Ok(Ended::Status { code, message: status.message().to_owned() }),
    }
}
