//! Writes docs/conformance.md: which test proves which requirement.

use std::path::Path;

use anyhow::{Context as _, bail};
use sealog_tests::contract::{PAGE, problems, render, scan};

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate lies in the repository")?;
    let found = scan(root)?;
    let page = root.join(PAGE);
    std::fs::write(&page, render(&found)).with_context(|| format!("cannot write {}", page.display()))?;
    println!("wrote {PAGE}");
    let problems = problems(&found);
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}
