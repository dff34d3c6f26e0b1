//! Updates: what they register, what they answer, and which are refused.

use sealog_proto::backend::{
    self, Cursor, TopicQuery, subscribe_request::Request, subscribe_request::Update,
};
use sealog_proto::{MAX_SEQUENCE_ID, backend::subscribe_response::Response};
use sealog_tests::backend::{Backend, Shared};
use sealog_tests::client::topic_query;
use sealog_tests::stream::{Event, HALF_CLOSE, HEADERS, Stream, data, framed, targets, update};
use std::sync::Weak;
use std::time::Duration;

use crate::support::{INVALID_ARGUMENT, OK, OUT_OF_RANGE, from_start, publish, topic, topics};

#[tokio::test]
async fn api_250_started_comes_before_anything_that_was_sent_early() {
    let backend = Backend::shared().await;
    let mut stream = Stream::connect(backend.url()).await.unwrap();
    stream.send_message(HEADERS).await.unwrap();
    stream.send(update(1, &[], &[])).await.unwrap();
    let Event::Response(Response::Started(_)) = stream.event().await.unwrap() else { panic!("no Started") };
    assert_eq!(stream.applied().await.unwrap().id, 1);
}

#[tokio::test]
async fn api_252_every_update_is_answered_once_in_order_with_the_targets_of_what_it_added() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let all = topics(4);
    let stored = publish(&client, &all[..2]).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    // All of them at once: none waits for an answer.
    let adds = from_start(&[all[1].clone(), all[2].clone(), all[0].clone()]);
    stream.send(update(5, &adds, &[])).await.unwrap();
    stream.send(update(6, &[], &[])).await.unwrap();
    stream.send(update(u64::MAX, &from_start(&all), &[])).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let applied = stream.applied().await.unwrap();
        seen.push((applied.id, targets(&applied.added_targets)));
    }
    assert_eq!(seen, [(5, vec![stored[1], 0, stored[0]]), (6, vec![]), (u64::MAX, vec![0])]);
}

#[tokio::test]
async fn api_252_no_message_comes_before_the_applied_of_its_registration() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let all = topics(20);
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    for topic in &all {
        // Published while the registration is under way: it is above the target, or at it, but never lost.
        let publishing = publish(&client, std::slice::from_ref(topic));
        let id = stream.update(&[(topic.clone(), 0)], &[]).await.unwrap();
        let stored = publishing.await[0];
        match stream.event().await.unwrap() {
            Event::Response(Response::Applied(applied)) => {
                assert_eq!(applied.id, id);
                assert!([0, stored].contains(&targets(&applied.added_targets)[0]));
            }
            other => panic!("{other:?} before Applied"),
        }
        assert_eq!(stream.receive(1).await.unwrap(), [stored]);
    }
}

#[tokio::test]
async fn api_253_a_second_add_changes_nothing_and_is_not_listed() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (known, new) = (topic(), topic());
    let first = publish(&client, &[known.clone(), known.clone(), new.clone()]).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    assert_eq!(stream.apply(&[(known.clone(), first[1])], &[]).await.unwrap(), [first[1]]);
    assert_eq!(stream.apply(&from_start(&[known.clone(), new]), &[]).await.unwrap(), [first[2]]);
    assert_eq!(stream.receive(1).await.unwrap(), [first[2]]);
    assert!(stream.is_silent_for(Duration::from_millis(500)).await, "the first registration stays as it was");
}

#[tokio::test]
async fn api_253_a_removed_topic_is_silent_until_it_is_added_again_from_its_own_cursor() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (gone, stays) = (topic(), topic());
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&from_start(&[gone.clone(), stays.clone()]), &[]).await.unwrap();
    let first = publish(&client, std::slice::from_ref(&gone)).await;
    assert_eq!(stream.receive(1).await.unwrap(), first);
    // Removing what is not there does nothing.
    assert_eq!(stream.apply(&[], &[gone.clone(), topic()]).await.unwrap(), [0; 0]);
    let stored = publish(&client, &[gone.clone(), stays]).await;
    assert_eq!(stream.receive(1).await.unwrap(), [stored[1]]);
    assert!(stream.is_silent_for(Duration::from_millis(500)).await);
    assert_eq!(stream.apply(&[(gone, first[0])], &[]).await.unwrap(), [stored[0]]);
    assert_eq!(stream.receive(1).await.unwrap(), [stored[0]]);
}

#[tokio::test]
async fn api_253_a_topic_may_be_removed_and_added_again_at_once() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = topic();
    let stored = publish(&client, &[topic.clone(), topic.clone()]).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&from_start(std::slice::from_ref(&topic)), &[]).await.unwrap();
    assert_eq!(stream.receive(2).await.unwrap(), stored);
    for _ in 0..5 {
        stream.update(&[], std::slice::from_ref(&topic)).await.unwrap();
        stream.update(&from_start(std::slice::from_ref(&topic)), &[]).await.unwrap();
        assert_eq!(targets(&stream.applied().await.unwrap().added_targets), [0; 0]);
        assert_eq!(targets(&stream.applied().await.unwrap().added_targets), [stored[1]]);
        assert_eq!(stream.receive(2).await.unwrap(), stored);
    }
}

