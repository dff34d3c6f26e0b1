//! The watches of a log partition against the rules of the stream protocol. "Trap n" is a hole that an earlier draft of
//! it had.

mod control;
mod loading;
mod many;
mod marks;
mod pull;
mod pushes;
mod support;
mod walk;
