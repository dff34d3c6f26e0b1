//! Reads from `wrangler.toml` what a local workerd needs, so that there is one place to say it.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::root;

/// What `wrangler.toml` says of the worker and of its objects.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the deployment.
    pub name: String,
    /// The date whose platform behaviour the worker was tested with.
    pub compatibility_date: String,
    /// The Durable Object classes.
    pub objects: Vec<ObjectBinding>,
    /// The vars, each a text.
    pub vars: BTreeMap<String, String>,
}

/// One Durable Object class and the name by which the worker reaches it.
#[derive(Clone, Debug, Deserialize)]
pub struct ObjectBinding {
    /// The name in the worker's environment.
    pub name: String,
    /// The class that the entry module exports.
    pub class_name: String,
}

#[derive(Deserialize)]
struct File {
    name: String,
    compatibility_date: String,
    durable_objects: DurableObjects,
    migrations: Vec<Migration>,
    #[serde(default)]
    vars: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct DurableObjects {
    bindings: Vec<ObjectBinding>,
}

#[derive(Deserialize)]
struct Migration {
    #[serde(default)]
    new_sqlite_classes: Vec<String>,
}

impl Settings {
    /// Reads the `wrangler.toml` of the repository; of its environments, the unnamed one.
    pub fn load() -> Result<Self> {
        let path = root().join("wrangler.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Self::parse(&text).context("wrangler.toml")
    }

    fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text)?;
        for object in &file.durable_objects.bindings {
            ensure!(
                file.migrations.iter().any(|m| m.new_sqlite_classes.contains(&object.class_name)),
                "no migration creates class {} with SQLite storage: add it to new_sqlite_classes",
                object.class_name
            );
        }
        Ok(Self {
            name: file.name,
            compatibility_date: file.compatibility_date,
            objects: file.durable_objects.bindings,
            vars: file.vars,
        })
    }

    /// Takes a setting of the form `NAME=VALUE`, over what the file says.
    pub fn set(&mut self, assignment: &str) -> Result<()> {
        match assignment.split_once('=') {
            Some((name, value)) if is_name(name) => {
                self.vars.insert(name.to_owned(), value.to_owned());
                Ok(())
            }
            _ => bail!("{assignment:?} is no setting: write NAME=VALUE, for example LOG_PARTITIONS=8"),
        }
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_file_is_read() {
        let settings = Settings::load().unwrap();
        assert_eq!(settings.name, "sealog");
        let bindings: Vec<_> =
            settings.objects.iter().map(|o| (o.name.as_str(), o.class_name.as_str())).collect();
        let expected = [
            ("SEQUENCER", "Sequencer"),
            ("LOG_PARTITION", "LogPartition"),
            ("DIRECTORY", "Directory"),
            ("SESSION", "Session"),
        ];
        assert_eq!(bindings, expected);
        assert_eq!(settings.vars["LOG_PARTITIONS"], "1");
    }

    #[test]
    fn a_class_without_its_migration_is_refused() {
        let text = r#"
            name = "x"
            compatibility_date = "2026-04-01"
            migrations = [{ tag = "v1", new_sqlite_classes = ["A"] }]
            durable_objects.bindings = [{ name = "B", class_name = "B" }]
        "#;
        let error = format!("{:#}", Settings::parse(text).unwrap_err());
        assert!(error.contains("new_sqlite_classes"), "{error}");
    }

    #[test]
    fn a_setting_is_a_name_and_a_value() {
        let mut settings = Settings::load().unwrap();
        settings.set("LOG_PARTITIONS=8").unwrap();
        settings.set("STATUS_TOKEN=a=b").unwrap();
        assert_eq!(settings.vars["LOG_PARTITIONS"], "8");
        assert_eq!(settings.vars["STATUS_TOKEN"], "a=b");
        for bad in ["LOG_PARTITIONS", "=8", "log=8", "8=A"] {
            assert!(settings.set(bad).is_err(), "{bad}");
        }
    }
}
