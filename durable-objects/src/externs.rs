//! What the platform offers and the `worker` crate does not bind.

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use worker::web_sys::{ReadableStream, Request, WritableStream};

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

    /// Deletes the alarm of the object.
    #[wasm_bindgen(method, catch, js_name = deleteAlarm)]
    pub(crate) fn delete_alarm(this: &SyncStorage) -> Result<Promise, JsValue>;

    /// Deletes everything that the object stored.
    #[wasm_bindgen(method, catch, js_name = deleteAll)]
    pub(crate) fn delete_all(this: &SyncStorage) -> Result<Promise, JsValue>;

    /// Resolves when everything written so far is durable.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn sync(this: &SyncStorage) -> Result<Promise, JsValue>;

    /// The stub of one of our classes.
    #[derive(Debug)]
    pub(crate) type ObjectStub;

    /// The one method that each class has.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn call(this: &ObjectStub, command: &str, body: &Uint8Array) -> Result<Promise, JsValue>;

    /// For what is not a command: a stream.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn fetch(this: &ObjectStub, request: &Request) -> Result<Promise, JsValue>;

    /// A stream of bytes whose writes are done when their bytes were read.
    #[derive(Debug)]
    pub(crate) type IdentityTransformStream;

    #[wasm_bindgen(constructor, catch)]
    pub(crate) fn new() -> Result<IdentityTransformStream, JsValue>;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn readable(this: &IdentityTransformStream) -> ReadableStream;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn writable(this: &IdentityTransformStream) -> WritableStream;
}
