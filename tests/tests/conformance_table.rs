//! docs/conformance.md is up to date, and no requirement is without a test or a reason.

use std::path::Path;

use sealog_tests::contract::{PAGE, problems, render, scan};

#[test]
fn the_conformance_page_is_complete_and_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository");
    let found = scan(root).expect("the sources are readable");
    assert_eq!(problems(&found), Vec::<String>::new());
    let committed = std::fs::read_to_string(root.join(PAGE)).expect("docs/conformance.md exists");
    assert!(
        committed == render(&found),
        "{PAGE} is out of date: run `cargo run -p sealog-tests --bin conformance_table`"
    );
}
