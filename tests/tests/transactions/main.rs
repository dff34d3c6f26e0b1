//! Publishes over many partitions: all or nothing, in order, once, and below the boundary everything is settled; also
//! when workerd is killed in the middle of them.

#![allow(clippy::disallowed_methods)] // tests live in real time

mod boundary;
mod duplicates;
mod kill;
mod load;
mod record;
mod support;
mod together;
