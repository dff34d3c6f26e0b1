//! Every mutation must be caught: the model finds a violation, the one named here, by a shortest trace of the length
//! named here. The table of the decision page is this one.

use sealog_commit_model::Invariant::{
    Api201, Api202, Api203, Api220, Api222, Api232, Api287, Api288, Api289, Api291, Api296, HalfLost,
};
use sealog_commit_model::Violation::{Broken, Stuck};
use sealog_commit_model::instances::{
    identity_plain_and_transaction, identity_update_twice, transaction_and_copy_of_half,
    transaction_and_plain, transaction_twice, two_claims_of_one_handle, two_identity_updates,
    two_plain_apart, two_plain_together, two_transactions,
};
use sealog_commit_model::{Mutation, Scenario, Stuck as Never, Violation, exhaust};

/// One row of the table.
struct Case {
    name: &'static str,
    rules: &'static str,
    scenario: Scenario,
    breaks: Violation,
    steps: usize,
}

impl Case {
    fn is_caught(&self) {
        let (_, found) = exhaust(&self.scenario);
        let found = found.unwrap_or_else(|| panic!("{} is not caught", self.name));
        println!("{}: {} after {} steps of {}", self.name, found.violation, found.trace.len(), self.scenario);
        for (step, action) in found.trace.iter().enumerate() {
            println!("{:3} {action:?}", step + 1);
        }
        assert_eq!(found.violation, self.breaks);
        assert_eq!(found.trace.len(), self.steps, "a shortest trace");
    }

    fn row(&self) -> String {
        let name = self.name.replace('_', " ");
        format!("| {name} | {} | {} | {} | {} |", self.rules, self.breaks, self.scenario, self.steps)
    }
}

/// Makes one test of each row.
macro_rules! mutations {
    ($($name:ident: $mutation:ident, $rules:literal, $scenario:expr, $breaks:expr, $steps:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let case = cases().into_iter().find(|case| case.name == stringify!($name));
                case.expect("a row of the table").is_caught();
            }
        )*

        fn cases() -> Vec<Case> {
            vec![$(Case {
                name: stringify!($name),
                rules: $rules,
                scenario: $scenario.mutated(Mutation::$mutation),
                breaks: $breaks,
                steps: $steps,
            }),*]
        }
    };
}

