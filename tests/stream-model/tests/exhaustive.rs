//! Instances of the protocol, every state of each visited: no invariant breaks, no run-time assertion fails, and from
//! every state everything arrives once faults stop.
//!
//! The number of distinct states is part of each test: a change that prunes the model by accident, or lets something
//! new happen, must say so here. The decision page has the same numbers.

use sealog_stream_model::check::{Searched, exhaust, violation};
use sealog_stream_model::instances::{
    added_again, added_again_further_on, cursor_above_the_head, one_topic, second_topic_later, two_topics,
};
use sealog_stream_model::names::Topic::{A, B};
use sealog_stream_model::{Scenario, Variant};

fn is_clean(scenario: &Scenario, expected_states: usize) {
    let Searched { states, found } = exhaust(scenario);
    println!("{scenario}: {states} states");
    if let Some(found) = found {
        for (step, action) in found.trace.iter().enumerate() {
            println!("{:3} {action:?}", step + 1);
        }
        let violation = violation(scenario, &found.state).expect("the search ended at a violation");
        panic!("{scenario}: {violation}");
    }
    assert_eq!(states, expected_states, "distinct states of {scenario}");
}

fn row(scenario: &Scenario, states: usize) -> String {
    format!("| {scenario} | {states} |")
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

/// One row before the Update, two at any moment.
fn one() -> Scenario {
    one_topic().stored(&[A]).commits(2, &[A])
}

/// The same for a topic that is added twice.
fn again() -> Scenario {
    added_again().stored(&[A]).commits(2, &[A])
}

/// Two topics with history on both, so that fairness has something to decide.
fn two() -> Scenario {
    two_topics().stored(&[A, A, B]).commits(2, &[A, B])
}

/// The same, the second topic added later.
fn later() -> Scenario {
    second_topic_later().stored(&[A, A, B]).commits(2, &[A, B])
}

/// A cursor above the head, and an Update that removes one topic and adds another.
fn above() -> Scenario {
    cursor_above_the_head().stored(&[A, B]).commits(2, &[A, B])
}

instances! {
    // One topic.
    one_more_commits: one_topic().stored(&[A]).commits(5, &[A]), 30_663;
    one_crashes_hibernations: one().crashes(2).hibernations(2), 135_690;
    one_crashes_time_out: one().crashes(2).time_outs(1), 104_347;
    one_crashes_hibernations_loss: one().crashes(2).hibernations(2).losses(1), 198_561;
    one_crash_time_out_hibernation: one().crashes(1).time_outs(1).hibernations(1), 194_871;
    one_crash_time_out_repeat: one().crashes(1).time_outs(1).repeats(1), 197_267;
    one_crash_time_out_repeat_loss: one().crashes(1).time_outs(1).repeats(1).losses(1), 321_854;
    one_crash_repeat_hibernation: one().crashes(1).repeats(1).hibernations(1), 112_967;
    one_crash_overflow_hibernation: one().crashes(1).overflows(1).hibernations(1), 36_097;
    one_crash_overflow_time_out: one().crashes(1).overflows(1).time_outs(1), 70_841;
    one_hibernations_repeat: one().hibernations(2).repeats(1), 50_978;
    one_hibernations_time_out: one().hibernations(2).time_outs(1), 85_122;
    one_hibernation_time_out_repeat: one().hibernations(1).time_outs(1).repeats(1), 243_128;
    one_time_outs_repeat: one().time_outs(2).repeats(1), 246_247;
    one_time_out_repeats: one().time_outs(1).repeats(2), 119_537;
    one_more_commits_crash_hibernation:
        one_topic().stored(&[A]).commits(3, &[A]).crashes(1).hibernations(1), 102_295;
    one_more_commits_crash_time_out:
        one_topic().stored(&[A]).commits(3, &[A]).crashes(1).time_outs(1), 208_072;

    // Added, removed, added again.
    again_faultless: again(), 3_504;
    again_more_commits_repeat: added_again().stored(&[A]).commits(3, &[A]).repeats(1), 104_178;
    again_time_outs: again().time_outs(2), 159_783;
    again_crash_time_out: again().crashes(1).time_outs(1), 131_037;
    again_crash_time_out_repeat: again().crashes(1).time_outs(1).repeats(1), 777_486;
    again_crash_hibernation: again().crashes(1).hibernations(1), 73_735;
    again_crash_repeat: again().crashes(1).repeats(1), 77_774;
    again_crash_repeat_loss: again().crashes(1).repeats(1).losses(1), 139_753;
    again_crash_overflow: again().crashes(1).overflows(1), 33_170;
    again_hibernations_repeat: again().hibernations(2).repeats(1), 200_419;
    again_hibernation_time_out: again().hibernations(1).time_outs(1), 143_335;
    again_repeat_time_out: again().repeats(1).time_outs(1), 159_553;
    further_crash_repeat:
        added_again_further_on().stored(&[A]).commits(2, &[A]).crashes(1).repeats(1), 50_738;
    further_hibernation_time_out:
        added_again_further_on().stored(&[A]).commits(2, &[A]).hibernations(1).time_outs(1), 86_852;

    // A cursor above the head, and an Update that removes one topic and adds another.
    above_crash: above().crashes(1), 81_445;
    above_time_out: above().time_outs(1), 180_547;
    above_apart_crash_hibernation:
        cursor_above_the_head().two_partitions().stored(&[A]).commits(2, &[A]).crashes(1).hibernations(1), 95_596;
    above_apart_hibernation_time_out:
        cursor_above_the_head().two_partitions().stored(&[A]).commits(2, &[A]).hibernations(1).time_outs(1), 124_374;

    // Two topics by one Update, of one partition and of two.
    two_crash_hibernation: two().crashes(1).hibernations(1), 226_495;
    two_crash_time_out: two().crashes(1).time_outs(1), 726_234;
    two_crash_overflow: two().crashes(1).overflows(1), 105_488;
    two_crashes_overflow: two_topics().commits(2, &[A, B]).crashes(2).overflows(1), 50_928;
    two_time_out: two().time_outs(1), 125_275;
    two_repeat: two().repeats(1), 65_446;
    two_apart_crash_loss:
        two_topics().two_partitions().stored(&[A, B]).commits(2, &[A, B]).crashes(1).losses(1), 193_934;
    two_apart_hibernation: two().two_partitions().hibernations(1), 110_306;
    two_apart_time_out:
        two_topics().two_partitions().stored(&[A, B]).commits(2, &[A, B]).time_outs(1), 143_109;

    // The second topic by a later Update.
    later_crash: later().crashes(1), 123_927;
    later_hibernation: later().hibernations(1), 93_633;
    later_time_out: later().time_outs(1), 322_078;
    later_overflow_repeat: later().overflows(1).repeats(1), 432_700;
    later_apart_crash: later().two_partitions().crashes(1), 253_420;
    later_apart_hibernation: later().two_partitions().hibernations(1), 264_013;
    later_apart_time_out: later().two_partitions().time_outs(1), 405_245;
    later_apart_repeat_loss: later().two_partitions().repeats(1).losses(1), 397_905;

    // Variants that the protocol could choose.
    no_removes_crash_repeat: again().variant(Variant::NoRemoves).crashes(1).repeats(1), 47_828;
    no_removes_hibernation_time_out:
        again().variant(Variant::NoRemoves).hibernations(1).time_outs(1), 95_295;
    number_forgotten_crash_repeat: again().variant(Variant::NumberForgotten).crashes(1).repeats(1), 107_589;
    number_forgotten_time_out_repeat:
        again().variant(Variant::NumberForgotten).time_outs(1).repeats(1), 245_669;
    number_forgotten_hibernation_time_out:
        again().variant(Variant::NumberForgotten).hibernations(1).time_outs(1), 185_964;
    number_forgotten_above_time_out: above().variant(Variant::NumberForgotten).time_outs(1), 221_898;
    number_forgotten_above_apart_crash:
        above().two_partitions().variant(Variant::NumberForgotten).crashes(1), 280_640;
    hints_grow_two_crashes_overflow:
        two_topics().commits(2, &[A, B]).variant(Variant::HintGrows).crashes(2).overflows(1), 51_912;
    hints_grow_one_crash_overflow_time_out:
        one().variant(Variant::HintGrows).crashes(1).overflows(1).time_outs(1), 76_037;

    // The same verdict without the reduction by inert messages.
    all_messages_one_crash_repeat_loss: one().crashes(1).repeats(1).losses(1).keeps_inert(), 179_556;
    all_messages_one_hibernations_repeat: one().hibernations(2).repeats(1).keeps_inert(), 113_140;
    all_messages_again: again().keeps_inert(), 12_719;
    all_messages_again_time_out:
        added_again().stored(&[A]).commits(1, &[A]).time_outs(1).keeps_inert(), 20_238;
    all_messages_two_crash: two().crashes(1).keeps_inert(), 68_343;

    // Over a million states.
    #[ignore = "soak: over a million states"]
    soak_one_crashes_time_outs_hibernation: one().crashes(2).time_outs(2).hibernations(1), 5_306_595;
    #[ignore = "soak: over a million states"]
    soak_one_crash_time_out_repeat_hibernation:
        one().crashes(1).time_outs(1).repeats(1).hibernations(1), 1_380_316;
    #[ignore = "soak: over a million states"]
    soak_again_crash_time_out_hibernation_overflow:
        again().crashes(1).time_outs(1).hibernations(1).overflows(1), 1_755_772;
    #[ignore = "soak: over a million states"]
    soak_two_apart_crash_hibernation:
        two_topics().two_partitions().stored(&[A, B]).commits(2, &[A, B]).crashes(1).hibernations(1), 1_033_069;
    #[ignore = "soak: over a million states"]
    soak_later_apart_crash_hibernation: later().two_partitions().crashes(1).hibernations(1), 2_671_510;
    #[ignore = "soak: over a million states"]
    soak_number_forgotten_above_apart_crash_repeat:
        above().two_partitions().variant(Variant::NumberForgotten).crashes(1).repeats(1), 2_620_904;
    #[ignore = "soak: over a million states"]
    soak_all_messages_again_crash_time_out: again().crashes(1).time_outs(1).keeps_inert(), 3_001_833;
}

#[test]
fn the_decision_page_has_these_numbers() {
    let page = include_str!("../../../docs/decisions/0011-stream-model.md");
    let missing: Vec<String> = rows().into_iter().filter(|row| !page.contains(row.as_str())).collect();
    assert!(
        missing.is_empty(),
        "docs/decisions/0011-stream-model.md lacks these rows:\n{}",
        missing.join("\n")
    );
}
