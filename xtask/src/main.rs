//! `cargo xtask`: the commands behind the scripts.

use std::{env, path::PathBuf, process::ExitCode, sync::mpsc, time::Duration};

use anyhow::{Context, Result, bail};
use lexopt::{Arg, Parser, ValueExt};
use xtask::{
    Profile, bundle, root,
    settings::Settings,
    workerd::{self, Options, Workerd},
};

const HELP: &str = "\
cargo xtask bundle [--release]    build the worker into build/dev or build/release
cargo xtask serve [--port N] [--state DIR] [--release] [--var NAME=VALUE]...
                                  build it, and serve it on 127.0.0.1 until Ctrl-C

--port N          default 8787; 0 takes a free one
--state DIR       where the objects' databases live; default .wrangler/state
--release         the build that is deployed
--var NAME=VALUE  a setting, over what wrangler.toml says";

/// How often the server is looked at, to see whether it ended by itself.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

fn main() -> ExitCode {
    match run(&mut Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &mut Parser) -> Result<()> {
    match args.next()? {
        Some(Arg::Value(command)) if command == "bundle" => {
            let mut profile = Profile::Dev;
            while let Some(arg) = args.next()? {
                match arg {
                    Arg::Long("release") => profile = Profile::Release,
                    other => bail!("{}\n\n{HELP}", other.unexpected()),
                }
            }
            bundle::worker(profile)
        }
        Some(Arg::Value(command)) if command == "serve" => {
            let (profile, options) = serve_options(args)?;
            serve(profile, &options)
        }
        Some(Arg::Short('h') | Arg::Long("help")) => {
            println!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("{}\n\n{HELP}", other.unexpected()),
        None => bail!("no command\n\n{HELP}"),
    }
}

fn serve_options(args: &mut Parser) -> Result<(Profile, Options)> {
    let (state, settings) = (root().join(".wrangler/state"), Settings::load()?);
    let mut profile = Profile::Dev;
    let mut options =
        Options { build: PathBuf::new(), port: 8787, state, settings, echo: true, must_serve: true };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("port") => {
                let value = args.value()?.string()?;
                options.port = value.parse().ok().context("--port needs a number from 0 to 65535")?;
            }
            Arg::Long("state") => {
                options.state = env::current_dir()?.join(PathBuf::from(args.value()?));
            }
            Arg::Long("release") => profile = Profile::Release,
            Arg::Long("var") => options.settings.set(&args.value()?.string()?).context("--var")?,
            other => bail!("{}\n\n{HELP}", other.unexpected()),
        }
    }
    options.build = profile.build_dir();
    Ok((profile, options))
}

fn serve(profile: Profile, options: &Options) -> Result<()> {
    workerd::check_port(options.port)?; // sooner than after minutes of building
    bundle::worker(profile)?;
    let (stop, stopped) = mpsc::channel();
    ctrlc::set_handler(move || {
        let _ = stop.send(()); // the second Ctrl-C finds nobody waiting
    })?;
    let mut server = Workerd::start(options)?;
    println!("sealog ready on {}", server.url());
    while stopped.recv_timeout(WATCH_INTERVAL).is_err() {
        if let Some(status) = server.exited()? {
            bail!("workerd ended by itself ({status})");
        }
    }
    server.kill();
    Ok(())
}
