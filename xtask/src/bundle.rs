//! Builds the worker: `cargo build` for wasm32, then the glue of wasm-bindgen, then the shim in front of it.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use serde::Deserialize;

use crate::{Profile, root};

/// The entry module; it imports `glue.js`.
const SHIM: &str = include_str!("shim.js");

/// The crate that is the worker.
const WORKER: &str = "sealog-worker";

/// The most that the gzipped wasm of a release may weigh, in bytes. The platform takes 3 MB on its free plan and must compile
/// it within a second at start-up; half of that leaves room to grow.
const GZIPPED_BUDGET: usize = 1_500_000;

/// Builds the worker into [`Profile::build_dir`] and the descriptor set into `build/descriptors.bin`.
pub fn worker(profile: Profile) -> Result<()> {
    let built = cargo_build(WORKER, profile)?;
    let file = root().join("build/descriptors.bin");
    let descriptors = fs::read(built.descriptors.context("no build script wrote descriptors.bin")?)?;
    fs::create_dir_all(root().join("build"))?;
    if fs::read(&file).ok().as_ref() != Some(&descriptors) {
        fs::write(&file, descriptors)?;
    }
    modules(&built.wasm, profile, &profile.build_dir())
}

/// Builds another crate with the entry points and object classes of the worker, into the folder `out`.
pub fn stand_in(package: &str, profile: Profile, out: &Path) -> Result<()> {
    modules(&cargo_build(package, profile)?.wasm, profile, out)
}

/// Writes the modules that the platform loads, and prints the size of the wasm. Leaves alone what is up to date.
fn modules(wasm: &Path, profile: Profile, out: &Path) -> Result<()> {
    let input = fs::read(wasm).with_context(|| wasm.display().to_string())?;
    let stamp = stamp(&input);
    if fs::read_to_string(out.join(STAMP)).is_ok_and(|found| found == stamp) {
        return Ok(());
    }
    let new = out.with_extension("new");
    let wasm = generate(&input, &new, profile)?;
    let gzipped = gzipped_len(&wasm)?;
    println!("{} bytes of wasm, {gzipped} gzipped", wasm.len());
    ensure!(
        profile == Profile::Dev || gzipped <= GZIPPED_BUDGET,
        "the gzipped worker is over its budget of {GZIPPED_BUDGET} bytes: see what grew (cargo bloat, twiggy)"
    );
    fs::write(new.join(STAMP), stamp)?;
    clear(out)?;
    fs::rename(&new, out).with_context(|| format!("move {} into place", new.display()))
}

/// Says in the folder of a build from what it was made.
const STAMP: &str = "made-from";

fn stamp(wasm: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    (wasm, SHIM).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// What `cargo build` left behind.
struct Built {
    wasm: PathBuf,
    /// Written by the build script of sealog-proto.
    descriptors: Option<PathBuf>,
}

fn cargo_build(package: &str, profile: Profile) -> Result<Built> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).stderr(Stdio::inherit()).args([
        "build",
        "--locked",
        "--package",
        package,
        "--target",
        "wasm32-unknown-unknown",
        "--message-format",
        "json-render-diagnostics",
    ]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    let output = command.output().context("run cargo")?;
    ensure!(output.status.success(), "{package} did not build (see above)");

    let (mut wasm, mut descriptors) = (None, None);
    for line in String::from_utf8(output.stdout)?.lines() {
        match serde_json::from_str(line)? {
            Message::CompilerArtifact { target, filenames } if target.name == package.replace('-', "_") => {
                wasm = filenames.into_iter().find(|file| file.extension().is_some_and(|e| e == "wasm"));
            }
            Message::BuildScriptExecuted { out_dir } => {
                descriptors =
                    descriptors.or(Some(out_dir.join("descriptors.bin")).filter(|file| file.exists()));
            }
            _ => {}
        }
    }
    Ok(Built {
        wasm: wasm.with_context(|| format!("cargo named no .wasm file: is {package} a cdylib?"))?,
        descriptors,
    })
}

/// The lines of cargo's `--message-format json` that matter here.
#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact {
        target: Target,
        filenames: Vec<PathBuf>,
    },
    BuildScriptExecuted {
        out_dir: PathBuf,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// How the generated glue imports its wasm. Neither workerd nor wrangler knows source-phase imports yet; for them a .wasm
/// module *is* its compiled source.
const SOURCE_IMPORT: (&str, &str) = ("import source ", "import ");

/// Writes the modules of the worker to `out` and gives the final wasm.
fn generate(input: &[u8], out: &Path, profile: Profile) -> Result<Vec<u8>> {
    clear(out)?;
    fs::create_dir_all(out)?;
    wasm_bindgen_cli_support::Bindgen::new()
        .input_bytes("glue", input.to_owned())
        .module(true)?
        .typescript(false)
        .debug(profile == Profile::Dev)
        .reset_state_function(true) // the shim makes a fresh instance after a trap
        .force_enable_abort_handler(true)
        .generate(out)
        .context("wasm-bindgen")?;

    let glue = out.join("glue.js");
    let text = fs::read_to_string(&glue)?;
    let (from, to) = SOURCE_IMPORT;
    ensure!(text.contains(from), "the bundler does not know this glue.js: {from:?} is not in it");
    fs::write(&glue, text.replace(from, to))?;
    fs::write(out.join("index.js"), SHIM)?;
    fs::read(out.join("glue_bg.wasm")).context("wasm-bindgen wrote no glue_bg.wasm")
}

fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("clear {}", folder.display()))?;
    }
    Ok(())
}

fn gzipped_len(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}
