//! Deliberate mistakes, made around the production machines. Each must be found by the checker, or the checker is blind.
//!
//! Their names follow the list of mutations of the protocol's model, as far as they can be made from outside.

use prost::Message;
use sealog_proto::internal::{ControlReply, PushReply, SessionAttachment, TopicHead, Watch};

use super::run::Run;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamMutation {
    /// A session that finds itself busy goes on.
    ResumedWhileBusy,
    /// A session does not say that it is busy before it sends.
    BusyAfterTheFrames,
    /// A session does not say that it is busy before it reads what the client sent.
    MessageReadUnmarked,
    /// A session does not remember that it was behind.
    BehindLost,
    /// Positions do not survive a sleep.
    PositionsLost,
    /// The numbers of calls start again after a sleep.
    NumbersStartAgain,
    /// A target is read before the watch is stored.
    TargetBeforeRegistration,
    /// A reply to any call counts as the reply to the current one.
    ReplyToOlderControl,
    /// What is unwanted is taken away whatever its generation.
    UnwantedWithoutGeneration,
    /// A push that brought no answer counts as one to a stream that is over.
    TimeOutMeansGone,
    /// A push that brought no answer counts as acknowledged.
    PushNotRetried,
    /// A partition arms no alarm.
    PartitionSetsNoAlarm,
    /// A session that waits for a retry sets no timer.
    SessionSetsNoTimer,
    /// The alarm of a session does not ring.
    SessionHearsNoAlarm,
    /// A watch is told before it is durable.
    WatchToldBeforeDurable,
    /// A session takes what it wrote for durable at once.
    WritesTakenForDurable,
}

impl StreamMutation {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::ResumedWhileBusy,
        Self::BusyAfterTheFrames,
        Self::MessageReadUnmarked,
        Self::BehindLost,
        Self::PositionsLost,
        Self::NumbersStartAgain,
        Self::TargetBeforeRegistration,
        Self::ReplyToOlderControl,
        Self::UnwantedWithoutGeneration,
        Self::TimeOutMeansGone,
        Self::PushNotRetried,
        Self::PartitionSetsNoAlarm,
        Self::SessionSetsNoTimer,
        Self::SessionHearsNoAlarm,
        Self::WatchToldBeforeDurable,
        Self::WritesTakenForDurable,
    ];
}

/// What the socket keeps, of what the session says.
pub(super) fn attach(run: &Run, kept: &[u8], bytes: Vec<u8>) -> Vec<u8> {
    use StreamMutation::{
        BehindLost, BusyAfterTheFrames, NumbersStartAgain, PositionsLost, ResumedWhileBusy,
    };
    let Some(mutation) = run.mutation else { return bytes };
    let Ok(mut attachment) = SessionAttachment::decode(bytes.as_slice()) else { return bytes };
    match mutation {
        ResumedWhileBusy => attachment.busy = false,
        // Of the two attachments of an event that sends, the first is the busy one.
        BusyAfterTheFrames if attachment.busy && !was_busy(kept) => return kept.to_vec(),
        BehindLost => attachment.behind = false,
        PositionsLost => attachment.positions = None,
        NumbersStartAgain => attachment.next_number = 1,
        _ => return bytes,
    }
    attachment.encode_to_vec()
}

fn was_busy(kept: &[u8]) -> bool {
    SessionAttachment::decode(kept).is_ok_and(|attachment| attachment.busy)
}

/// A partition's answer to a call of a session. `stale` are the heads as they were when the call was sent.
pub(super) fn control(run: &Run, reply: &mut ControlReply, stale: &[TopicHead]) {
    if run.is(StreamMutation::TargetBeforeRegistration) && stale.len() == reply.heads.len() {
        reply.heads = stale.to_vec();
    }
}

/// A session's answer to a push, as its partition gets it; `None` when there was none.
pub(super) fn pushed(
    run: &Run,
    (incarnation, number): (u64, u64),
    reply: Option<PushReply>,
) -> Option<PushReply> {
    match (reply, run.mutation) {
        (Some(mut reply), Some(StreamMutation::UnwantedWithoutGeneration)) => {
            let later = |watch: &Watch| {
                let generation = watch.generation;
                (generation..generation + 8)
                    .map(|generation| Watch { generation, ..watch.clone() })
                    .collect::<Vec<_>>()
            };
            reply.unwanted = reply.unwanted.iter().flat_map(later).collect();
            Some(reply)
        }
        (None, Some(StreamMutation::TimeOutMeansGone)) => {
            Some(PushReply { number, incarnation, gone: true, ..PushReply::default() })
        }
        (None, Some(StreamMutation::PushNotRetried)) => {
            Some(PushReply { number, incarnation, ..PushReply::default() })
        }
        (reply, _) => reply,
    }
}
