//! What the platform offers and the `worker` crate does not bind.

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// `DurableObjectStorage`, for its synchronous transactions.
    #[derive(Debug)]
    pub(crate) type SyncStorage;

    /// Runs the closure in a transaction, which a throw rolls back.
    #[wasm_bindgen(method, catch, js_name = transactionSync)]
    pub(crate) fn transaction_sync(
        this: &SyncStorage,
        body: &mut dyn FnMut() -> Result<JsValue, JsValue>,
    ) -> Result<JsValue, JsValue>;

    /// Sets the alarm of the object, in milliseconds since the Unix epoch. Called without an await in between, it
    /// belongs to the same commit as the writes before it.
    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    pub(crate) fn set_alarm(this: &SyncStorage, at: f64) -> Result<Promise, JsValue>;

    /// The stub of one of our classes.
    pub(crate) type ObjectStub;

    /// The one method that each class has.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn call(this: &ObjectStub, command: &str, body: &Uint8Array) -> Result<Promise, JsValue>;
}