mutations! {
    // The channel.
    ids_carried_by_apply: IdsCarriedByApply, "2, 16", transaction_and_plain(), Broken(Api201), 12;
    two_requests_in_flight: TwoRequestsInFlight, "1", two_plain_together(), Broken(Api201), 8;
    list_filtered_by_the_partition: ListFilteredByPartition, "4, 6", transaction_and_plain(), Broken(Api203), 18;
    repeat_replaces_the_reservation: RepeatReplacesReservation, "4",
        two_plain_together().repeats(1), Broken(Api203), 5;
    repeat_reuses_ids: RepeatReusesIds, "4", transaction_and_plain().repeats(1), Broken(Api201), 11;
    unordered_instances: UnorderedInstances, "1",
        two_plain_together().participant_crashes(1), Broken(Api203), 8;
    reply_of_a_dead_instance_accepted: ReplyOfDeadInstanceAccepted, "3",
        two_plain_together().participant_crashes(1), Broken(Api203), 8;
    reply_to_an_earlier_attempt_accepted: ReplyToEarlierAttemptAccepted, "1, 3",
        two_plain_together().time_outs(1), Broken(Api203), 6;
    cut_list_with_ids: CutListWithIds, "5", two_transactions().list_limit(1), Broken(Api203), 21;

    // Epoch and boundary.
    old_epoch_accepted: OldEpochAccepted, "3, 8",
        two_plain_apart().sequencer_crashes(1).settles(1), Broken(Api203), 14;
    heard_on_any_request: HeardOnAnyRequest, "8",
        two_plain_apart().sequencer_crashes(1).repeats(1), Broken(Api203), 9;
    boundary_told_before_stored: BoundaryToldBeforeStored, "7",
        two_plain_apart().sequencer_crashes(1).explicit_gate(), Broken(Api291), 8;
    boundary_ignores_decided: BoundaryIgnoresDecided, "7", transaction_and_plain(), Broken(Api203), 6;
    boundary_by_participant: BoundaryByParticipant, "7",
        transaction_and_plain().sequencer_crashes(1).settles(1), Broken(Api291), 21;
    block_end_not_stored: BlockEndNotStored, "7", two_plain_apart().sequencer_crashes(1), Broken(Api287), 9;
    block_given_out_again: BlockGivenOutAgain, "7", two_plain_apart().sequencer_crashes(1), Broken(Api287), 9;
    clean_not_cleared: CleanNotCleared, "19",
        two_plain_apart().sequencer_crashes(1).clean_mark(), Broken(Api203), 11;
    superseded_sequencer_answers: SupersededSequencerAnswers, "the platform's fence",
        two_plain_apart().sequencer_crashes(1), Broken(Api289), 9;

    // Confirmation.
    lost_confirmation_counts: LostConfirmationCounts, "2", transaction_and_plain(), Broken(Api203), 11;
    confirmation_by_request: ConfirmationByRequest, "2",
        transaction_and_plain().time_outs(1), Broken(Api203), 16;
    confirmation_before_durable: ConfirmationBeforeDurable, "2, the gate",
        two_plain_apart().explicit_gate(), Broken(Api203), 8;
    participant_without_ids: ParticipantWithoutIds, "2",
        two_claims_of_one_handle().with_progress(), Stuck(Never::Staged), 5;

    // Outcome.
    decision_told_before_durable: DecisionToldBeforeDurable, "the gate",
        transaction_and_plain().sequencer_crashes(1).explicit_gate(), Broken(Api220), 13;
    abort_not_recorded: AbortNotRecorded, "12", transaction_and_plain().resolves(1), Broken(HalfLost), 9;
    abort_told_before_durable: AbortToldBeforeDurable, "12, the gate",
        transaction_and_plain().sequencer_crashes(1).resolves(1).explicit_gate(), Broken(HalfLost), 14;
    tombstone_expires: TombstoneExpires, "12", transaction_and_plain().resolves(2), Broken(HalfLost), 10;
    decision_forgotten: DecisionForgotten, "11", transaction_and_plain().repeats(1), Broken(Api288), 18;
    withdraw_after_decide: WithdrawAfterDecide, "9",
        transaction_and_plain().worker_time_outs(1), Broken(HalfLost), 8;
    stage_dropped_at_its_deadline: StageDroppedAtDeadline, "12",
        transaction_and_plain().resolves(1), Broken(HalfLost), 7;
    stage_told_before_durable: StageToldBeforeDurable, "the gate",
        transaction_and_plain().participant_crashes(1).explicit_gate(), Broken(HalfLost), 7;
    txid_used_again: TxidUsedAgain, "9", transaction_twice().attempts(2), Broken(HalfLost), 17;
    stage_repeated_after_the_end: StageRepeatedAfterEnd, "10",
        two_claims_of_one_handle().repeats(1).with_progress(), Stuck(Never::Staged), 10;
    answered_before_all_applied: AnsweredBeforeApplied, "14", transaction_and_plain(), Broken(Api202), 7;

    // Checks.
    head_checked_only_on_arrival: HeadCheckedOnlyOnArrival, "6", two_identity_updates(), Broken(Api232), 8;
    head_of_the_start_of_the_batch: HeadOfBatchStart, "6",
        two_identity_updates().time_outs(1), Broken(Api232), 7;
    head_before_duplicate: HeadBeforeDuplicate, "6", identity_update_twice(), Broken(Api222), 9;
    no_lock_on_a_staged_inbox: NoLockOnStagedInbox, "15",
        identity_plain_and_transaction(), Broken(Api232), 13;
    no_lock_on_a_staged_envelope: NoLockOnStagedEnvelope, "15",
        transaction_and_copy_of_half(), Broken(Api222), 13;
    no_lock_on_a_staged_handle: NoLockOnStagedHandle, "15", two_claims_of_one_handle(), Broken(Api296), 16;
    taken_against_an_undecided_claim: TakenAgainstUndecided, "15",
        two_claims_of_one_handle(), Broken(Api296), 7;

    // Progress: steps to the state from which it is missed.
    no_alarm: NoAlarm, "16, 17", transaction_and_plain().with_progress(), Stuck(Never::Staged), 1;
    no_trailing_round: NoTrailingRound, "16, 17", two_plain_apart().with_progress(), Stuck(Never::Boundary), 1;
    void_reply_not_followed: VoidReplyNotFollowed, "3",
        two_plain_apart().sequencer_crashes(1).settles(1).with_progress(), Stuck(Never::Queued), 6;
}

#[test]
fn the_decision_page_has_this_table() {
    let page = include_str!("../../../docs/decisions/0005-commit-model.md");
    let rows: Vec<String> = cases().iter().map(Case::row).collect();
    let missing: Vec<&String> = rows.iter().filter(|row| !page.contains(row.as_str())).collect();
    let listed = page.lines().filter(|line| line.matches('|').count() == 6).count();
    assert!(missing.is_empty(), "docs/decisions/0005-commit-model.md lacks these rows: {missing:#?}");
    assert_eq!(listed, rows.len() + 2, "rows of the page, with the two of its head");
}
