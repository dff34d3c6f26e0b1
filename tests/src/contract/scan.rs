//! Finds the tests that name a requirement: in a Rust test's name or doc comment, or in the title of a Node test.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// One test that names a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The file, from the root of the repository.
    pub file: String,
    /// The function's name, or the title.
    pub name: String,
}

impl Test {
    /// Whether it talks to the built backend in a real workerd; else it proves its part on a crate alone.
    pub fn is_end_to_end(&self) -> bool {
        END_TO_END.iter().any(|folder| self.file.starts_with(folder))
    }
}

/// Requirement number → the tests that name it.
pub type Found = BTreeMap<u16, Vec<Test>>;

/// The folders whose suites run against workerd.
const END_TO_END: &[&str] = &["tests/tests/", "tests/clients/"];

/// The folders that hold suites.
const SUITES: &[&str] = &["proto", "admission", "log", "durable-objects", "worker", "tests"];

/// Scans the repository at `root`.
pub fn scan(root: &Path) -> anyhow::Result<Found> {
    let mut found = Found::new();
    for suite in SUITES {
        visit(root, &root.join(suite), &mut found)?;
    }
    Ok(found)
}

fn visit(root: &Path, folder: &Path, found: &mut Found) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !matches!(name, "target" | "node_modules") {
                visit(root, &path, found)?;
            }
            continue;
        }
        let tests = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => rust_tests(&fs::read_to_string(&path)?),
            Some("js" | "mjs" | "ts") => node_tests(&fs::read_to_string(&path)?),
            _ => continue,
        };
        let file = path.strip_prefix(root)?.display().to_string();
        for (test, ids) in tests {
            for id in ids {
                found.entry(id).or_default().push(Test { file: file.clone(), name: test.clone() });
            }
        }
    }
    Ok(())
}

/// The tests of a Rust file that name ids.
fn rust_tests(source: &str) -> Vec<(String, Vec<u16>)> {
    let mut tests = Vec::new();
    let (mut is_test, mut documented) = (false, Vec::new());
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= line.contains("test]") || line.contains("::test(");
        } else if line.starts_with("///") {
            documented.extend(ids_after(line, "API-"));
        } else {
            if let Some(name) = function_name(line).filter(|_| is_test) {
                let mut ids = ids_after(name, "api_");
                ids.append(&mut documented);
                ids.sort_unstable();
                ids.dedup();
                if !ids.is_empty() {
                    tests.push((name.to_owned(), ids));
                }
            }
            (is_test, documented) = (false, Vec::new());
        }
    }
    tests
}

/// The tests of a Node file whose titles name ids.
fn node_tests(source: &str) -> Vec<(String, Vec<u16>)> {
    let titles = source.lines().map(str::trim).filter_map(|line| {
        let call = ["test(", "it("].iter().find_map(|call| line.strip_prefix(call))?;
        let quote = call.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
        call[1..].split(quote).next()
    });
    // A title that holds the name of the client under test stands for one test per client.
    let named = titles.map(|title| (title.replace("${name}", "each client"), ids_after(title, "API-")));
    named.filter(|(_, ids)| !ids.is_empty()).collect()
}

fn function_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

/// The three-digit numbers behind each `mark`, also several in a row: `api_201_289_…`, `API-240, 241`.
fn ids_after(text: &str, mark: &str) -> Vec<u16> {
    let mut ids = Vec::new();
    for part in text.split(mark).skip(1) {
        let numbers = part.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
        let mut rest = part;
        for number in numbers {
            let at = rest.find(number).expect("it was split out of this");
            let only_separators = rest[..at].chars().all(|c| matches!(c, '_' | ',' | ' '));
            let Some(id) = number.parse().ok().filter(|_| number.len() == 3 && only_separators) else {
                break;
            };
            ids.push(id);
            rest = &rest[at + number.len()..];
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_tests_are_found_by_name_and_by_doc_comment() {
        // The margin keeps this text from being found when this file itself is scanned.
        let source = "
            |/// Proves API-222 as well.
            |#[tokio::test]
            |async fn api_201_289_order_holds_for_1000_rounds() {}
            |
            |/// API-999 in front of something that is no test.
            |fn helper() {}
            |#[test]
            |fn nothing_named() {}"
            .replace('|', "");
        let name = "api_201_289_order_holds_for_1000_rounds".to_owned();
        assert_eq!(rust_tests(&source), [(name, vec![201, 222, 289])]);
    }

    #[test]
    fn node_tests_are_found_by_title() {
        let source = "test(\"API-240, 241: pages\", async () => {});\n// API-999\nit('no id', f)";
        assert_eq!(node_tests(source), [("API-240, 241: pages".to_owned(), vec![240, 241])]);
    }
}
