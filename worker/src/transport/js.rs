//! The parts of the platform that the `worker` crate does not bind.

use js_sys::{ArrayBuffer, Object, Promise, Reflect, Uint8Array, WebAssembly::Memory};
use wasm_bindgen::prelude::*;
use worker::web_sys::ReadableStream;

#[wasm_bindgen]
extern "C" {
    /// Reads bytes into a buffer that the caller brings: few large reads instead of many small ones.
    pub(super) type ByobReader;

    #[wasm_bindgen(method, catch, js_name = read)]
    fn read_min(this: &ByobReader, view: &Uint8Array, options: &Object) -> Result<Promise, JsValue>;

    /// What a read gives.
    pub(super) type Chunk;

    /// The bytes, in the buffer that was brought. Empty or absent only at the end of the stream.
    #[wasm_bindgen(method, getter)]
    pub(super) fn value(this: &Chunk) -> Option<Uint8Array>;

    type Readable;

    #[wasm_bindgen(method, catch, js_name = getReader)]
    fn get_reader(this: &Readable, options: &Object) -> Result<ByobReader, JsValue>;
}

/// Takes the stream for reading into own buffers.
pub(super) fn byob_reader(stream: ReadableStream) -> Result<ByobReader, JsValue> {
    stream.unchecked_into::<Readable>().get_reader(&options("mode", &"byob".into())?)
}

impl ByobReader {
    /// Reads until `view` is full or the stream ends.
    pub(super) fn fill(&self, view: &Uint8Array) -> Result<Promise, JsValue> {
        self.read_min(view, &options("min", &view.length().into())?)
    }
}

/// Bytes of memory that this instance has taken so far.
pub fn memory_bytes() -> u32 {
    let memory: Memory = wasm_bindgen::memory().unchecked_into();
    memory.buffer().unchecked_into::<ArrayBuffer>().byte_length()
}

fn options(name: &str, value: &JsValue) -> Result<Object, JsValue> {
    let options = Object::new();
    Reflect::set(&options, &name.into(), value)?;
    Ok(options)
}
