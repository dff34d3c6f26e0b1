//! What builds the worker and runs it, shared by the scripts and the end-to-end suites.
//!
//! - [`bundle`]: the worker for wasm32, through wasm-bindgen, to the modules that the platform loads.
//! - [`settings`]: `wrangler.toml`, the one place that names bindings, classes and vars.
//! - [`workerd`]: the built worker in a plain workerd on this machine.
//! - [`wal`]: counts what an object committed, from its storage.

use std::{env, path::PathBuf};

pub mod bundle;
mod capnp;
pub mod settings;
pub mod wal;
pub mod workerd;

/// The root of the repository: where `wrangler.toml` lies, above the crate that cargo runs or above the working directory.
/// Asked for at run time, so that a checkout may be moved together with what was built in it.
pub fn root() -> PathBuf {
    let start = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).or_else(|| env::current_dir().ok());
    let start = start.unwrap_or_default();
    start.ancestors().find(|folder| folder.join("wrangler.toml").exists()).unwrap_or(&start).to_owned()
}

/// How a worker is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Quick to build, with debug assertions.
    Dev,
    /// As deployed.
    Release,
}

impl Profile {
    /// The folder with the modules of the built worker.
    pub fn build_dir(self) -> PathBuf {
        root().join("build").join(match self {
            Self::Dev => "dev",
            Self::Release => "release",
        })
    }
}
