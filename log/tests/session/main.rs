//! One session against its rules. "Trap n" is a hole that an earlier draft of the stream protocol had.

#![allow(unreachable_pub)] // a crate of its own

mod delivering;
mod ending;
mod fairness;
mod frames;
mod hibernating;
mod large;
mod liveness;
mod pages;
mod statics;
mod support;
mod updates;
