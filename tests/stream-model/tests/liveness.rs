//! Pings and output: settings of which every state is visited, and mutations, each of which must be caught by a shortest
//! trace of the length named here. The decision page has the same tables.

use sealog_stream_model::check::{Searched, exhaust};
use sealog_stream_model::liveness::{Broken, Mutation, Setting};

fn is_clean(setting: Setting, expected_states: usize) {
    let Searched { states, found } = exhaust(&setting);
    println!("{setting}: {states} states");
    if let Some(found) = found {
        panic!("{setting}: {:?} by {:#?}", found.state.broken, found.trace);
    }
    assert_eq!(states, expected_states, "distinct states of {setting}");
}

/// Makes one test of each setting.
macro_rules! settings {
    ($($name:ident: $setting:expr, $states:literal;)*) => {
        $(
            #[test]
            fn $name() {
                is_clean($setting, $states);
            }
        )*

        fn setting_rows() -> Vec<String> {
            vec![$(format!("| {} | {} |", $setting, $states)),*]
        }
    };
}

settings! {
    prompt_little: Setting::prompt(2, 6, 2), 21_128;
    prompt_fast: Setting::prompt(4, 8, 3), 45_742;
    prompt_much: Setting::prompt(8, 12, 1), 23_020;
    slow_little: Setting::slow(2, 6, 2), 246_894;
    slow_fast: Setting::slow(4, 8, 3), 595_718;
    slow_much: Setting::slow(8, 12, 1), 334_354;
}

/// Not caught, and hence not a hole: an honest client has no other nonce.
#[test]
fn any_nonce_is_harmless() {
    is_clean(Setting::slow(2, 6, 2).mutated(Mutation::AnyNonce), 246_894);
}

/// One row of the table of mutations.
struct Case {
    name: &'static str,
    setting: Setting,
    breaks: Broken,
    steps: usize,
}

impl Case {
    fn is_caught(&self) {
        let searched = exhaust(&self.setting);
        let found = searched.found.unwrap_or_else(|| panic!("{} is not caught", self.name));
        let broken = found.state.broken;
        println!("{}: {broken:?} after {} steps of {}", self.name, found.trace.len(), self.setting);
        for (step, action) in found.trace.iter().enumerate() {
            println!("{:3} {action:?}", step + 1);
        }
        assert_eq!(broken, Some(self.breaks));
        assert_eq!(found.trace.len(), self.steps, "a shortest trace");
    }

    fn row(&self) -> String {
        format!("| {} | {} | {} | {} |", self.name.replace('_', " "), self.breaks, self.setting, self.steps)
    }
}

/// Makes one test of each row.
macro_rules! mutations {
    ($($name:ident: $mutation:ident, $setting:expr, $breaks:expr, $steps:literal;)*) => {
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
                setting: $setting.mutated(Mutation::$mutation),
                breaks: $breaks,
                steps: $steps,
            }),*]
        }
    };
}

mutations! {
    ping_only_when_idle: PingOnlyWhenIdle, Setting::prompt(8, 12, 1), Broken::DeadClientUnnoticed, 20;
    pong_credits_all: PongCreditsAll, Setting::slow(2, 6, 2), Broken::OutputUnbounded, 16;
    no_second_look: NoSecondLook, Setting::slow(2, 6, 2), Broken::LiveClientFailed, 17;
    idle_time_not_looked_at: IdleNotLookedAt, Setting::slow(2, 6, 2), Broken::KeepaliveLate, 11;
    output_not_looked_at: OutputNotLookedAt, Setting::prompt(2, 6, 2), Broken::OutputStuck, 8;
    fixed_alarm: FixedAlarm, Setting::prompt(2, 6, 2), Broken::KeepaliveLate, 13;
    no_bound: NoBound, Setting::slow(2, 6, 2), Broken::OutputUnbounded, 10;
    two_pings: TwoPings, Setting::prompt(2, 6, 2), Broken::TwoPings, 6;
}

#[test]
fn the_decision_page_has_these_tables() {
    let page = include_str!("../../../docs/decisions/0011-stream-model.md");
    let rows: Vec<String> = cases().iter().map(Case::row).collect();
    let settings = setting_rows();
    let missing: Vec<&String> =
        rows.iter().chain(&settings).filter(|row| !page.contains(row.as_str())).collect();
    let listed = page.lines().filter(|line| line.matches('|').count() == 5).count();
    assert!(missing.is_empty(), "docs/decisions/0011-stream-model.md lacks these rows: {missing:#?}");
    assert_eq!(listed, rows.len() + 2, "rows of the page, with the two of its head");
}
