//! Writes the configuration of a workerd that serves the built worker.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::settings::Settings;

/// The folder below the state directory that holds the objects' databases.
pub(crate) const OBJECTS: &str = "objects";

/// The configuration text: the modules of `build`, objects stored below `state`, HTTP on `port` of the loopback
/// (0 = a free one). Unlike on the platform, the worker also reaches private addresses: a chain's node may be
/// on this machine.
pub(crate) fn config(settings: &Settings, build: &Path, state: &Path, port: u16) -> Result<String> {
    let mut modules = String::new();
    for file in module_files(build)? {
        let kind = if file.extension().is_some_and(|e| e == "wasm") { "wasm" } else { "esModule" };
        let name = file.strip_prefix(build)?;
        writeln!(modules, "    (name = {}, {kind} = embed {}),", text(name), text(&file))?;
    }
    let (mut bindings, mut namespaces) = (String::new(), String::new());
    for object in &settings.objects {
        let class = quote(&object.class_name);
        let key = quote(&namespace(settings, &object.class_name));
        writeln!(bindings, "    (name = {}, durableObjectNamespace = {class}),", quote(&object.name))?;
        writeln!(namespaces, "    (className = {class}, uniqueKey = {key}, enableSql = true),")?;
    }
    for (name, value) in &settings.vars {
        writeln!(bindings, "    (name = {}, text = {}),", quote(name), quote(value))?;
    }
    Ok(format!(
        r#"using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "worker", worker = .worker),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
    (name = "objects", disk = (path = {objects}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:{port}", http = (), service = "worker")],
);

const worker :Workerd.Worker = (
  compatibilityDate = {date},
  modules = [
{modules}  ],
  bindings = [
{bindings}  ],
  durableObjectNamespaces = [
{namespaces}  ],
  durableObjectStorage = (localDisk = "objects"),
);
"#,
        objects = text(&state.join(OBJECTS)),
        date = quote(&settings.compatibility_date),
    ))
}

/// The folder of a class below [`OBJECTS`]. It must not change: the rows are where it says.
pub(crate) fn namespace(settings: &Settings, class: &str) -> String {
    format!("{}-{class}", settings.name)
}

/// The modules of a build, the entry first.
fn module_files(build: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![build.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("{} is not there: run `cargo xtask bundle`", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "js" || e == "wasm") {
                files.push(path);
            }
        }
    }
    files.sort_by_key(|file| (*file != build.join("index.js"), file.clone()));
    Ok(files)
}

fn text(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

/// A Cap'n Proto text literal.
fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\0'..='\x1f' => write!(quoted, "\\x{:02x}", u32::from(c)).expect("a String takes all text"),
            _ => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn text_is_escaped() {
        assert_eq!(quote("a\"b\\c\n\u{e9}"), "\"a\\\"b\\\\c\\x0a\u{e9}\"");
    }
}
