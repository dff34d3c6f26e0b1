//! Every mutation must be caught: the model finds a violation, the one named here, by a shortest trace of the length
//! named here. The table of the decision page is this one.

use sealog_stream_model::Invariant::{Api252, Api253, Api254, Api261};
use sealog_stream_model::Violation::{Broken, Stuck};
use sealog_stream_model::check::{exhaust, violation};
use sealog_stream_model::instances::{
    added_again, added_again_further_on, one_topic, second_topic_later, two_topics,
};
use sealog_stream_model::names::Topic::{A, B};
use sealog_stream_model::{Mutation, Scenario, Stuck as Never, Violation};

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
        let searched = exhaust(&self.scenario);
        let found = searched.found.unwrap_or_else(|| panic!("{} is not caught", self.name));
        let violation = violation(&self.scenario, &found.state).expect("the search ended at a violation");
        println!("{}: {violation} after {} steps of {}", self.name, found.trace.len(), self.scenario);
        for (step, action) in found.trace.iter().enumerate() {
            println!("{:3} {action:?}", step + 1);
        }
        assert_eq!(violation, self.breaks);
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

/// One row, at any moment.
fn one() -> Scenario {
    one_topic().commits(1, &[A])
}

// Where the harm is something that must never be sent, progress is not tested, so that the trace leads to the harm
// itself; otherwise it leads to a state from which what must come never does.
mutations! {
    // Registering.
    target_before_watch: TargetBeforeWatch, "5", one(), Stuck(Never::Undelivered), 3;
    push_delivered_before_applied: PushDeliveredBeforeApplied, "13", one().safety_only(), Broken(Api252), 5;
    push_dropped_before_applied: PushDroppedBeforeApplied, "13", one(), Stuck(Never::Undelivered), 5;
    known_overwritten_by_target: KnownOverwrittenByTarget, "12", one(), Stuck(Never::Undelivered), 5;
    control_unordered: ControlUnordered, "4", added_again().commits(1, &[A]).time_outs(1), Stuck(Never::Undelivered), 8;
    control_numbers_restart: ControlNumbersRestart, "2, 3",
        added_again_further_on().hibernations(1), Stuck(Never::Unapplied), 8;
    reply_to_an_older_control: ReplyToOlderControl, "3",
        added_again().commits(1, &[A]).repeats(1).safety_only(), Broken(Api252), 7;
    registering_unwanted: RegisteringUnwanted, "13", one(), Stuck(Never::Undelivered), 5;
    registered_again: RegisteredAgain, "12", second_topic_later().safety_only(), Broken(Api253), 6;
    unwanted_without_generation: UnwantedWithoutGeneration, "10",
        added_again().commits(2, &[A]), Stuck(Never::Undelivered), 12;

    // Delivering.
    overlapping_push_dropped: OverlappingPushDropped, "13",
        one_topic().commits(2, &[A]), Stuck(Never::Undelivered), 7;
    no_position_test: NoPositionTest, "13", one_topic().commits(2, &[A]).safety_only(), Broken(Api254), 7;
    page_of_an_earlier_registration: PageOfEarlierRegistration, "14",
        added_again().stored(&[A]).safety_only(), Broken(Api252), 8;
    page_end_is_head: PageEndIsHead, "14", one_topic().stored(&[A]).commits(2, &[A]), Stuck(Never::Undelivered), 7;
    behind_not_marked: BehindNotMarked, "13",
        one_topic().commits(2, &[A]).time_outs(1), Stuck(Never::Undelivered), 8;
    push_into_history: PushIntoHistory, "13",
        two_topics().stored(&[B, B]).commits(2, &[A]).time_outs(1).safety_only(), Broken(Api261), 12;
    hint_taken_for_rows: HintTakenForRows, "6, 13", one().overflows(1), Stuck(Never::Undelivered), 4;
    dropped_page_forgotten: DroppedPageForgotten, "16",
        second_topic_later().stored(&[A, A, B]), Stuck(Never::Undelivered), 7;
    fairness_only_when_pulling: FairnessOnlyWhenPulling, "16",
        second_topic_later().stored(&[A, A, B]).safety_only(), Broken(Api261), 12;
    no_fairness: NoFairness, "16", two_topics().stored(&[A, A, B]).safety_only(), Broken(Api261), 9;

    // Owing.
    push_not_retried: PushNotRetried, "7", one().time_outs(1), Stuck(Never::Undelivered), 5;
    time_out_means_gone: TimeOutMeansGone, "10", one().time_outs(1), Stuck(Never::Undelivered), 5;
    no_mark: NoMark, "8", one().crashes(1), Stuck(Never::Undelivered), 4;
    mark_when_sent: MarkWhenSent, "8", two_topics().commits(2, &[A, B]).crashes(1), Stuck(Never::Undelivered), 7;
    hint_releases_mark: HintReleasesMark, "8",
        two_topics().commits(2, &[A, B]).crashes(1).overflows(1), Stuck(Never::Undelivered), 6;
    mark_while_not_loaded: MarkWhileNotLoaded, "8",
        one().crashes(1), Stuck(Never::Undelivered), 4;
    mark_while_owed: MarkWhileOwed, "8", one().crashes(1), Stuck(Never::Undelivered), 5;
    no_alarm: NoAlarm, "7", one().crashes(1), Stuck(Never::Undelivered), 4;
    watches_in_memory: WatchesInMemory, "5", one().crashes(1), Stuck(Never::Undelivered), 4;
    incarnation_not_stored: IncarnationNotStored, "6",
        one_topic().commits(2, &[A]).crashes(1), Stuck(Never::Undelivered), 11;
    answer_by_number_alone: AnswerByNumberAlone, "6",
        one_topic().commits(2, &[A]).crashes(1), Stuck(Never::Undelivered), 11;

    // Sleeping.
    behind_lost: BehindLost, "19", one_topic().stored(&[A]).hibernations(1), Stuck(Never::Undelivered), 4;
    sync_without_heads: SyncWithoutHeads, "20",
        one_topic().stored(&[A]).hibernations(1), Stuck(Never::Undelivered), 4;
    answer_to_an_older_sync: AnswerToOlderSync, "3, 20",
        one_topic().stored(&[A]).commits(1, &[A]).repeats(1).hibernations(2), Stuck(Never::Undelivered), 10;
    positions_lost: PositionsLost, "2, 19",
        one_topic().stored(&[A, A]).hibernations(1).safety_only(), Broken(Api254), 13;
    resumed_while_busy: ResumedWhileBusy, "19", one().losses(1), Stuck(Never::Unapplied), 2;
}

/// Order needs no generations: a push is a fact about the log.
#[test]
fn generation_of_push_ignored_is_harmless() {
    let scenario = added_again().stored(&[A]).commits(2, &[A]).repeats(1);
    let searched = exhaust(&scenario.mutated(Mutation::GenerationOfPushIgnored));
    assert!(searched.found.is_none(), "{:?}", searched.found);
    assert_eq!(searched.states, 222_000);
}

#[test]
fn the_decision_page_has_this_table() {
    let page = include_str!("../../../docs/decisions/0011-stream-model.md");
    let rows: Vec<String> = cases().iter().map(Case::row).collect();
    let missing: Vec<&String> = rows.iter().filter(|row| !page.contains(row.as_str())).collect();
    let listed = page.lines().filter(|line| line.matches('|').count() == 6).count();
    assert!(missing.is_empty(), "docs/decisions/0011-stream-model.md lacks these rows: {missing:#?}");
    assert_eq!(listed, rows.len() + 2, "rows of the page, with the two of its head");
}
