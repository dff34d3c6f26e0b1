//! What a restart keeps, and what a changed setting does.

use sealog_tests::backend::Backend;
use sealog_tests::client::sequence_id;
use sealog_tests::fixtures::{Person, commit_log_entry};
use sealog_tests::workerd::Workerd;
use tonic::Code;

use crate::support::{fresh_group, ids, message_on};

#[tokio::test]
async fn api_288_289_a_restart_keeps_ids_and_time_and_goes_on_above_them() {
    let mut backend = Backend::start(&[]).await;
    let topic = fresh_group();
    let person = Person::new("Uma").unwrap();
    let batch =
        vec![message_on(&topic), person.key_package().unwrap(), commit_log_entry(topic.identifier(), 30)];
    let first = backend.client().publish(batch.clone()).await.unwrap();
    let (mut highest, mut time) = (ids(&first).into_iter().max().unwrap(), first[0].server_ns);
    let mut expected = vec![first[0].clone()];
    for _ in 0..3 {
        backend.restart(&[]).await;
        let client = backend.client();
        let stored = client.read(&topic, 0).await.unwrap();
        assert_eq!(
            stored.iter().map(|envelope| envelope.meta.clone().unwrap()).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(stored[0].envelope.as_ref(), Some(&batch[0]));
        let newest = client.query_newest(&[person.key_package_topic()], true).await.unwrap();
        assert_eq!(
            (newest[0].meta.as_ref(), newest[0].envelope.as_ref()),
            (Some(&first[1]), Some(&batch[1]))
        );
        assert_eq!(client.publish(batch.clone()).await.unwrap(), first, "a retry after the restart");

        let later = client.publish_one(message_on(&topic)).await.unwrap();
        assert!(sequence_id(&later) > highest, "an id was not above those from before the restart");
        assert!(later.server_ns >= time);
        (highest, time) = (sequence_id(&later), later.server_ns);
        expected.push(later);
    }
}

#[tokio::test]
async fn api_281_another_number_of_partitions_is_refused_by_name() {
    let mut backend = Backend::start(&[("LOG_PARTITIONS", "2")]).await;
    let topic = fresh_group();
    let envelope = message_on(&topic);
    let published = backend.client().publish_one(envelope.clone()).await.unwrap();

    for other in ["1", "3"] {
        backend.restart(&[("LOG_PARTITIONS", other)]).await;
        let client = backend.client();
        for status in [
            client.publish_one(message_on(&topic)).await.unwrap_err(),
            client.query(&[(topic.clone(), 0)], 0).await.unwrap_err(),
            client.query_newest(std::slice::from_ref(&topic), false).await.unwrap_err(),
        ] {
            assert_eq!(status.code(), Code::Unavailable);
            assert!(status.message().contains("LOG_PARTITIONS"), "{}", status.message());
        }
    }

    backend.restart(&[("LOG_PARTITIONS", "2")]).await;
    let client = backend.client();
    assert_eq!(client.publish_one(envelope).await.unwrap(), published);
    assert_eq!(client.read(&topic, 0).await.unwrap().len(), 1);
}

/// A deployment with a setting that makes no sense does not start to serve, and says which it is.
#[tokio::test]
async fn api_281_settings_that_make_no_sense_are_refused_by_name() {
    for (name, value) in [
        ("LOG_PARTITIONS", "0"),
        ("LOG_PARTITIONS", "many"),
        ("MAX_ENVELOPE_BYTES", "26214400"),
        ("MAX_REQUEST_BYTES", "26214401"),
        ("DEFAULT_QUERY_LIMIT", "1001"),
        ("RETENTION_WELCOME_SECONDS", "0"),
        ("MAX_QUERY_TOPIC", "10"), // nearly a setting
    ] {
        let error = Workerd::start(&[(name, value)]).await.expect_err("the deployment does not serve");
        let text = format!("{error:#}");
        assert!(text.contains("grpc-status: 14") && text.contains(name), "{name} = {value}: {text}");
    }
}
