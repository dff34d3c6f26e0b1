//! SQLite in the process itself: the storage of the tests and the simulator.

use std::ops::ControlFlow;

use bytes::Bytes;
use rusqlite::{Connection, ToSql, types::ToSqlOutput, types::Value as Owned, types::ValueRef};

use crate::{Each, Fault, Param, Sql, SqlError, Value};

/// A database in memory.
#[derive(Debug)]
pub struct Native {
    connection: Connection,
}

impl Native {
    /// An empty database.
    ///
    /// # Panics
    /// When SQLite cannot open one.
    pub fn new() -> Self {
        Self { connection: Connection::open_in_memory().expect("SQLite opens a database in memory") }
    }
}

impl Default for Native {
    fn default() -> Self {
        Self::new()
    }
}

impl Sql for Native {
    fn query(&self, statement: &str, params: &[Param<'_>], each: Each<'_>) -> Result<(), SqlError> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(failed)?;
        let columns = prepared.column_count();
        let mut rows = prepared.query(rusqlite::params_from_iter(params)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let values = (0..columns)
                .map(|column| match row.get_ref(column).map_err(failed)? {
                    ValueRef::Null => Ok(Value::Null),
                    ValueRef::Integer(value) => Ok(Value::Integer(value)),
                    ValueRef::Blob(bytes) => Ok(Value::Blob(Bytes::copy_from_slice(bytes))),
                    other => Err(SqlError(format!("no column of this schema is {}", other.data_type()))),
                })
                .collect::<Result<Vec<_>, _>>()?;
            if let ControlFlow::Break(()) = each(&values)? {
                break;
            }
        }
        Ok(())
    }

    fn transaction(&self, body: &mut dyn FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
        self.run("BEGIN", &[])?;
        match body() {
            Ok(()) => Ok(self.run("COMMIT", &[])?),
            Err(fault) => {
                self.run("ROLLBACK", &[])?;
                Err(fault)
            }
        }
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Owned::Null),
            Self::Integer(value) => ToSqlOutput::Owned(Owned::Integer(*value)),
            Self::Blob(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

#[allow(clippy::needless_pass_by_value)] // the shape that map_err wants
fn failed(error: rusqlite::Error) -> SqlError {
    SqlError(error.to_string())
}
