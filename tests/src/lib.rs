//! What the suites share: real MLS people, a typed client, a raw one, and a workerd to talk to.
//!
//! - [`fixtures`]: people and MLS objects made by openmls, and cheap envelopes of any size.
//! - [`client`]: the API over tonic and tonic-web, a client that nobody here wrote.
//! - [`chain`]: a real EVM, and a node in front of it that can be made to fail.
//! - [`raw`]: plain HTTP, for everything that a well-behaved client would never send.
//! - [`stream`]: a Subscribe stream over its WebSocket, malformed messages included.
//! - [`workerd`]: the built backend in a real workerd.
//! - [`backend`]: the same for tests, which may share one.
//! - [`status`]: the page `/-/status`: the boundary, and calls to objects.
//! - [`contract`]: every requirement id, and the table of the tests that prove it.

// Tests live in real time; only the pure crates are handed a clock.
#![allow(clippy::disallowed_methods)]

pub mod backend;
pub mod chain;
pub mod client;
pub mod contract;
pub mod fixtures;
pub mod raw;
pub mod status;
pub mod stream;
pub mod workerd;
