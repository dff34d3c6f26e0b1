//! Compiles the .proto files without a `protoc` binary, and leaves the descriptor set for clients and tools.

use std::{env, error::Error, fs, path::PathBuf};

use prost_build::Config;
use protox::prost::Message;

const ROOTS: &[&str] = &[
    "xmtp/backend/v1/publish.proto",
    "xmtp/backend/v1/query.proto",
    "xmtp/backend/v1/subscribe.proto",
    "xmtp/backend/v1/identity.proto",
    "xmtp/identity/credential.proto",
    "xmtp/mls/message_contents/commit_log.proto",
    "google/rpc/status.proto",
    "grpc/health/v1/health.proto",
    "sealog/internal/v1/internal.proto",
    "sealog/internal/v1/identity.proto",
    "sealog/internal/v1/session.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(ROOTS, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    Config::new()
        // A decoded message borrows from the request's buffer instead of copying every payload.
        .bytes(["."])
        .include_file("all.rs")
        .compile_fds(descriptors)?;
    Ok(())
}
