//! What a registration brings: everything above its cursor, in order, once; fairly; or a failure.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sealog_proto::backend::{EnvelopeMeta, ServerEnvelope, subscribe_response::Response};
use sealog_proto::{Kind, MAX_SEQUENCE_ID};
use sealog_tests::backend::Backend;
use sealog_tests::client::{id_of, sequence_id};
use sealog_tests::fixtures::{
    ContentType, fresh_topic, group_envelope, group_message, private_message, public_message, welcome_pointer,
};
use sealog_tests::status::{self, OPEN};
use sealog_tests::stream::{Event, Stream};

use crate::support::{RESOURCE_EXHAUSTED, fill, from_start, publish, topic, topics};

fn topic_of(envelope: &ServerEnvelope) -> Vec<u8> {
    let meta = envelope.meta.as_ref().unwrap();
    meta.topic.as_ref().unwrap().topic.to_vec()
}

/// Reads until every topic has brought what was stored on it, and checks the order on each.
async fn read_all(stream: &mut Stream, stored: &BTreeMap<Vec<u8>, Vec<u64>>) {
    let mut seen: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    let total: usize = stored.values().map(Vec::len).sum();
    let mut count = 0;
    while count < total {
        for envelope in stream.messages().await.unwrap() {
            seen.entry(topic_of(&envelope)).or_default().push(id_of(&envelope));
            count += 1;
        }
    }
    assert_eq!(&seen, stored);
}

#[tokio::test]
async fn api_254_everything_above_the_cursor_is_delivered_in_order_while_publishes_go_on() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let all = topics(12);
    let mut stored: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    for _ in 0..10 {
        for (topic, id) in all.iter().zip(publish(&client, &all).await) {
            stored.entry(topic.as_bytes().to_vec()).or_default().push(id);
        }
    }
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    let publishing = {
        let (client, all) = (client.clone(), all.clone());
        tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..20 {
                ids.push(publish(&client, &all).await);
            }
            ids
        })
    };
    // Half from the beginning, half above their third envelope.
    let cursor = |at: usize, topic: &[u8]| if at < 6 { 0 } else { stored[topic][2] };
    let adds: Vec<_> =
        all.iter().enumerate().map(|(at, topic)| (topic.clone(), cursor(at, topic.as_bytes()))).collect();
    stream.apply(&adds[..4], &[]).await.unwrap();
    stream.apply(&adds[4..], &[]).await.unwrap();
    for ids in publishing.await.unwrap() {
        for (topic, id) in all.iter().zip(ids) {
            stored.get_mut(&topic.as_bytes()[..]).unwrap().push(id);
        }
    }
    for (topic, after) in &adds {
        stored.get_mut(&topic.as_bytes()[..]).unwrap().retain(|id| id > after);
    }
    read_all(&mut stream, &stored).await;
    assert!(stream.is_silent_for(Duration::from_millis(500)).await, "nothing comes twice");
}

#[tokio::test]
async fn api_254_a_long_history_and_large_envelopes_are_delivered_whole() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (many, large) = (topic(), topic());
    let stored = BTreeMap::from([
        (many.as_bytes().to_vec(), fill(&client, &many, 1_000, 100).await),
        (large.as_bytes().to_vec(), fill(&client, &large, 12, 1_000_000).await),
    ]);
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&from_start(&[many, large]), &[]).await.unwrap();
    read_all(&mut stream, &stored).await;
}

/// What no client can open is stored all the same, and must not stand in the way of what follows.
#[tokio::test]
async fn api_254_no_envelope_stops_a_stream_whatever_it_holds() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let group = fresh_topic(Kind::GroupMessage);
    let id = group.identifier();
    let empty = private_message(id, ContentType::Application, b"");
    let trailing = [&private_message(id, ContentType::Commit, b"no commit")[..], &[0xff; 100]].concat();
    let public = public_message(id, ContentType::Application, b"in the clear");
    let odd = [empty, trailing, public].map(group_envelope).to_vec();
    let ids = |metas: Vec<EnvelopeMeta>| metas.iter().map(sequence_id).collect::<Vec<_>>();
    let welcomes = topic();
    let history = client.publish([odd, vec![group_message(id, 48)]].concat()).await.unwrap();
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    stream.apply(&from_start(&[group.clone(), welcomes.clone()]), &[]).await.unwrap();
    assert_eq!(stream.receive(4).await.unwrap(), ids(history));
    // The same bytes are a duplicate: other ciphertexts, live.
    for ciphertext in [&b"1"[..], b"2"] {
        let odd = group_envelope(private_message(id, ContentType::Proposal, ciphertext));
        let live = client.publish(vec![odd, group_message(id, 48)]).await.unwrap();
        assert_eq!(stream.receive(2).await.unwrap(), ids(live));
    }
    let nothing = client.publish_one(welcome_pointer(welcomes.identifier(), 0)).await.unwrap();
    assert_eq!(stream.receive(1).await.unwrap(), [sequence_id(&nothing)]);
    let after = publish(&client, &[welcomes]).await;
    assert_eq!(stream.receive(1).await.unwrap(), after);
}