#[tokio::test]
async fn api_253_two_streams_of_one_client_know_nothing_of_each_other() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = topic();
    let all = from_start(std::slice::from_ref(&topic));
    let (mut one, _) = Stream::open(backend.url()).await.unwrap();
    let (mut other, _) = Stream::open(backend.url()).await.unwrap();
    one.apply(&all, &[]).await.unwrap();
    other.apply(&all, &[]).await.unwrap();
    let first = publish(&client, std::slice::from_ref(&topic)).await;
    assert_eq!(one.receive(1).await.unwrap(), first);
    one.apply(&[], std::slice::from_ref(&topic)).await.unwrap();
    let second = publish(&client, std::slice::from_ref(&topic)).await;
    assert_eq!(other.receive(2).await.unwrap(), [first, second].concat());
    assert!(one.is_silent_for(Duration::from_millis(500)).await);
}

fn entry(topic: Option<&[u8]>, after: u64) -> TopicQuery {
    let topic = topic.map(|bytes| backend::Topic { topic: bytes.to_vec().into() });
    TopicQuery { topic, cursor: Some(Cursor { sequence_id: after }) }
}

#[tokio::test]
async fn api_251_an_invalid_update_fails_the_stream() {
    let backend = Backend::shared().await;
    let topic = topic();
    let add = |entry| Update { id: 2, adds: vec![entry], removes: vec![] };
    for (what, update) in [
        ("the id 0", Update { id: 0, ..Update::default() }),
        ("the same id", Update { id: 1, ..Update::default() }),
        ("a topic added twice", Update { id: 2, adds: vec![topic_query(&topic, 0); 2], removes: vec![] }),
        ("a topic removed twice", Update { id: 2, adds: vec![], removes: vec![(&topic).into(); 2] }),
        (
            "a topic added and removed",
            Update { id: 2, adds: vec![topic_query(&topic, 0)], removes: vec![(&topic).into()] },
        ),
        ("an unknown kind (TOPIC-003)", add(entry(Some(&[9; 33]), 0))),
        ("a short identifier (TOPIC-003)", add(entry(Some(&[1; 32]), 0))),
        ("an add without a topic (TOPIC-003)", add(entry(None, 0))),
        ("a remove without a topic (TOPIC-003)", {
            Update { id: 2, adds: vec![], removes: vec![backend::Topic::default()] }
        }),
        ("a cursor over the range", add(topic_query(&topic, MAX_SEQUENCE_ID + 1))),
    ] {
        let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
        stream.update(&[], &[]).await.unwrap();
        assert_eq!(stream.applied().await.unwrap().id, 1);
        stream.send(Request::Update(update)).await.unwrap();
        let end = stream.end().await.unwrap();
        assert_eq!((end.code, end.close), (INVALID_ARGUMENT, 1000), "{what}: {}", end.message);
    }
}

#[tokio::test]
async fn api_251_updates_accepted_before_an_invalid_one_are_answered() {
    let backend = Backend::shared().await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    let pieces = [
        framed(update(1, &from_start(&topics(3)), &[])),
        framed(update(2, &from_start(&topics(1)), &[])),
        framed(update(2, &[], &[])),
    ];
    stream.send_message(data(&pieces.concat())).await.unwrap();
    assert_eq!(stream.applied().await.unwrap().id, 1);
    assert_eq!(stream.applied().await.unwrap().id, 2);
    assert_eq!(stream.end().await.unwrap().code, INVALID_ARGUMENT);
}

#[tokio::test]
async fn api_259_accepted_updates_are_answered_behind_a_half_close() {
    let backend = Backend::shared().await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.update(&from_start(&topics(3)), &[]).await.unwrap();
    stream.send_message(HALF_CLOSE).await.unwrap();
    assert_eq!(targets(&stream.applied().await.unwrap().added_targets), [0; 3]);
    assert_eq!(stream.end().await.unwrap().code, OK);
}

#[tokio::test]
async fn api_281_the_bounds_of_an_update_are_exact() {
    static BOUNDED: Shared = Shared::const_new(Weak::new());
    let vars = [
        ("MAX_UPDATE_ADDS", "3"),
        ("MAX_UPDATE_REMOVES", "2"),
        ("MAX_STREAM_TOPICS", "4"),
        ("MAX_REQUEST_BYTES", "1100000"),
    ];
    let backend = Backend::once(&BOUNDED, &vars).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    let all = topics(6);
    stream.apply(&from_start(&all[..3]), &[]).await.unwrap();
    // The bound counts what is registered afterwards: two go, three come.
    stream.apply(&from_start(&all[3..]), &all[..2]).await.unwrap();
    stream.update(&from_start(&topics(1)), &[]).await.unwrap();
    assert_eq!(stream.end().await.unwrap().code, INVALID_ARGUMENT, "a fifth topic");

    for (adds, removes) in [(4, 0), (0, 3)] {
        let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
        stream.update(&from_start(&topics(adds)), &topics(removes)).await.unwrap();
        assert_eq!(stream.end().await.unwrap().code, INVALID_ARGUMENT, "{adds} adds, {removes} removes");
    }

    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.send_message(data(&[&[0][..], &1_100_001_u32.to_be_bytes()].concat())).await.unwrap();
    assert_eq!(stream.end().await.unwrap().code, OUT_OF_RANGE, "API-282: one byte over max_request_bytes");
}
