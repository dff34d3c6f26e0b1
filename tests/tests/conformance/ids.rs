//! Section 1: sequence ids, order, and visibility.

use std::collections::HashSet;

use sealog_proto::{Kind, MAX_SEQUENCE_ID};
use sealog_tests::backend::Backend;
use sealog_tests::client::{id_of, sequence_id};
use sealog_tests::fixtures::{Person, commit_log_entry, fresh_topic, welcome};
use tonic::Code;

use crate::support::{assert_code, fresh_group, ids, ids_of, message_on, meta};

#[tokio::test]
async fn api_286_ids_lie_between_1_and_the_largest_signed_number() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    let metas = client.publish(vec![message_on(&topic), message_on(&topic)]).await.unwrap();
    assert!(ids(&metas).iter().all(|id| (1..=MAX_SEQUENCE_ID).contains(id)), "{metas:?}");

    // The largest id is a legal position: nothing lies above it. One more is not.
    let page = client.query(&[(topic.clone(), MAX_SEQUENCE_ID)], 0).await.unwrap();
    assert!(page.envelopes.is_empty());
    assert_code(client.query(&[(topic, MAX_SEQUENCE_ID + 1)], 0).await, Code::InvalidArgument);
}

#[tokio::test]
async fn api_287_no_two_envelopes_share_an_id_on_any_topic() {
    let backend = Backend::shared().await;
    let (group, installation) = (fresh_group(), fresh_topic(Kind::Welcome));
    let publishers = (0..8).map(|_| {
        let (client, group, key) = (backend.client(), group.clone(), installation.clone());
        tokio::spawn(async move {
            let mut given = Vec::new();
            for _ in 0..10 {
                let batch = vec![
                    message_on(&group),
                    commit_log_entry(group.identifier(), 16),
                    welcome(key.identifier(), 16),
                    message_on(&fresh_group()),
                ];
                given.extend(ids(&client.publish(batch).await.unwrap()));
            }
            given
        })
    });
    let mut given = Vec::new();
    for publisher in publishers.collect::<Vec<_>>() {
        given.extend(publisher.await.unwrap());
    }
    assert_eq!(given.len(), 8 * 10 * 4);
    assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len(), "an id was given twice");
}

#[tokio::test]
async fn api_288_an_envelope_has_the_same_id_in_every_answer() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let person = Person::new("Kim").unwrap();
    let group = fresh_group();
    let batch = vec![message_on(&group), person.key_package().unwrap(), message_on(&group)];
    let metas = client.publish(batch.clone()).await.unwrap();

    for _ in 0..3 {
        assert_eq!(client.publish(batch.clone()).await.unwrap(), metas, "a retry");
        let page = client.query(&[(group.clone(), 0)], 0).await.unwrap();
        assert_eq!(ids_of(&page.envelopes), [sequence_id(&metas[0]), sequence_id(&metas[2])]);
        assert_eq!(page.envelopes.iter().map(meta).collect::<Vec<_>>(), [&metas[0], &metas[2]]);
        let newest = client.query_newest(&[person.key_package_topic()], false).await.unwrap();
        assert_eq!(newest[0].meta.as_ref(), Some(&metas[1]));
        // Other traffic in between changes nothing.
        client.publish_one(message_on(&fresh_group())).await.unwrap();
    }
}

#[tokio::test]
async fn api_289_a_later_publish_has_greater_ids_on_every_topic() {
    let backend = Backend::shared().await;
    let topics = [fresh_group(), fresh_topic(Kind::Welcome), fresh_group()];
    let mut highest = 0;
    for round in 0..30 {
        let client = backend.client(); // another connection each time
        let batch = topics.iter().take(1 + round % 3).map(message_on).collect();
        let given = ids(&client.publish(batch).await.unwrap());
        assert!(given.iter().all(|id| *id > highest), "{given:?} after {highest} was visible");
        highest = *given.iter().max().unwrap();
    }
}

#[tokio::test]
async fn api_201_every_read_of_a_topic_is_in_order() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topic = fresh_group();
    let mut published = Vec::new();
    for size in [1, 7, 3, 20] {
        published
            .extend(ids(&client.publish((0..size).map(|_| message_on(&topic)).collect()).await.unwrap()));
    }
    assert!(published.is_sorted_by(|a, b| a < b), "request order is id order: {published:?}");
    assert_eq!(ids_of(&client.read(&topic, 0).await.unwrap()), published);
}

#[tokio::test]
async fn api_202_a_query_after_the_answer_includes_the_publish() {
    let backend = Backend::shared().await;
    let topic = fresh_group();
    for _ in 0..20 {
        let published = backend.client().publish_one(message_on(&topic)).await.unwrap();
        let id = sequence_id(&published);
        // A second client, with a connection of its own, that reads from just below.
        let page = backend.client().query(&[(topic.clone(), id - 1)], 0).await.unwrap();
        assert_eq!(page.envelopes.iter().map(id_of).collect::<Vec<_>>(), [id]);
    }
}
