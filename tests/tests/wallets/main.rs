//! Signatures of smart-contract wallets, against a real EVM on this machine and the built backend in a real
//! workerd.

#![allow(clippy::disallowed_methods)] // tests live in real time

mod admission;
mod blocks;
mod cache;
mod costs;
mod outages;
mod published;
mod support;
mod updates;
mod verdicts;
