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

    /// The stub of one of our classes.
    pub(crate) type ObjectStub;

    /// The one method that each class has.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn call(this: &ObjectStub, command: &str, body: &Uint8Array) -> Result<Promise, JsValue>;
}