#[tokio::test]
async fn api_254_a_cursor_above_the_target_is_kept() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = topic();
    let first = publish(&client, std::slice::from_ref(&topic)).await;
    for after in [first[0] + 1_000_000, MAX_SEQUENCE_ID] {
        let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
        let target = stream.apply(&[(topic.clone(), after)], &[]).await.unwrap();
        assert!(target[0] >= first[0]);
        publish(&client, std::slice::from_ref(&topic)).await;
        assert!(stream.is_silent_for(Duration::from_millis(500)).await, "ids up to the cursor do not come");
    }
}

#[tokio::test]
async fn api_261_no_topic_gets_a_second_helping_of_history_before_every_other_had_its_first() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let all = topics(20);
    for topic in &all[..3] {
        fill(&client, topic, 40, 200_000).await; // four frames of history each
    }
    let rest = publish(&client, &all[3..]).await;
    let (mut stream, _) = Stream::open(backend.url()).await.unwrap();
    let targets = stream.apply(&from_start(&all), &[]).await.unwrap();
    let target: BTreeMap<Vec<u8>, u64> =
        all.iter().zip(targets).map(|(topic, target)| (topic.as_bytes().to_vec(), target)).collect();
    let mut unserved: HashSet<Vec<u8>> = target.keys().cloned().collect();
    let mut frames = 0;
    let mut left = 3 * 40 + rest.len();
    while left > 0 {
        let envelopes = stream.messages().await.unwrap();
        frames += 1;
        left -= envelopes.len();
        let served: HashSet<Vec<u8>> = envelopes.iter().map(topic_of).collect();
        let again = served.iter().any(|topic| !unserved.contains(topic));
        unserved.retain(|topic| !served.contains(topic));
        assert!(!again || unserved.is_empty(), "{} topics wait while another gets more", unserved.len());
        for envelope in &envelopes {
            assert!(id_of(envelope) <= target[&topic_of(envelope)]);
        }
    }
    assert!(frames > 12, "the history took {frames} frames: too few to prove anything");
}

/// What is stored while one client does not read, and its stream. `None`: a push came too late for a busy machine, and
/// what the client lacks waits as history (rule 13 of the stream protocol), which a client may leave unread for longer.
async fn outrun(backend: &Backend) -> Option<(Vec<u64>, Stream)> {
    let (client, raw) = (backend.client(), backend.raw());
    let topic = topic();
    let (mut stuck, _) = Stream::open(backend.url()).await.unwrap();
    let (mut reader, _) = Stream::open(backend.url()).await.unwrap();
    stuck.apply(&from_start(std::slice::from_ref(&topic)), &[]).await.unwrap();
    reader.apply(&from_start(std::slice::from_ref(&topic)), &[]).await.unwrap();
    let before = status::read(&raw).await.unwrap().streams["hints"];
    let mut stored = Vec::new();
    for _ in 0..30 {
        let ids = fill(&client, &topic, 1, 1_000_000).await;
        assert_eq!(reader.receive(1).await.unwrap(), ids, "the other client is served meanwhile");
        stored.extend(ids);
    }
    (status::read(&raw).await.unwrap().streams["hints"] == before).then_some((stored, stuck))
}

#[tokio::test]
async fn api_254_a_client_that_stops_reading_is_cut_off_and_delays_nobody() {
    let backend = Backend::start(&[OPEN]).await;
    let mut outcome = None;
    for _ in 0..5 {
        outcome = outrun(&backend).await;
        if outcome.is_some() {
            break;
        }
    }
    let (stored, mut stuck) = outcome.expect("pushes reach their streams in time");
    // What was sent before is still there; then the stream has failed.
    let mut received = Vec::new();
    let end = loop {
        match stuck.event().await.unwrap() {
            Event::Response(Response::Messages(messages)) => {
                received.extend(messages.envelopes.iter().map(id_of));
            }
            Event::Response(_) => {}
            Event::End(end) => break end,
        }
    };
    assert_eq!((end.code, end.close), (RESOURCE_EXHAUSTED, 1000), "{}", end.message);
    assert_eq!(received, stored[..received.len()], "no hole before the end");
    assert!((14..18).contains(&received.len()), "16 MiB are held for a client, not {} MB", received.len());
}
