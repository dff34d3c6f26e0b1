//! Schema versions. An object loads what its storage says and never assumes that it is new.

use std::ops::ControlFlow;

use crate::{Fault, Param, Sql};

/// One step of a schema. Versions rise by one, from 1; a step that has shipped is never edited.
#[derive(Debug)]
pub struct Migration {
    /// Its number.
    pub version: i64,
    /// Its statements, run in order in one transaction.
    pub statements: &'static [&'static str],
}

const CREATE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY) STRICT";

/// Brings the schema to the newest version. A schema that is newer than the code is refused: a rollback of a deploy
/// must not write rows that it does not understand.
pub fn migrate(sql: &dyn Sql, migrations: &[Migration]) -> Result<(), Fault> {
    let exists = sql
        .first("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'", &[])?
        .is_some();
    let mut current = 0;
    if exists {
        sql.query("SELECT max(version) FROM schema_migrations", &[], &mut |row| {
            current = row[0].integer()?;
            Ok(ControlFlow::Break(()))
        })?;
    }
    let newest = migrations.last().map_or(0, |migration| migration.version);
    Fault::assert(current <= newest, "the stored schema is not newer than the code")?;
    if current == newest {
        return Ok(());
    }
    sql.transaction(&mut || {
        sql.run(CREATE, &[])?;
        for migration in migrations.iter().filter(|migration| migration.version > current) {
            for statement in migration.statements {
                sql.run(statement, &[])?;
            }
            sql.run(
                "INSERT INTO schema_migrations (version) VALUES (?)",
                &[Param::Integer(migration.version)],
            )?;
        }
        Ok(())
    })
}
