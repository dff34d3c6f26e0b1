//! Ways to break the protocol, each of which must be caught.

/// One broken rule. The holes of the stream protocol that name the same thing are in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mutation {
    // Registering.
    /// A partition reads the heads in one event and stores the watches in a later one (hole 1).
    TargetBeforeWatch,
    /// A push that overtakes the reply to its Control is delivered (hole 2).
    PushDeliveredBeforeApplied,
    /// A push that overtakes the reply to its Control is forgotten (hole 2).
    PushDroppedBeforeApplied,
    /// What such a push said is overwritten by the older target (hole 2).
    KnownOverwrittenByTarget,
    /// A partition applies Controls in any order (hole 7).
    ControlUnordered,
    /// The session counts its Controls anew after each waking (hole 10).
    ControlNumbersRestart,
    /// The reply to an older Control is taken for the reply to the current one (hole 9).
    ReplyToOlderControl,
    /// A push for a topic that is registering is answered with `unwanted`.
    RegisteringUnwanted,
    /// An add of a registered topic registers it again.
    RegisteredAgain,
    /// `unwanted` takes away the watch, whatever its generation (hole 8).
    UnwantedWithoutGeneration,

    // Delivering.
    /// A push that begins below the position is dropped as a whole (hole 3).
    OverlappingPushDropped,
    /// A push is delivered wherever the registration stands.
    NoPositionTest,
    /// A page asked for by an earlier registration is delivered (hole 6).
    PageOfEarlierRegistration,
    /// The end of a page is taken for the end of the topic (hole 4).
    PageEndIsHead,
    /// A push that finds the registration behind leaves no mark (hole 5).
    BehindNotMarked,
    /// A push is delivered though the registration has not had its history (hole 11).
    PushIntoHistory,
    /// A hint is taken for a push: "there is nothing up to `head`".
    HintTakenForRows,
    /// A page that fairness drops takes with it what it said of the head.
    DroppedPageForgotten,
    /// Fairness is judged only when a page is asked for (hole 12).
    FairnessOnlyWhenPulling,
    /// Nobody waits for the others' first helping.
    NoFairness,

    // Owing.
    /// A push that timed out is not sent again (hole 24).
    PushNotRetried,
    /// A time-out is read as "gone" (hole 24).
    TimeOutMeansGone,
    /// A started partition owes nothing (hole 20).
    NoMark,
    /// What is in flight does not hold the mark (hole 21).
    MarkWhenSent,
    /// A hint does not hold the mark.
    HintReleasesMark,
    /// An instance that has not loaded its watches raises the mark (hole 21).
    MarkWhileNotLoaded,
    /// The alarm raises the mark although something is owed.
    MarkWhileOwed,
    /// No alarm is armed with the rows (hole 19).
    NoAlarm,
    /// Watches are kept in memory only (hole 25).
    WatchesInMemory,
    /// The incarnation is not stored: every instance has the same (hole 23).
    IncarnationNotStored,
    /// The answer to a push is matched by its number alone (hole 23).
    AnswerByNumberAlone,

    // Sleeping.
    /// Hibernation forgets that topics were behind (hole 14).
    BehindLost,
    /// A session that wakes behind syncs, and does not look at the heads.
    SyncWithoutHeads,
    /// The answer to the sync of an earlier waking ends the present one (hole 14).
    AnswerToOlderSync,
    /// Positions are kept only when nothing is behind (hole 13).
    PositionsLost,
    /// A session whose memory was lost while it was busy goes on (hole 15).
    ResumedWhileBusy,

    // Not caught, and hence not a hole.
    /// A topic that is added again keeps its old generation at the partition, and the session ignores the generation
    /// of a push. Order needs no generations: a push is a fact about the log.
    GenerationOfPushIgnored,
}
