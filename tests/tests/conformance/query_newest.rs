//! Section 4: `QueryNewest`.

use std::collections::HashMap;

use sealog_proto::backend::query_newest_response::Result as Newest;
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::Backend;
use sealog_tests::fixtures::{Person, commit_log_entry, fresh_topic};

use crate::support::{fresh_group, message_on};

/// Takes each result for the topic that it names, as a client must (API-245).
fn by_topic(results: Vec<Newest>) -> HashMap<Topic, Newest> {
    let count = results.len();
    let map: HashMap<_, _> = results
        .into_iter()
        .map(|result| (Topic::from_message(result.topic.as_ref()).expect("a result names its topic"), result))
        .collect();
    assert_eq!(map.len(), count, "one result for a topic");
    map
}

#[tokio::test]
async fn api_244_the_newest_envelope_of_every_kind() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let person = Person::new("Noa").unwrap();
    let group = fresh_group();
    let log = Topic::derive(Kind::CommitLog, group.identifier()).unwrap();
    let topics = [group.clone(), person.welcome_topic(), person.key_package_topic(), log];
    for _ in 0..3 {
        let batch = vec![
            message_on(&group),
            message_on(&person.welcome_topic()),
            person.key_package().unwrap(),
            commit_log_entry(group.identifier(), 12),
        ];
        let metas = client.publish(batch.clone()).await.unwrap();
        for full in [false, true] {
            let results = by_topic(client.query_newest(&topics, full).await.unwrap());
            for ((topic, meta), envelope) in topics.iter().zip(&metas).zip(&batch) {
                assert_eq!(results[topic].meta.as_ref(), Some(meta), "{topic:?}");
                assert_eq!(
                    results[topic].envelope,
                    full.then(|| envelope.clone()),
                    "{topic:?}, full: {full}"
                );
            }
        }
    }
}

#[tokio::test]
async fn api_244_repeated_topics_have_one_result_and_empty_ones_none() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (used, empty) = (fresh_group(), fresh_group());
    let published = client.publish_one(message_on(&used)).await.unwrap();
    let request = [&empty, &used, &used, &empty, &used].map(Clone::clone);
    let results = client.query_newest(&request, false).await.unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].meta, Some(published));
    assert_eq!(client.query_newest(&[empty], true).await.unwrap(), []);
    assert_eq!(client.query_newest(&[], false).await.unwrap(), []);
}

/// A retry of an older envelope does not make it the newest.
#[tokio::test]
async fn api_244_a_duplicate_does_not_become_the_newest() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let person = Person::new("Ola").unwrap();
    let (old, new) = (person.key_package().unwrap(), person.key_package().unwrap());
    client.publish_one(old.clone()).await.unwrap();
    let newest = client.publish_one(new).await.unwrap();
    client.publish_one(old).await.unwrap();
    let results = client.query_newest(&[person.key_package_topic()], false).await.unwrap();
    assert_eq!(results[0].meta, Some(newest));
}

/// Field report 20: a rotated key package is what the next reader gets.
#[tokio::test]
async fn api_244_a_new_key_package_is_there_when_its_publish_is_answered() {
    let backend = Backend::shared().await;
    let person = Person::new("Pia").unwrap();
    for _ in 0..10 {
        let package = person.key_package().unwrap();
        backend.client().publish_one(package.clone()).await.unwrap();
        let results = backend.client().query_newest(&[person.key_package_topic()], true).await.unwrap();
        assert_eq!(results[0].envelope, Some(package));
    }
}

#[tokio::test]
async fn api_245_every_result_names_its_topic() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let topics: Vec<_> = (0..90)
        .map(|i| match i % 3 {
            0 => fresh_group(),
            1 => fresh_topic(Kind::Welcome),
            _ => fresh_topic(Kind::CommitLog), // stays empty, so that positions shift
        })
        .collect();
    let used: Vec<_> = topics.iter().filter(|topic| topic.kind() != Kind::CommitLog).collect();
    let metas = client.publish(used.iter().copied().map(message_on).collect()).await.unwrap();
    let results = by_topic(client.query_newest(&topics, false).await.unwrap());
    assert_eq!(results.len(), 60);
    for (topic, meta) in used.into_iter().zip(metas) {
        assert_eq!(results[topic].meta, Some(meta));
        assert_eq!(results[topic].topic, results[topic].meta.as_ref().unwrap().topic);
    }
}
