//! The API contract against the built backend in a real workerd, one file per section of the contract.
//!
//! Tests that only need a backend share one; each works on topics that nobody else uses. Tests are named for the
//! requirements that they prove: docs/conformance.md is made from the names.

#![allow(clippy::disallowed_methods)] // tests live in real time

mod support;

mod admission;
mod bounds;
mod concurrency;
mod envelope;
mod handles;
mod identity;
mod identity_races;
mod ids;
mod key_packages;
mod logs;
mod lookups;
mod publish;
mod query;
mod query_newest;
mod restart;
mod transport;
mod wire;
