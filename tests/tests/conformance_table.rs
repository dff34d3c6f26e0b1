//! docs/conformance.md is up to date, and no requirement is without a test or a reason; docs/admission-cases.md names tests
//! that are there.

use std::fs;
use std::path::{Path, PathBuf};

use sealog_tests::contract::{PAGE, problems, render, scan};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository").to_owned()
}

#[test]
fn the_conformance_page_is_complete_and_up_to_date() {
    let root = &root();
    let found = scan(root).expect("the sources are readable");
    assert_eq!(problems(&found), Vec::<String>::new());
    let committed = fs::read_to_string(root.join(PAGE)).expect("docs/conformance.md exists");
    assert!(
        committed == render(&found),
        "{PAGE} is out of date: run `cargo run -p sealog-tests --bin conformance_table`"
    );
}

/// Each row has files in backticks, and beside them words out of the names of tests in one of these files.
#[test]
fn the_table_of_admission_cases_names_tests_that_are_there() {
    let page = fs::read_to_string(root().join("docs/admission-cases.md")).expect("the page exists");
    let (mut files, mut names) = (0, 0);
    for row in page.lines().filter(|line| line.starts_with("| ") && line.ends_with(" |")) {
        let proven_by = row.trim_end_matches(" |").rsplit(" | ").next().expect("a last column");
        let mut sources = String::new();
        for path in proven_by.split('`').skip(1).step_by(2) {
            let places = ["admission/tests", "tests/tests", "."].map(|base| root().join(base).join(path));
            let place = places.iter().find(|place| place.exists());
            sources +=
                &fs::read_to_string(place.unwrap_or_else(|| panic!("{path} is not there: {row}"))).unwrap();
            files += 1;
        }
        let words =
            proven_by.split('`').step_by(2).flat_map(|text| text.split([' ', ',', ':', ';', '(', ')']));
        for name in words.filter(|word| word.contains('_')) {
            let mut functions = sources.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
            assert!(functions.any(|(function, _)| function.contains(name)), "no test {name}: {row}");
            names += 1;
        }
    }
    assert!(files > 60 && names > 30, "only {files} files and {names} names were found");
}
