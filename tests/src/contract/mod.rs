//! The contract's requirement ids, and the page that says which test proves which (docs/conformance.md).

mod ids;
mod scan;

pub use ids::{REQUIREMENTS, Requirement};
pub use scan::{Found, Test, scan};

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Where the page is, from the root of the repository.
pub const PAGE: &str = "docs/conformance.md";

const HEAD: &str = "# Conformance

Which test proves which requirement of the API contract. Generated from the names of the tests by
`cargo run -p sealog-tests --bin conformance_table`; a test fails when this page is out of date, or when an id has
neither an end-to-end test nor a reason.

End to end means: against the built worker in a real workerd. The other tests prove their part on one crate alone.

| Id | What | End to end | On a crate |
| --- | --- | --- | --- |
";

/// Everything that is wrong with the table, in words: nothing, when every id has an end-to-end test or a reason.
pub fn problems(found: &Found) -> Vec<String> {
    let mut problems = Vec::new();
    for requirement in REQUIREMENTS {
        let id = requirement.id;
        let is_proven = found.get(&id).is_some_and(|tests| tests.iter().any(Test::is_end_to_end));
        match (is_proven, requirement.reason) {
            (false, None) => {
                problems
                    .push(format!("API-{id} has no end-to-end test: write one, or say why not in ids.rs"));
            }
            (true, Some(_)) => {
                problems.push(format!("API-{id} has an end-to-end test: take its reason out of ids.rs"));
            }
            (true, None) | (false, Some(_)) => {}
        }
    }
    for (id, tests) in found {
        if !REQUIREMENTS.iter().any(|requirement| requirement.id == *id) {
            problems.push(format!("API-{id} is no id of the contract, but stands in {}", list(tests)));
        }
    }
    problems
}

/// The page as it should be.
///
/// # Panics
/// Never: writing to a string does not fail.
pub fn render(found: &Found) -> String {
    let mut page = String::from(HEAD);
    let mut proven = 0;
    for Requirement { id, what, reason } in REQUIREMENTS {
        let tests = found.get(id).map_or(&[][..], Vec::as_slice);
        let (end_to_end, unit): (Vec<Test>, Vec<Test>) = tests.iter().cloned().partition(Test::is_end_to_end);
        proven += usize::from(!end_to_end.is_empty());
        let end_to_end = match reason {
            Some(reason) => format!("none: {reason}"),
            None => list(&end_to_end),
        };
        writeln!(page, "| API-{id} | {what} | {end_to_end} | {} |", list(&unit)).expect("a string takes it");
    }
    let total = REQUIREMENTS.len();
    writeln!(page, "\n{proven} of {total} ids have end-to-end tests.").expect("a string takes it");
    page
}

/// Tests in one cell of the table, file by file.
fn list(tests: &[Test]) -> String {
    let mut files = BTreeMap::<&str, Vec<&str>>::new();
    for test in tests {
        files.entry(&test.file).or_default().push(&test.name);
    }
    let cells =
        files.iter().map(|(file, names)| format!("`{file}`: {}", names.join(", ").replace('|', "\\|")));
    cells.collect::<Vec<_>>().join("<br>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_without_test_and_reason_is_a_problem() {
        let problems = problems(&Found::new());
        assert!(problems.iter().any(|line| line.contains("API-240 has no end-to-end test")));
    }

    #[test]
    fn an_unknown_id_and_a_stale_reason_are_problems() {
        let at = |file: &str| vec![Test { file: file.to_owned(), name: "x".to_owned() }];
        let found = Found::from([(999, at("tests/tests/x.rs")), (292, at("tests/clients/x.js"))]);
        let problems = problems(&found);
        assert!(problems.iter().any(|line| line.contains("API-999 is no id")));
        assert!(problems.iter().any(|line| line.contains("API-292 has an end-to-end test")));
    }

    #[test]
    fn a_test_on_a_crate_alone_is_listed_and_proves_nothing_end_to_end() {
        let unit = Test { file: "log/tests/read.rs".to_owned(), name: "api_240_rows".to_owned() };
        let found = Found::from([(240, vec![unit])]);
        assert!(problems(&found).iter().any(|line| line.contains("API-240 has no end-to-end test")));
        assert!(render(&found).contains("| API-240 | a page lies above the cursors, without holes |  | `log/tests/read.rs`: api_240_rows |"));
    }
}
