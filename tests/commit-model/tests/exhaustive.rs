//! Instances of the protocol, every state of each visited: no invariant breaks, no run-time assertion fails, and where
//! progress is tested, everything ends.
//!
//! The number of distinct states is part of each test: a change that prunes the model by accident, or lets something
//! new happen, must say so here. The decision page has the same numbers.

use sealog_commit_model::instances::{
    identity_plain_and_transaction, identity_update_twice, one_claim_twice, plain_and_two_identity_updates,
    three_plain, transaction_and_copy_of_half, transaction_and_plain, transaction_and_two_plain,
    transaction_twice, two_claims_of_one_handle, two_identity_updates, two_plain_apart, two_plain_together,
    two_transactions, two_transactions_and_plain,
};
use sealog_commit_model::{Scenario, exhaust};

fn is_clean(scenario: &Scenario, expected_states: usize) {
    let (states, found) = exhaust(scenario);
    println!("{scenario}: {states} states");
    if let Some(found) = found {
        for (step, action) in found.trace.iter().enumerate() {
            println!("{:3} {action:?}", step + 1);
        }
        panic!("{scenario}: {}", found.violation);
    }
    assert_eq!(states, expected_states, "distinct states of {scenario}");
}

fn row(scenario: &Scenario, states: usize) -> String {
    let progress = if scenario.progress { "yes" } else { "" };
    format!("| {scenario} | {progress} | {states} |")
}

/// Makes one test of each instance.
macro_rules! instances {
    ($($(#[$attribute:meta])* $name:ident: $scenario:expr, $states:literal;)*) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                is_clean(&$scenario, $states);
            }
        )*

        fn rows() -> Vec<String> {
            vec![$(row(&$scenario, $states)),*]
        }
    };
}

