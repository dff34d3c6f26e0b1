//! Ways to break the protocol, each of which must be caught.

use crate::message::Message;

/// One broken rule. The traps of the commit protocol that name the same thing are in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mutation {
    // The channel.
    /// `apply` carries the ids, and the participant uses them: a second channel.
    IdsCarriedByApply,
    /// A partition does not wait for a reply before its next request.
    TwoRequestsInFlight,
    /// A partition applies only what it knew to be staged when it asked.
    ListFilteredByPartition,
    /// A repeated request closes the reservation of the first (trap 2).
    RepeatReplacesReservation,
    /// A repeated request gets the ids of the first with a new list (trap 3).
    RepeatReusesIds,
    /// Instances have nonces instead of an order (trap 5).
    UnorderedInstances,
    /// A reply is matched by number only, not by incarnation (trap 6).
    ReplyOfDeadInstanceAccepted,
    /// The reply to an earlier, smaller request is accepted (trap 4).
    ReplyToEarlierAttemptAccepted,
    /// A list is cut, and ids come with it all the same (trap 13).
    CutListWithIds,

    // Epoch and boundary.
    /// A reply of an old epoch is accepted after `settle` was answered (trap 8).
    OldEpochAccepted,
    /// Any request counts as having said the epoch (trap 7).
    HeardOnAnyRequest,
    /// The boundary is told before it is stored.
    BoundaryToldBeforeStored,
    /// Unfinished transactions do not hold the boundary.
    BoundaryIgnoresDecided,
    /// A transaction holds the boundary only by the ids of those who have not confirmed (trap 16).
    BoundaryByParticipant,
    /// The end of a block is not stored.
    BlockEndNotStored,
    /// A new instance starts at the beginning of the stored block.
    BlockGivenOutAgain,
    /// The `clean` mark stays when ids are given out.
    CleanNotCleared,
    /// The platform's fence fails: a superseded sequencer answers a request (trap 24).
    SupersededSequencerAnswers,

    // Confirmation.
    /// To have listed a transaction counts as its confirmation.
    LostConfirmationCounts,
    /// The next request confirms what the reply to the previous one listed (trap 1).
    ConfirmationByRequest,
    /// A request with `applied` leaves before the step is durable.
    ConfirmationBeforeDurable,
    /// The Directory's part is compared by its own id, 0, instead of the transaction's position (trap 14).
    ParticipantWithoutIds,

    // Outcome.
    /// A decision leaves before it is durable.
    DecisionToldBeforeDurable,
    /// `resolve` answers aborted and keeps no tombstone.
    AbortNotRecorded,
    /// The answer leaves before the tombstone is durable.
    AbortToldBeforeDurable,
    /// The tombstone goes while a `decide` can still come (trap 10).
    TombstoneExpires,
    /// A decision is forgotten once all have confirmed it (trap 9).
    DecisionForgotten,
    /// A worker withdraws after it has sent `decide` (trap 12).
    WithdrawAfterDecide,
    /// A participant drops a staged copy at its deadline without asking.
    StageDroppedAtDeadline,
    /// A stage is acknowledged before it is durable.
    StageToldBeforeDurable,
    /// The second attempt has the txid of the first (trap 11).
    TxidUsedAgain,
    /// A participant does not remember finished transactions and stages them again (trap 15).
    StageRepeatedAfterEnd,
    /// A worker answers success when the transaction is decided.
    AnsweredBeforeApplied,

    // Checks.
    /// `expected_head` is checked when the publish arrives, not in the step.
    HeadCheckedOnlyOnArrival,
    /// `expected_head` is checked against the head before the batch (trap 17).
    HeadOfBatchStart,
    /// `expected_head` is checked before duplicates are looked for (trap 18).
    HeadBeforeDuplicate,
    /// A staged identity update does not lock its inbox.
    NoLockOnStagedInbox,
    /// A staged envelope does not lock its hash.
    NoLockOnStagedEnvelope,
    /// A staged claim does not lock its handle.
    NoLockOnStagedHandle,
    /// The Directory says "taken" against a claim that is only staged (trap 19).
    TakenAgainstUndecided,

    // Progress.
    /// Nothing asks for the outcome of what is staged (trap 26).
    NoAlarm,
    /// A partition rests without having told what it applied, and nothing asks it (trap 25).
    NoTrailingRound,
    /// A void reply is not followed at once by a new request (rule 3): the batch waits for the next stranger.
    VoidReplyNotFollowed,
}

impl Mutation {
    /// Whether this mutation lets a message past the output gate, ahead of the writes that it rests on.
    pub fn bypasses_gate(self, message: &Message) -> bool {
        match self {
            Self::ConfirmationBeforeDurable => matches!(message, Message::Reserve(_)),
            Self::DecisionToldBeforeDurable => {
                matches!(message, Message::DecideReply { .. } | Message::Reserved(_))
            }
            Self::AbortToldBeforeDurable => matches!(message, Message::Resolved { .. }),
            Self::StageToldBeforeDurable => matches!(message, Message::StageReply { .. }),
            _ => false,
        }
    }
}
