//! Section 5 of the contract against the built backend in a real workerd: streams, over both transports.
//!
//! Tests that only need a backend share one; each works on topics that nobody else uses. Tests are named for the
//! requirements that they prove: docs/conformance.md is made from the names.

#![allow(clippy::disallowed_methods)] // tests live in real time

mod delivery;
mod ends;
mod large;
mod liveness;
mod rates;
mod restart;
mod sleep;
mod static_stream;
mod support;
mod transport;
mod updates;
