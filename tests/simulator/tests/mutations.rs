//! The checker can see: every deliberate mistake is found within a bounded number of seeds.

use sealog_simulator::{Mutation, search};

/// How many seeds a mistake may need.
const SEEDS: u64 = 4_000;

/// Looks for a seed that shows the mistake, and for the words of the checker or the assertion that saw it.
fn found(mutation: Mutation, signs: &[&str]) {
    let broken = search(1..=SEEDS, Some(mutation)).broken;
    let (number, what) = broken.unwrap_or_else(|| panic!("{mutation:?} was not found in {SEEDS} seeds"));
    println!("{mutation:?}: seed {number}: {what}");
    let known = signs.iter().any(|words| what.contains(words));
    assert!(known, "{mutation:?} showed at seed {number} as something else: {what}");
}

/// One test for each mistake.
macro_rules! mutations {
    ($($name:ident: $mutation:ident is seen as [$($words:literal),+];)+) => {
        $(#[test] fn $name() { found(Mutation::$mutation, &[$($words),+]); })+

        #[test]
        fn every_mistake_has_its_test() {
            let mut tested = vec![$(Mutation::$mutation),+];
            tested.dedup();
            assert_eq!(tested, Mutation::ALL);
        }
    };
}

mutations! {
    publish_told_before_durable: PublishToldBeforeDurable is seen as ["API-202"];
    read_before_durable: ReadBeforeDurable is seen as ["API-201"];
    stage_told_before_durable: StageToldBeforeDurable is seen as [
        "a decided transaction is staged or finished",
        "API-220"
    ];
    decision_told_before_durable: DecisionToldBeforeDurable is seen as ["API-220"];
    ids_told_before_durable: IdsToldBeforeDurable is seen as [
        "API-287",
        "API-289",
        "no participant has applied ids not given out",
        "new ids lie above every stored id",
        "every decision lies below the new ids"
    ];
    confirmed_before_durable: ConfirmedBeforeDurable is seen as ["API-203", "API-220"];
    boundary_told_before_stored: BoundaryToldBeforeStored is seen as ["API-291"];
    abort_not_durable: AbortNotDurable is seen as ["API-220", "a decided transaction was not aborted here"];
    abort_not_recorded: AbortNotRecorded is seen as ["API-220", "a decided transaction was not aborted here"];
    applied_told_before_durable: AppliedToldBeforeDurable is seen as ["API-202"];
    answered_before_all_applied: AnsweredBeforeAllApplied is seen as ["API-202"];
    withdraw_after_decide: WithdrawAfterDecide is seen as [
        "API-220",
        "a decided transaction is not withdrawn",
        "a decided transaction was not aborted here"
    ];
    unordered_instances: UnorderedInstances is seen as ["API-203"];
    repeat_replaces_reservation: RepeatReplacesReservation is seen as ["API-203"];
    repeat_reuses_ids: RepeatReusesIds is seen as [
        "every decision lies below the new ids",
        "replies move forward",
        "no participant has applied ids not given out"
    ];
    heard_on_any_request: HeardOnAnyRequest is seen as ["API-203"];
    confirmation_by_request: ConfirmationByRequest is seen as [
        "API-203",
        "API-220",
        "no participant has applied ids not given out"
    ];
    dead_reply_accepted: DeadReplyAccepted is seen as [
        "API-203",
        "replies move forward",
        "new ids lie above every stored id",
        "time does not go back"
    ];
    earlier_reply_accepted: EarlierReplyAccepted is seen as [
        "API-203",
        "replies move forward",
        "new ids lie above every stored id",
        "time does not go back"
    ];
    old_epoch_accepted: OldEpochAccepted is seen as ["API-203"];
    block_given_out_again: BlockGivenOutAgain is seen as [
        "API-287",
        "API-289",
        "no participant has applied ids not given out",
        "every decision lies below the new ids",
        "new ids lie above every stored id"
    ];
    clean_not_cleared: CleanNotCleared is seen as ["API-203"];
    time_limit_forgotten: TimeLimitForgotten is seen as ["time does not go back", "server_ns falls"];
    tombstones_forgotten: TombstonesForgotten is seen as ["API-220"];
    decision_forgotten: DecisionForgotten is seen as ["API-288", "API-220"];
    staged_forgotten: StagedForgotten is seen as ["a decided transaction is staged or finished", "API-220"];
    head_checked_on_arrival: HeadCheckedOnArrival is seen as ["API-232"];
    taken_against_staged: TakenAgainstStaged is seen as ["API-296"];
    head_before_duplicate: HeadBeforeDuplicate is seen as ["API-222"];
    no_lock_on_staged: NoLockOnStaged is seen as [
        "a staged envelope is not stored yet",
        "a staged update finds the head"
    ];
    end_forgotten: EndForgotten is seen as ["a decided transaction is staged or finished"];
    cut_list_with_ids: CutListWithIds is seen as ["API-203", "API-220"];
    directory_confirms_at_once: DirectoryConfirmsAtOnce is seen as [
        "API-220",
        "API-203",
        "no participant has applied ids not given out"
    ];
    overtaken_sequencer_answers: OvertakenSequencerAnswers is seen as [
        "API-2",
        "no participant has applied ids not given out",
        "new ids lie above every stored id",
        "every decision lies below the new ids"
    ];
    change_told_before_durable: ChangeToldBeforeDurable is seen as ["API-270"];
    associated_before_durable: AssociatedBeforeDurable is seen as ["API-270"];
    outbox_forgotten_when_sent: OutboxForgottenWhenSent is seen as ["API-270"];
    outbox_forgotten_at_restart: OutboxForgottenAtRestart is seen as ["API-270"];
    delivery_confirms_all: DeliveryConfirmsAll is seen as ["API-270"];
    no_alarm_for_outbox: NoAlarmForOutbox is seen as ["progress"];
    change_for_duplicate: ChangeForDuplicate is seen as ["API-270"];
    staged_identity_forgotten: StagedIdentityForgotten is seen as ["the facts kept", "API-232", "API-270"];
    associate_ignores_order: AssociateIgnoresOrder is seen as ["API-270"];
    tombstone_forgotten: TombstoneForgotten is seen as ["API-270"];
    revoked_found: RevokedFound is seen as ["API-270"];
    no_lock_on_claim: NoLockOnClaim is seen as ["API-296"];
    no_alarm: NoAlarm is seen as ["progress"];
    no_wake: NoWake is seen as ["progress"];
}
