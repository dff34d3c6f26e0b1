//! Deliberate mistakes, made around the production machines. Each must be found by the checker, or the checker is blind.
//!
//! Their names follow the list of mutations of the protocol's model.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A publish is answered before its rows are durable.
    PublishToldBeforeDurable,
    /// Rows are read before they are durable.
    ReadBeforeDurable,
    /// A stage is confirmed before it is durable.
    StageToldBeforeDurable,
    /// A decision is told before it is durable.
    DecisionToldBeforeDurable,
    /// The sequencer's ids leave before its block end is durable.
    IdsToldBeforeDurable,
    /// A participant confirms before its step is durable.
    ConfirmedBeforeDurable,
    /// The boundary is told before it is stored.
    BoundaryToldBeforeStored,
    /// An abort is told before its tombstone is durable.
    AbortNotDurable,
    /// An abort is told and not recorded.
    AbortNotRecorded,
    /// `applied` is told before the step is durable.
    AppliedToldBeforeDurable,
    /// The worker answers when the decision is made, before all have applied.
    AnsweredBeforeAllApplied,
    /// The worker withdraws although it has sent `decide`.
    WithdrawAfterDecide,
    /// Instances are told apart, but not ordered.
    UnorderedInstances,
    /// A repeated request closes the reservation of the first.
    RepeatReplacesReservation,
    /// A repeated request gets the ids of the first, with a fresh list.
    RepeatReusesIds,
    /// A partition counts as heard when any request of it arrives.
    HeardOnAnyRequest,
    /// A request confirms the reply before it, applied or not.
    ConfirmationByRequest,
    /// The reply to a dead instance is accepted.
    DeadReplyAccepted,
    /// The reply to an earlier request is accepted.
    EarlierReplyAccepted,
    /// A reply of an ended epoch is accepted.
    OldEpochAccepted,
    /// The block end is forgotten at a restart.
    BlockGivenOutAgain,
    /// `clean` is not cleared when ids are given out.
    CleanNotCleared,
    /// The limit of handed out times is forgotten at a restart.
    TimeLimitForgotten,
    /// Tombstones are forgotten at a restart.
    TombstonesForgotten,
    /// Finished decisions are forgotten at a restart.
    DecisionForgotten,
    /// Staged rows are dropped at a restart.
    StagedForgotten,
    /// The head is checked when a publish arrives, not when it is stored.
    HeadCheckedOnArrival,
    /// "Taken" against a claim that is only staged.
    TakenAgainstStaged,
    /// The head is checked before duplicates are looked for.
    HeadBeforeDuplicate,
    /// A staged envelope and a staged inbox lock nothing.
    NoLockOnStaged,
    /// What ended at a participant is forgotten at a restart.
    EndForgotten,
    /// A list of decisions is cut, and ids come with it.
    CutListWithIds,
    /// A participant without ids confirms whatever is below the newest ids.
    DirectoryConfirmsAtOnce,
    /// A sequencer that has a successor answers.
    OvertakenSequencerAnswers,
    /// An update is told to the Directories before it is durable.
    ChangeToldBeforeDurable,
    /// A Directory takes associations before they are durable.
    AssociatedBeforeDurable,
    /// What is owed to a Directory is forgotten when it is sent.
    OutboxForgottenWhenSent,
    /// What is owed to the Directories is forgotten at a restart.
    OutboxForgottenAtRestart,
    /// An answer of a Directory counts for whatever it is owed.
    DeliveryConfirmsAll,
    /// No alarm is set for what is owed to the Directories.
    NoAlarmForOutbox,
    /// A duplicate is told to the Directories once more, as something new.
    ChangeForDuplicate,
    /// What an update brings along is lost while it is staged.
    StagedIdentityForgotten,
    /// Of two changes, that which came last stands.
    AssociateIgnoresOrder,
    /// A Directory forgets associations that have ended.
    TombstoneForgotten,
    /// A lookup finds associations that have ended.
    RevokedFound,
    /// A staged claim locks nothing.
    NoLockOnClaim,
    /// No alarm is set.
    NoAlarm,
    /// Nothing happens when time has passed.
    NoWake,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 48] = [
        Self::PublishToldBeforeDurable,
        Self::ReadBeforeDurable,
        Self::StageToldBeforeDurable,
        Self::DecisionToldBeforeDurable,
        Self::IdsToldBeforeDurable,
        Self::ConfirmedBeforeDurable,
        Self::BoundaryToldBeforeStored,
        Self::AbortNotDurable,
        Self::AbortNotRecorded,
        Self::AppliedToldBeforeDurable,
        Self::AnsweredBeforeAllApplied,
        Self::WithdrawAfterDecide,
        Self::UnorderedInstances,
        Self::RepeatReplacesReservation,
        Self::RepeatReusesIds,
        Self::HeardOnAnyRequest,
        Self::ConfirmationByRequest,
        Self::DeadReplyAccepted,
        Self::EarlierReplyAccepted,
        Self::OldEpochAccepted,
        Self::BlockGivenOutAgain,
        Self::CleanNotCleared,
        Self::TimeLimitForgotten,
        Self::TombstonesForgotten,
        Self::DecisionForgotten,
        Self::StagedForgotten,
        Self::HeadCheckedOnArrival,
        Self::TakenAgainstStaged,
        Self::HeadBeforeDuplicate,
        Self::NoLockOnStaged,
        Self::EndForgotten,
        Self::CutListWithIds,
        Self::DirectoryConfirmsAtOnce,
        Self::OvertakenSequencerAnswers,
        Self::ChangeToldBeforeDurable,
        Self::AssociatedBeforeDurable,
        Self::OutboxForgottenWhenSent,
        Self::OutboxForgottenAtRestart,
        Self::DeliveryConfirmsAll,
        Self::NoAlarmForOutbox,
        Self::ChangeForDuplicate,
        Self::StagedIdentityForgotten,
        Self::AssociateIgnoresOrder,
        Self::TombstoneForgotten,
        Self::RevokedFound,
        Self::NoLockOnClaim,
        Self::NoAlarm,
        Self::NoWake,
    ];
}
