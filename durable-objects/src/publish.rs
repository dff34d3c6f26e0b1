//! A publish that spans participants: the calls of one `Coordinator`.

use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use js_sys::Math;
use sealog_log::Nanos;
use sealog_log::coordinator::{Action, Coordinator, Outcome, Part, Random};
use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::{
    ApplyReply, DecideReply, NewEnvelope, Participant, StageReply, StoreRequest, failure::Kind,
    store_reply::Refusal,
};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::{CONNECTIONS, CallError, Objects, clock};

/// How a publish ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// All of it is stored: one entry per part, in order, with the metadata of its envelopes as the rows say; a Directory
    /// has none.
    Stored(Vec<Vec<EnvelopeMeta>>),
    /// Nothing was stored: the identity history moved (API-232).
    HeadMoved,
    /// Nothing was stored: another inbox holds a handle (API-296).
    Taken,
    /// Nothing was stored: too much waits here.
    Busy,
}

/// What came of one call.
enum Event {
    Staged(Participant, Option<StageReply>),
    Withdrawn(Participant),
    Decided(Option<DecideReply>),
    Applied(Participant, Option<ApplyReply>),
    Woke,
}

impl Objects {
    /// Publishes the parts, one per participant, all or nothing (API-220), and tries for no longer than `patience`.
    ///
    /// One log partition commits on its own, in one flush. Whatever else goes through stage, decide, apply: several log
    /// partitions, and claims at Directories beside at least one of them. The same parts may be published again whatever
    /// became of the call (API-222, API-224).
    pub async fn publish(&self, mut parts: Vec<Part>, patience: Duration) -> Result<Published, CallError> {
        if parts.len() == 1
            && let Some(Part { participant, envelopes, .. }) = parts.pop_if(|part| part.claims.is_empty())
        {
            return self.publish_to_one(participant.index, envelopes).await;
        }
        let order: Vec<Participant> = parts.iter().map(|part| part.participant).collect();
        let now = clock::now();
        let (coordinator, first) = Coordinator::new(parts, now, now + nanos(patience), random()?);
        self.run(coordinator, first, &order).await
    }

    async fn publish_to_one(
        &self,
        partition: u32,
        envelopes: Vec<NewEnvelope>,
    ) -> Result<Published, CallError> {
        let reply = self.store(partition, StoreRequest { envelopes }).await?;
        Ok(match reply.refusal() {
            Refusal::Unspecified => Published::Stored(vec![reply.metas]),
            Refusal::HeadMoved => Published::HeadMoved,
            Refusal::Busy => Published::Busy,
        })
    }

    /// Carries out what the coordinator says, at most [`CONNECTIONS`] calls at once.
    async fn run(
        &self,
        mut coordinator: Coordinator,
        first: Vec<Action>,
        order: &[Participant],
    ) -> Result<Published, CallError> {
        let mut todo = VecDeque::from(first);
        let mut calls = FuturesUnordered::new();
        loop {
            while calls.len() < CONNECTIONS
                && let Some(action) = todo.pop_front()
            {
                if let Action::Done(outcome) = action {
                    return ended(outcome, &coordinator, order);
                }
                calls.push(self.perform(action));
            }
            let Some(event) = calls.next().await else {
                return Err(unavailable("the publish came to no end; publish the same bytes again"));
            };
            let now = clock::now();
            todo.extend(match event {
                Event::Staged(from, reply) => coordinator.staged(now, from, reply.as_ref()),
                Event::Withdrawn(from) => coordinator.withdrawn(now, from),
                Event::Decided(reply) => coordinator.decided(now, reply),
                Event::Applied(from, reply) => coordinator.applied(now, from, reply),
                Event::Woke => coordinator.woke(now, random()?),
            });
        }
    }

    fn perform(&self, action: Action) -> LocalBoxFuture<'_, Event> {
        Box::pin(async move {
            match action {
                Action::Stage(to, request) => Event::Staged(to, self.stage(to, request).await.ok()),
                Action::Withdraw(to, request) => {
                    // Without an answer the participant finds out for itself that the attempt was given up.
                    let _ = self.withdraw(to, request).await;
                    Event::Withdrawn(to)
                }
                Action::Decide(request) => Event::Decided(self.decide(request).await.ok()),
                Action::Apply(to, request) => Event::Applied(to, self.apply(to, request).await.ok()),
                Action::Sleep(nanos) => {
                    clock::sleep(nanos).await;
                    Event::Woke
                }
                Action::Done(_) => unreachable!("handled by its caller"),
            }
        })
    }
}

fn ended(outcome: Outcome, coordinator: &Coordinator, order: &[Participant]) -> Result<Published, CallError> {
    match outcome {
        Outcome::Stored(metas) => {
            let mut of: HashMap<Participant, Vec<EnvelopeMeta>> =
                coordinator.participants().zip(metas).collect();
            let in_order = order.iter().map(|participant| of.remove(participant).unwrap_or_default());
            Ok(Published::Stored(in_order.collect()))
        }
        Outcome::HeadMoved => Ok(Published::HeadMoved),
        Outcome::Taken => Ok(Published::Taken),
        Outcome::Unavailable => Err(unavailable("the publish met another one; publish the same bytes again")),
        Outcome::DeadlineExceeded => Err(CallError {
            kind: Kind::Deadline,
            message: "the publish took too long; publish the same bytes again".to_owned(),
        }),
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX / 2)
}

fn unavailable(message: &str) -> CallError {
    CallError { kind: Kind::Unavailable, message: message.to_owned() }
}

fn random() -> Result<Random, CallError> {
    let mut txid = [0; 16];
    getrandom::fill(&mut txid).map_err(|_| unavailable("the platform gave no randomness"))?;
    Ok(Random { txid, part: Math::random() })
}
