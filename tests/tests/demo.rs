//! The demonstration does what it says, and says so when it cannot.

use std::process::Output;

use sealog_tests::backend::Backend;
use tokio::process::Command;

async fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_demo")).args(arguments).output().await.expect("the demo starts")
}

#[tokio::test]
async fn two_people_chat_as_often_as_one_likes() {
    let backend = Backend::start(&[]).await;
    for (more, over) in
        [(None, "over Subscribe\n"), (Some("--static"), "over SubscribeStatic\n"), (None, "over Subscribe\n")]
    {
        let arguments: Vec<_> = ["--url", backend.url()].into_iter().chain(more).collect();
        let output = demo(&arguments).await;
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}\n{errors}");
        assert_eq!(said.matches("Bob reads").count(), 10, "{said}");
        assert_eq!(said.matches("Alice reads").count(), 10, "{said}");
        for what in ["an expired", "a tampered", "a foreign-signed"] {
            assert!(said.contains(&format!("{what} key package: REASON_INVALID_KEY_PACKAGE")), "{said}");
        }
        assert!(said.contains("REASON_HANDLE_TAKEN"), "{said}");
        assert_eq!(said.matches("inbox by ").count(), 2, "{said}");
        assert_eq!(said.matches(over).count(), 2, "{said}");
        assert!(said.contains("20 messages were sent, delivered in order and decrypted"), "{said}");
    }
}

#[tokio::test]
async fn a_failure_is_told_in_words_and_by_the_exit_code() {
    let free_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = format!("http://127.0.0.1:{free_port}");
    for (arguments, code, message) in [
        (&["--url", &nobody][..], 1, "scripts/dev"),
        (&["--url", "nonsense"], 1, "http://"),
        (&["--url", "https://example.org"], 1, "http://"),
        (&["--url"], 2, "usage"),
        (&["--loud"], 2, "usage"),
    ] {
        let output = demo(arguments).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(message) && !errors.contains("panicked"), "{arguments:?}: {errors}");
    }
}
