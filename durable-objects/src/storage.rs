//! SQLite in a Durable Object, as the state machines see it.

use std::ops::ControlFlow;

use bytes::Bytes;
use js_sys::Uint8Array;
use sealog_log::{Each, Fault, MILLISECOND, Nanos, Param, Sql, SqlError, Value};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use worker::{SqlStorage, SqlStorageValue, State, console_error};

use crate::externs::SyncStorage;

/// The storage of one object.
#[derive(Debug)]
pub(crate) struct ObjectStorage {
    sql: SqlStorage,
    sync: SyncStorage,
}

impl ObjectStorage {
    pub(crate) fn new(state: &State) -> Self {
        let storage = state.storage();
        let raw: &JsValue = storage.as_raw().as_ref();
        Self { sql: storage.sql(), sync: raw.clone().unchecked_into() }
    }

    /// Sets the object's alarm, in the commit of the event's writes. A failure breaks that commit: nothing then leaves
    /// the object, and the platform resets it.
    pub(crate) fn set_alarm(&self, at: Nanos) {
        #[allow(clippy::cast_precision_loss)] // milliseconds are far below 2^53
        let at = at.div_ceil(MILLISECOND) as f64;
        if let Err(error) = self.sync.set_alarm(at) {
            console_error!("the alarm could not be set: {error:?}");
        }
    }

    /// Deletes the alarm and everything stored. Like a write, it is done when the object's writes are durable.
    pub(crate) fn delete(&self) {
        for deleted in [self.sync.delete_alarm(), self.sync.delete_all()] {
            match deleted {
                Ok(deleted) => spawn_local(async move {
                    // A failure breaks the commit, and the platform resets the object: the next instance deletes.
                    let _ = JsFuture::from(deleted).await;
                }),
                Err(error) => console_error!("what was stored could not be deleted: {error:?}"),
            }
        }
    }

    /// Waits until everything written so far is durable. False: it failed, and the object is being reset.
    pub(crate) async fn synced(&self) -> bool {
        match self.sync.sync() {
            Ok(synced) => JsFuture::from(synced).await.is_ok(),
            Err(_) => false,
        }
    }
}

impl Sql for ObjectStorage {
    fn query(&self, statement: &str, params: &[Param<'_>], each: Each<'_>) -> Result<(), SqlError> {
        let bindings: Vec<JsValue> = params.iter().map(binding).collect();
        let cursor = self.sql.exec_raw(statement, bindings).map_err(failed)?;
        // Rows come one at a time, as they are asked for. `raw` is the only way through a cursor whose errors are caught.
        for row in cursor.raw() {
            let row = row.map_err(failed)?.into_iter().map(value).collect::<Result<Vec<_>, _>>()?;
            if let ControlFlow::Break(()) = each(&row)? {
                break;
            }
        }
        Ok(())
    }

    fn transaction(&self, body: &mut dyn FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
        let mut outcome = Ok(());
        let thrown = self.sync.transaction_sync(&mut || {
            outcome = body();
            match &outcome {
                Ok(()) => Ok(JsValue::UNDEFINED),
                Err(fault) => Err(JsValue::from_str(&fault.to_string())),
            }
        });
        outcome?;
        thrown.map_err(|error| SqlError(format!("the transaction failed: {error:?}")))?;
        Ok(())
    }
}

fn binding(param: &Param<'_>) -> JsValue {
    match param {
        Param::Null => JsValue::NULL,
        #[allow(clippy::cast_precision_loss)] // Param promises what a double holds exactly
        Param::Integer(value) => JsValue::from_f64(*value as f64),
        Param::Blob(bytes) => Uint8Array::from(*bytes).into(),
    }
}

fn value(column: SqlStorageValue) -> Result<Value, SqlError> {
    match column {
        SqlStorageValue::Null => Ok(Value::Null),
        SqlStorageValue::Integer(value) => Ok(Value::Integer(value)),
        SqlStorageValue::Blob(bytes) => Ok(Value::Blob(Bytes::from(bytes))),
        SqlStorageValue::Boolean(_) | SqlStorageValue::Float(_) | SqlStorageValue::String(_) => {
            Err(SqlError("no column of this schema is a boolean, a float or a text".to_owned()))
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // the shape that map_err wants
fn failed(error: worker::Error) -> SqlError {
    SqlError(error.to_string())
}
