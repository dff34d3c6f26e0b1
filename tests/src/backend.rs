//! A backend for tests: one of their own, or one that the tests of a binary share.

use std::sync::{Arc, Weak};

use tokio::sync::Mutex;
use xtask::wal::Mark;

use crate::client::Client;
use crate::raw::Raw;
use crate::workerd::Workerd;

/// A setting of the deployment: the name of a var and its value.
pub type Var<'a> = (&'a str, &'a str);

/// A slot for a backend that several tests share.
pub type Shared = Mutex<Weak<Backend>>;

/// A running backend, and clients of it. Everything here panics with the server's output when the server does not do
/// its part: a test can go no further.
#[derive(Debug)]
pub struct Backend(Workerd);

impl Backend {
    /// The backend that all tests of one binary share, with the settings of the repository. It lives as long as one
    /// of them runs.
    pub async fn shared() -> Arc<Self> {
        static SHARED: Shared = Shared::const_new(Weak::new());
        Self::once(&SHARED, &[]).await
    }

    /// The same, with settings of its own and a slot to remember it by.
    pub async fn once(slot: &Shared, vars: &[Var<'_>]) -> Arc<Self> {
        let mut slot = slot.lock().await;
        if let Some(running) = slot.upgrade() {
            return running;
        }
        let started = Arc::new(Self::start(vars).await);
        *slot = Arc::downgrade(&started);
        started
    }

    /// A backend with fresh state, for one test alone.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(vars: &[Var<'_>]) -> Self {
        Self(Workerd::start(vars).await.expect("the backend starts"))
    }

    /// The same with its state in memory, for a test that wants load and counts no flushes.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_in_memory(vars: &[Var<'_>]) -> Self {
        Self(Workerd::start_in_memory(vars).await.expect("the backend starts"))
    }

    /// Kills the backend with SIGKILL.
    pub fn kill(&mut self) {
        self.0.kill9();
    }

    /// Kills the backend, and destroys everything that the objects of a class keep.
    ///
    /// # Panics
    /// When there is nothing to destroy.
    pub fn destroy(&mut self, class: &str) {
        self.0.destroy(class).expect("the objects' databases are there");
    }

    /// Kills the backend with SIGKILL, if it runs, and starts it again on the same state.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn restart(&mut self, vars: &[Var<'_>]) {
        self.0.restart(vars).await.expect("the backend starts again");
    }

    /// The same with settings that it must refuse: it answers, and does not serve.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn restart_refusing(&mut self, vars: &[Var<'_>]) {
        self.0.restart_refusing(vars).await.expect("the backend starts again");
    }

    /// What it has logged so far, also before it was restarted; of each run the newest part.
    pub fn history(&self) -> String {
        self.0.history()
    }

    /// Where it answers.
    pub fn url(&self) -> &str {
        self.0.url()
    }

    /// A new client, with connections of its own.
    ///
    /// # Panics
    /// Never: the address is a URL.
    pub fn client(&self) -> Client {
        Client::new(self.url()).expect("a URL")
    }

    /// A new raw client.
    pub fn raw(&self) -> Raw {
        Raw::new(self.url())
    }

    /// How far the storage of all objects of a class has come.
    ///
    /// # Panics
    /// When its files cannot be read.
    pub fn mark(&self, class: &str) -> Mark {
        self.0.mark(class).expect("the objects' logs are readable")
    }
}