instances! {
    // In the names, s is a crash of the sequencer and p one of a participant.

    // A transaction and a plain publish in the same partition.
    transaction_plain: transaction_and_plain().with_progress(), 5_305;
    transaction_plain_s: transaction_and_plain().sequencer_crashes(1).with_progress(), 54_447;
    transaction_plain_p: transaction_and_plain().participant_crashes(1).with_progress(), 55_800;
    transaction_plain_repeat: transaction_and_plain().repeats(1).with_progress(), 76_881;
    transaction_plain_time_out: transaction_and_plain().time_outs(1).with_progress(), 47_926;
    transaction_plain_resolve: transaction_and_plain().resolves(1).with_progress(), 29_196;
    transaction_plain_settle: transaction_and_plain().settles(1).with_progress(), 65_037;
    transaction_plain_s_clean: transaction_and_plain().sequencer_crashes(1).clean_mark().with_progress(), 54_511;
    transaction_plain_s_p: transaction_and_plain().sequencer_crashes(1).participant_crashes(1), 613_956;
    transaction_plain_s_repeat: transaction_and_plain().sequencer_crashes(1).repeats(1), 888_520;
    transaction_plain_s_settle: transaction_and_plain().sequencer_crashes(1).settles(1), 788_497;

    // A transaction and a copy of one half on the plain path.
    transaction_half_s_p: transaction_and_copy_of_half().sequencer_crashes(1).participant_crashes(1), 385_344;
    transaction_half_s_repeat: transaction_and_copy_of_half().sequencer_crashes(1).repeats(1), 529_155;
    transaction_half_s_settle: transaction_and_copy_of_half().sequencer_crashes(1).settles(1), 502_395;
    transaction_half_s_resolve: transaction_and_copy_of_half().sequencer_crashes(1).resolves(1), 178_154;
    transaction_half_s_s: transaction_and_copy_of_half().sequencer_crashes(2), 174_124;
    transaction_half_p_p: transaction_and_copy_of_half().participant_crashes(2), 212_503;

    // Plain publishes.
    plain_apart_s_p_repeat:
        two_plain_apart().sequencer_crashes(1).participant_crashes(1).repeats(1).with_progress(), 316_058;
    plain_apart_s_p_time_out:
        two_plain_apart().sequencer_crashes(1).participant_crashes(1).time_outs(1).with_progress(), 221_410;
    plain_apart_s_p_repeat_clean:
        two_plain_apart().sequencer_crashes(1).participant_crashes(1).repeats(1).clean_mark().with_progress(),
        317_210;
    plain_together_s_p_repeat:
        two_plain_together().sequencer_crashes(1).participant_crashes(1).repeats(1).with_progress(), 77_403;
    plain_together_s_p_time_out:
        two_plain_together().sequencer_crashes(1).participant_crashes(1).time_outs(1).with_progress(), 56_223;

    // Identity updates.
    identity_s: identity_plain_and_transaction().sequencer_crashes(1).with_progress(), 61_683;
    identity_p: identity_plain_and_transaction().participant_crashes(1).with_progress(), 61_498;
    identity_repeat: identity_plain_and_transaction().repeats(1).with_progress(), 91_544;
    identity_s_s: identity_plain_and_transaction().sequencer_crashes(2), 339_612;
    identity_updates_s_p_repeat:
        two_identity_updates().sequencer_crashes(1).participant_crashes(1).repeats(1).with_progress(), 78_763;
    identity_twice_s_p_repeat:
        identity_update_twice().sequencer_crashes(1).participant_crashes(1).repeats(1).with_progress(), 28_191;

    // Handles.
    claims_s: two_claims_of_one_handle().sequencer_crashes(1).with_progress(), 128_892;
    claims_repeat: two_claims_of_one_handle().repeats(1).with_progress(), 132_716;
    claims_p: two_claims_of_one_handle().participant_crashes(1), 197_304;
    claim_twice: one_claim_twice().with_progress(), 29_003;
    claim_twice_s: one_claim_twice().sequencer_crashes(1), 311_515;
    claim_twice_repeat: one_claim_twice().repeats(1), 333_628;
    claim_twice_p: one_claim_twice().participant_crashes(1), 340_154;

    // Two transactions.
    transaction_same_twice: transaction_twice().with_progress(), 30_715;
    transactions_crosswise: two_transactions().with_progress(), 58_842;
    transactions_crosswise_s: two_transactions().sequencer_crashes(1).with_progress(), 705_836;
    transactions_crosswise_p: two_transactions().participant_crashes(1), 828_002;
    transactions_crosswise_repeat: two_transactions().repeats(1), 763_656;
    transactions_crosswise_cut: two_transactions().list_limit(1).with_progress(), 43_626;
    transactions_crosswise_cut_s: two_transactions().sequencer_crashes(1).list_limit(1), 584_920;

    // Three publishes.
    transaction_two_plain: transaction_and_two_plain(), 331_941;
    three_plain_s: three_plain().sequencer_crashes(1), 268_406;
    plain_two_identity_s: plain_and_two_identity_updates().sequencer_crashes(1), 57_696;

    // The gate, explicit.
    gate_transaction_half: transaction_and_copy_of_half().explicit_gate().with_progress(), 5_860;
    gate_transaction_half_s: transaction_and_copy_of_half().sequencer_crashes(1).explicit_gate(), 62_069;
    gate_transaction_half_p: transaction_and_copy_of_half().participant_crashes(1).explicit_gate(), 60_863;
    gate_plain_apart_s_p:
        two_plain_apart().sequencer_crashes(1).participant_crashes(1).explicit_gate().with_progress(), 28_528;
    gate_identity_s: identity_plain_and_transaction().sequencer_crashes(1).explicit_gate().with_progress(), 112_701;
    gate_claims_s: two_claims_of_one_handle().sequencer_crashes(1).explicit_gate(), 417_906;

    // Over a million states.
    #[ignore = "soak: over a million states"]
    soak_identity_s_repeat: identity_plain_and_transaction().sequencer_crashes(1).repeats(1), 1_078_364;
    #[ignore = "soak: over a million states"]
    soak_plain_apart_s_s_p_p_repeat:
        two_plain_apart().sequencer_crashes(2).participant_crashes(2).repeats(1), 4_662_756;
    #[ignore = "soak: over a million states"]
    soak_two_transactions_plain: two_transactions_and_plain(), 3_625_684;
    #[ignore = "soak: over a million states"]
    soak_transaction_same_twice_again: transaction_twice().attempts(2), 1_414_265;
    #[ignore = "soak: over a million states"]
    soak_gate_transaction_s_p:
        transaction_and_plain().sequencer_crashes(1).participant_crashes(1).explicit_gate(), 1_165_430;
}

#[test]
fn the_decision_page_has_these_numbers() {
    let page = include_str!("../../../docs/decisions/0005-commit-model.md");
    let missing: Vec<String> = rows().into_iter().filter(|row| !page.contains(row.as_str())).collect();
    assert!(
        missing.is_empty(),
        "docs/decisions/0005-commit-model.md lacks these rows:\n{}",
        missing.join("\n")
    );
}
