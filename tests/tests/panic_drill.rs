//! A panic in the wasm, as the deployment is built, behind the shim of the deployment (field reports 26 and 27): calls in
//! flight fail at once with UNAVAILABLE, the next call is served, and an object forgets what the broken event wrote.

use std::time::Duration;

use sealog_tests::raw::Raw;
use sealog_tests::workerd::Workerd;
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tonic::codegen::http::{Method, StatusCode};
use xtask::{Profile, bundle};

/// The longest that a call may take to fail, once the instance is gone, on a busy machine: half of what a slow one takes.
const AT_ONCE: Duration = Duration::from_secs(15);

struct Drill {
    workerd: Workerd,
    _build: TempDir,
}

impl Drill {
    async fn start() -> Self {
        let build = tempfile::tempdir().unwrap();
        let out = build.path().join("drill");
        let out_too = out.clone();
        spawn_blocking(move || bundle::stand_in("sealog-drill", Profile::Release, &out_too))
            .await
            .unwrap()
            .unwrap();
        Self { workerd: Workerd::start_build(&out).await.unwrap(), _build: build }
    }

    /// The text of a sound answer; `None` when the call failed with UNAVAILABLE.
    async fn call(&self, path: &str) -> Option<String> {
        let raw = Raw::new(self.workerd.url());
        let answer =
            timeout(AT_ONCE, raw.send(Method::GET, path, &[], "")).await.expect("a call hangs").unwrap();
        let status = answer.headers.get("grpc-status").map(|status| status.to_str().unwrap().to_owned());
        match (answer.status, status.as_deref()) {
            (StatusCode::OK, None) => Some(String::from_utf8(answer.body.to_vec()).unwrap()),
            (StatusCode::OK, Some("14")) => {
                assert_eq!(answer.headers["access-control-allow-origin"], "*");
                None
            }
            // The drill's own worker does not map the errors of its objects; the real one does.
            (StatusCode::INTERNAL_SERVER_ERROR, None) if !path.starts_with("/worker") => None,
            other => panic!("{path}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_281_a_panic_fails_what_is_in_flight_and_nothing_else() {
    let drill = Drill::start().await;
    assert_eq!(drill.call("/partition/count").await.unwrap(), "[Integer(1)]");
    assert_eq!(drill.call("/sequencer/count").await.unwrap(), "[Integer(1)]");

    for broken in ["/worker/panic", "/worker/panic-later", "/partition/panic", "/partition/panic-later"] {
        let in_flight = ["/worker/slow", "/partition/slow", "/sequencer/slow"].map(|path| drill.call(path));
        let break_down = async {
            tokio::time::sleep(Duration::from_secs(1)).await; // the slow calls are on their way
            drill.call(broken).await
        };
        let (slow, broken_answer) = tokio::join!(futures_all(in_flight), break_down);
        assert_eq!(broken_answer, None, "{broken}");
        assert_eq!(slow, [None, None, None], "{broken}");
        assert_eq!(drill.call("/worker/sound").await.as_deref(), Some("sound"), "after {broken}");
    }
    assert_eq!(
        drill.call("/sequencer/count").await.unwrap(),
        "[Integer(2)]",
        "another object is itself again"
    );

    // Whatever the broken events wrote before they broke is gone.
    assert_eq!(drill.call("/partition/count").await.unwrap(), "[Integer(2)]");
    assert_eq!(drill.call("/partition/throw").await, None);
    assert_eq!(drill.call("/partition/count").await.unwrap(), "[Integer(3)]");
}

/// Nobody writes to it any more, and its client would wait for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_281_an_answer_that_goes_on_breaks_off_with_the_memory_behind_it() {
    let drill = Drill::start().await;
    let raw = Raw::new(drill.workerd.url());
    let mut open = tokio::spawn(async move { raw.send(Method::GET, "/session/", &[], "").await });
    assert!(timeout(Duration::from_secs(2), &mut open).await.is_err(), "the answer does not go on");
    assert_eq!(drill.call("/worker/panic").await, None);
    let broken = timeout(AT_ONCE, open).await.expect("the answer hangs").unwrap();
    assert!(broken.is_err(), "it ended as if it were whole: {broken:?}");
    assert_eq!(drill.call("/worker/sound").await.as_deref(), Some("sound"));
}

/// A timer that a broken instance left behind fires into its successor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_of_a_broken_instance_breaks_nothing() {
    let drill = Drill::start().await;
    assert!(drill.call("/sequencer/timer").await.is_some());
    assert_eq!(drill.call("/worker/panic").await, None);
    assert_eq!(drill.call("/worker/outlast-the-timer").await.as_deref(), Some("sound"));
}

async fn futures_all<T>(calls: [impl Future<Output = T>; 3]) -> [T; 3] {
    let [a, b, c] = calls;
    let (a, b, c) = tokio::join!(a, b, c);
    [a, b, c]
}
