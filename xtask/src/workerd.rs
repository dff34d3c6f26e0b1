//! The built worker in a plain workerd: no network, no telemetry, ready in about 100 ms.

use std::{
    fs::{self, File, TryLockError},
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::{capnp, root, settings::Settings};

/// The longest that a start may take. A debug worker on a busy machine needs a few seconds.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// The most of the server's output that is kept, in bytes; the newest counts.
const OUTPUT_KEPT: usize = 64 * 1024;

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder with the modules of the worker, for example [`crate::Profile::build_dir`].
    pub build: PathBuf,
    /// Port on 127.0.0.1; 0 = a free one.
    pub port: u16,
    /// Where the objects' databases live.
    pub state: PathBuf,
    /// Bindings and vars.
    pub settings: Settings,
    /// Whether the server's output goes on to this process's standard error.
    pub echo: bool,
    /// Whether it counts as started only when it serves. A test of what it refuses needs no more than answers.
    pub must_serve: bool,
}

impl Options {
    /// The folder that holds the databases of all objects of a class.
    pub fn objects(&self, class: &str) -> PathBuf {
        self.state.join(capnp::OBJECTS).join(capnp::namespace(&self.settings, class))
    }
}

/// A running workerd. Dropping it kills it.
#[derive(Debug)]
pub struct Workerd {
    child: Child,
    /// Kills the child when this process is gone, however it ended.
    watchdog: Child,
    port: u16,
    output: Arc<Mutex<String>>,
    /// The threads that read the output.
    pumps: Vec<JoinHandle<()>>,
    lock: File,
}

