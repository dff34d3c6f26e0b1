//! Storage as the machines see it: SQLite, synchronous, one writer.
//!
//! The same statements run in a Durable Object and in the native SQLite of the tests. Integers travel through
//! JavaScript numbers there, which are exact up to 2^53 only: whatever may be larger is an 8-byte big-endian blob,
//! whose byte order is its numeric order.

use std::ops::ControlFlow;

use bytes::Bytes;

/// One parameter of a statement. At most 100 of them (a limit of Durable Objects).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    /// SQL NULL.
    Null,
    /// Below 2^53 in magnitude.
    Integer(i64),
    /// At most 2 MB (a limit of Durable Objects).
    Blob(&'a [u8]),
}

/// One column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// Below 2^53 in magnitude.
    Integer(i64),
    /// Binary data.
    Blob(Bytes),
}

/// A statement that failed, or a row that is not as the schema says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SqlError(pub String);

/// Takes one row; says whether it wants another.
pub type Each<'a> = &'a mut dyn FnMut(&[Value]) -> Result<ControlFlow<()>, SqlError>;

/// A database with one writer. Statements that run without an await in between are one atomic commit.
pub trait Sql {
    /// Runs one statement and hands its rows to `each`, as they come.
    fn query(&self, statement: &str, params: &[Param<'_>], each: Each<'_>) -> Result<(), SqlError>;

    /// Runs `body` in a transaction of its own: an error rolls back everything that it wrote.
    fn transaction(&self, body: &mut dyn FnMut() -> Result<(), crate::Fault>) -> Result<(), crate::Fault>;

    /// Runs one statement for its effect.
    fn run(&self, statement: &str, params: &[Param<'_>]) -> Result<(), SqlError> {
        self.query(statement, params, &mut |_| Ok(ControlFlow::Continue(())))
    }

    /// The first row of a result, if there is one.
    fn first(&self, statement: &str, params: &[Param<'_>]) -> Result<Option<Vec<Value>>, SqlError> {
        let mut found = None;
        self.query(statement, params, &mut |row| {
            found = Some(row.to_vec());
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }
}

impl Value {
    /// A number kept as an 8-byte blob.
    pub fn uint8(&self) -> Result<u64, SqlError> {
        match self {
            Self::Blob(bytes) => uint8(bytes),
            other => Err(other.unexpected("an 8-byte blob")),
        }
    }

    /// A small number.
    pub fn integer(&self) -> Result<i64, SqlError> {
        match self {
            Self::Integer(value) => Ok(*value),
            other => Err(other.unexpected("an integer")),
        }
    }

    /// Binary data.
    pub fn blob(&self) -> Result<Bytes, SqlError> {
        match self {
            Self::Blob(bytes) => Ok(bytes.clone()),
            other => Err(other.unexpected("a blob")),
        }
    }

    /// Binary data, or NULL.
    pub fn optional_blob(&self) -> Result<Option<Bytes>, SqlError> {
        match self {
            Self::Null => Ok(None),
            _ => self.blob().map(Some),
        }
    }

    /// Says the type only: a value must not reach a log (SEC-051).
    fn unexpected(&self, wanted: &str) -> SqlError {
        let found = match self {
            Self::Null => "NULL",
            Self::Integer(_) => "an integer",
            Self::Blob(_) => "a blob of another length",
        };
        SqlError(format!("a stored value is {found}, not {wanted}"))
    }
}

/// How a number is kept: 8 bytes, big-endian.
pub fn blob8(value: u64) -> [u8; 8] {
    value.to_be_bytes()
}

/// Reads what [`blob8`] wrote.
pub fn uint8(bytes: &[u8]) -> Result<u64, SqlError> {
    let bytes = bytes.try_into().map_err(|_| SqlError("a stored number has not 8 bytes".to_owned()))?;
    Ok(u64::from_be_bytes(bytes))
}
