//! The built backend in a real workerd: on a free port, with a state directory of its own, killed when dropped.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use xtask::{
    Profile,
    settings::Settings,
    wal::Mark,
    workerd::{Options, Workerd as Server},
};

/// A backend under test. It can be killed and started again on the same state.
#[derive(Debug)]
pub struct Workerd {
    server: Option<Server>,
    options: Options,
    url: String,
    /// What servers wrote that were killed.
    history: String,
    /// Removes the state at the end, unless it was given.
    _fresh: Option<TempDir>,
}

impl Workerd {
    /// Starts the release build with fresh state and returns once it answers. `vars` go over those of `wrangler.toml`.
    pub async fn start(vars: &[(&str, &str)]) -> Result<Self> {
        let fresh = tempfile::tempdir()?;
        let state = fresh.path().to_owned();
        Self::start_in(state, Profile::Release.build_dir(), vars, Some(fresh)).await
    }

    /// The same with its state in memory, where the system has a file system there: a flush to the disk takes no time. A
    /// SIGKILL takes nothing that was written, there as on a disk.
    pub async fn start_in_memory(vars: &[(&str, &str)]) -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let fresh = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }?;
        let state = fresh.path().to_owned();
        Self::start_in(state, Profile::Release.build_dir(), vars, Some(fresh)).await
    }

    /// The same on a given state directory, which stays.
    pub async fn start_on(state: &Path, vars: &[(&str, &str)]) -> Result<Self> {
        Self::start_in(state.to_owned(), Profile::Release.build_dir(), vars, None).await
    }

    /// Starts another build of the worker, with fresh state and the vars of `wrangler.toml`.
    pub async fn start_build(build: &Path) -> Result<Self> {
        let fresh = tempfile::tempdir()?;
        Self::start_in(fresh.path().to_owned(), build.to_owned(), &[], Some(fresh)).await
    }

    async fn start_in(
        state: PathBuf,
        build: PathBuf,
        vars: &[(&str, &str)],
        fresh: Option<TempDir>,
    ) -> Result<Self> {
        let settings = settings(vars)?;
        let options = Options { build, port: 0, state, settings, echo: false, must_serve: true };
        let mut workerd =
            Self { server: None, options, url: String::new(), history: String::new(), _fresh: fresh };
        workerd.launch().await?;
        Ok(workerd)
    }

    async fn launch(&mut self) -> Result<()> {
        let options = self.options.clone();
        let server = spawn_blocking(move || Server::start(&options)).await??;
        self.options.port = server.port(); // a restart keeps the address that clients know
        self.url = server.url();
        self.server = Some(server);
        Ok(())
    }

    /// Kills the server with SIGKILL, and returns once it is gone.
    pub fn kill9(&mut self) {
        self.history += &self.output();
        self.server = None;
    }

    /// Kills the server if it runs, and starts it again on the same state and at the same address.
    pub async fn restart(&mut self, vars: &[(&str, &str)]) -> Result<()> {
        self.kill9();
        self.options.settings = settings(vars)?;
        self.launch().await
    }

    /// The same, and takes any answer to the health check for a start.
    pub async fn restart_refusing(&mut self, vars: &[(&str, &str)]) -> Result<()> {
        self.options.must_serve = false;
        let restarted = self.restart(vars).await;
        self.options.must_serve = true;
        restarted
    }

    /// Kills the server if it runs, and destroys everything that the objects of `class` keep.
    pub fn destroy(&mut self, class: &str) -> Result<()> {
        self.kill9();
        let folder = self.options.objects(class);
        std::fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))
    }

    /// The base address, without a final slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The newest output of the server, for failure messages; empty when it was killed.
    pub fn output(&self) -> String {
        self.server.as_ref().map(Server::output).unwrap_or_default()
    }

    /// The newest output of this server and of those before it on this state.
    pub fn history(&self) -> String {
        self.history.clone() + &self.output()
    }

    /// The memory that the server's process occupies, in bytes. Linux alone tells.
    pub fn resident_bytes(&self) -> Result<u64> {
        const PAGE_BYTES: u64 = 4096;
        let pid = self.server.as_ref().context("the server does not run")?.pid();
        let sizes = std::fs::read_to_string(format!("/proc/{pid}/statm"))?;
        let pages: u64 = sizes.split(' ').nth(1).context("a second number")?.parse()?;
        Ok(pages * PAGE_BYTES)
    }

    /// The databases of all objects of `class`.
    pub fn databases(&self, class: &str) -> Result<Vec<PathBuf>> {
        xtask::wal::databases(&self.options.state, &self.options.settings, class)
    }

    /// How far the storage of all objects of `class` has come: two marks give the commits in between.
    pub fn mark(&self, class: &str) -> Result<Mark> {
        Mark::now(&self.options.state, &self.options.settings, class).context("read the objects' logs")
    }
}

/// Names the number of partitions that every suite runs with, unless a test sets its own. `scripts/test` runs with the local
/// default, and the suites that leave the number open also with that of the production example.
const LOG_PARTITIONS: &str = "SEALOG_TEST_LOG_PARTITIONS";

fn settings(vars: &[(&str, &str)]) -> Result<Settings> {
    let mut settings = Settings::load()?;
    if let Ok(partitions) = std::env::var(LOG_PARTITIONS) {
        settings.vars.insert("LOG_PARTITIONS".to_owned(), partitions);
    }
    settings.vars.extend(vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Ok(settings)
}