impl Workerd {
    /// Starts the server and returns once it answers a health check. Blocks.
    pub fn start(options: &Options) -> Result<Self> {
        let binary = binary()?;
        fs::create_dir_all(options.state.join(capnp::OBJECTS))
            .with_context(|| format!("create the state directory {} (--state)", options.state.display()))?;
        let state = options.state.canonicalize()?;
        let build = options.build.canonicalize().unwrap_or_else(|_| options.build.clone());
        let lock = lock(&state)?;
        check_port(options.port)?;
        let config = state.join("workerd.capnp");
        fs::write(&config, capnp::config(&options.settings, &build, &state, options.port)?)?;

        let mut child = Command::new(binary)
            .args(["serve", "--import-path", "/", "--control-fd=1"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("start workerd")?;
        let watchdog = watchdog(&child)?;
        let output = Arc::new(Mutex::new(String::new()));
        let (ports, pumps) = pump(&mut child, &output, options.echo);
        // From here on an early return must kill the child: `Self` does.
        let mut server = Self { child, watchdog, port: 0, output, pumps, lock };
        match ports.recv_timeout(READY_WITHIN).context("workerd opened no port").and_then(|port| {
            server.port = port;
            server.wait_for_health(options.must_serve)
        }) {
            Ok(()) => Ok(server),
            Err(error) => {
                server.stop();
                server.pumps.drain(..).for_each(|pump| pump.join().unwrap_or_default());
                let wrote =
                    if options.echo { String::new() } else { format!("; it wrote:\n{}", server.output()) };
                Err(error.context(format!("the backend did not start{wrote}")))
            }
        }
    }

    #[allow(clippy::disallowed_methods)] // a tool waits in real time
    fn wait_for_health(&mut self, must_serve: bool) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            match check_health(self.port) {
                Ok(answer) if !must_serve || answer.contains("grpc-status: 0") => return Ok(()),
                Ok(answer) => bail!("the worker refused its health check: {}", trailers(&answer)),
                Err(error) => {
                    if let Some(status) = self.exited()? {
                        bail!("workerd ended while it started ({status})");
                    }
                    ensure!(Instant::now() < deadline, "workerd answers no health check: {error}");
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    /// The port on 127.0.0.1 that it answers on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The base address, without a final slash.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The newest output of the server, for failure messages.
    pub fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How the server ended, once it did.
    pub fn exited(&mut self) -> Result<Option<std::process::ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Kills it, and waits until it is gone. SIGKILL: some servers outlive SIGTERM.
    pub fn kill(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        // The watchdog first: once the child is reaped, its number may be another's.
        for process in [&mut self.watchdog, &mut self.child] {
            // Both fail only when it is gone already.
            let _ = process.kill();
            let _ = process.wait();
        }
        // Closing the file is not enough: a process that another thread is just starting has it, too, until it runs.
        let _ = self.lock.unlock();
    }
}

impl Drop for Workerd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The server's binary, out of the npm package that `package-lock.json` pins.
fn binary() -> Result<PathBuf> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "64",
        "aarch64" => "arm64",
        other => bail!("there is no workerd for {other}"),
    };
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let path = root().join(format!("node_modules/@cloudflare/workerd-{os}-{arch}/bin/workerd"));
    ensure!(path.exists(), "workerd is not installed: run scripts/setup");
    Ok(path)
}

/// A shell that waits for the end of its input, which is the end of this process, and then kills `child`.
fn watchdog(child: &Child) -> Result<Child> {
    Command::new("sh")
        .args(["-c", "read -r _; kill -9 \"$0\"", &child.id().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("start a shell")
}

/// Two servers on one set of databases would spoil both.
fn lock(state: &Path) -> Result<File> {
    let file = File::create(state.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another server uses the state in {}: stop it, or name another directory with --state",
                state.display()
            )
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Fails when something listens on the port already.
pub fn check_port(port: u16) -> Result<()> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("port {port} is taken: stop what uses it, or choose another with --port"))?;
    Ok(())
}

/// A line that workerd writes to its control descriptor, here its standard output.
#[derive(Deserialize)]
struct Listen {
    port: u16,
}

/// Keeps the server's output, and gives the port that it reports.
fn pump(
    child: &mut Child,
    output: &Arc<Mutex<String>>,
    echo: bool,
) -> (mpsc::Receiver<u16>, Vec<JoinHandle<()>>) {
    let (ports, receiver) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] =
        [child.stdout.take().map(|s| Box::new(s) as _), child.stderr.take().map(|s| Box::new(s) as _)];
    let pumps = streams.into_iter().flatten().map(|stream| {
        let (ports, output) = (ports.clone(), Arc::clone(output));
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                if let Ok(Listen { port }) = serde_json::from_str(&line) {
                    let _ = ports.send(port); // nobody listens after the first
                    continue;
                }
                if echo {
                    eprintln!("{line}");
                }
                keep(&mut output.lock().unwrap_or_else(PoisonError::into_inner), &line);
            }
        })
    });
    let pumps = pumps.collect();
    (receiver, pumps)
}

fn keep(output: &mut String, line: &str) {
    output.push_str(line);
    output.push('\n');
    if output.len() > OUTPUT_KEPT {
        let cut = output.floor_char_boundary(output.len() - OUTPUT_KEPT / 2);
        output.drain(..cut);
    }
}

/// The trailers of an answer on one line, or all of an answer that has none. (A header names them, too.)
fn trailers(answer: &str) -> String {
    let start = answer.rfind("grpc-status: ").unwrap_or(0);
    answer[start..].trim().replace("\r\n", ", ")
}

/// Asks the health service, and gives the whole answer as text.
fn check_health(port: u16) -> std::io::Result<String> {
    const REQUEST: &[u8] =
        b"POST /grpc.health.v1.Health/Check HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
        Content-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0";
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(READY_WITHIN))?;
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::trailers;

    #[test]
    fn only_the_trailers_of_a_refusal_are_shown() {
        let answer = "HTTP/1.1 200 OK\r\naccess-control-expose-headers: grpc-status, grpc-message\r\n\r\n\u{80}\0\0\0\u{2f}\
            grpc-status: 14\r\ngrpc-message: HANDLES must be \"on\" or \"off\"\r\n";
        assert_eq!(trailers(answer), "grpc-status: 14, grpc-message: HANDLES must be \"on\" or \"off\"");
        assert_eq!(trailers("HTTP/1.1 404 Not Found\r\n\r\n"), "HTTP/1.1 404 Not Found");
    }
}
