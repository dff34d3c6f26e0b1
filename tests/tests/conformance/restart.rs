//! What a restart keeps, and what a changed setting does.

use sealog_proto::associations::IdentifierKind;
use sealog_tests::backend::{Backend, Var};
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

/// Topics and identifiers would be looked for where they are not. No call works, the health check neither (OPS-005).
#[tokio::test]
async fn api_281_another_number_of_partitions_is_refused_by_name() {
    const CREATED: &[Var<'static>] = &[("LOG_PARTITIONS", "2"), ("DIRECTORY_PARTITIONS", "2")];
    let mut backend = Backend::start(CREATED).await;
    let topic = fresh_group();
    let envelope = message_on(&topic);
    let published = backend.client().publish_one(envelope.clone()).await.unwrap();

    for (name, other) in [("LOG_PARTITIONS", "1"), ("LOG_PARTITIONS", "3"), ("DIRECTORY_PARTITIONS", "3")] {
        let changed: Vec<_> = CREATED
            .iter()
            .map(|(setting, is)| (*setting, if *setting == name { other } else { is }))
            .collect();
        backend.restart_refusing(&changed).await;
        let client = backend.client();
        for status in [
            client.health("").await.unwrap_err(),
            client.publish_one(message_on(&topic)).await.unwrap_err(),
            client.query(&[(topic.clone(), 0)], 0).await.unwrap_err(),
            client.query_newest(std::slice::from_ref(&topic), false).await.unwrap_err(),
            client.inbox_ids(&[("alice", IdentifierKind::Handle)]).await.unwrap_err(),
            client.health("").await.unwrap_err(),
        ] {
            assert_eq!(status.code(), Code::Unavailable);
            assert!(status.message().starts_with(name), "{}", status.message());
        }
    }

    backend.restart(CREATED).await;
    let client = backend.client();
    assert_eq!(client.publish_one(envelope).await.unwrap(), published);
    assert_eq!(client.read(&topic, 0).await.unwrap().len(), 1);
}

/// Who only asks whether it serves must not decide how it is built.
#[tokio::test]
async fn ops_005_a_health_check_fixes_no_number_of_partitions() {
    let mut backend = Backend::start(&[("LOG_PARTITIONS", "2"), ("DIRECTORY_PARTITIONS", "2")]).await;
    backend.client().health("").await.unwrap();
    backend.restart(&[("LOG_PARTITIONS", "3"), ("DIRECTORY_PARTITIONS", "1")]).await;
    backend.client().publish_one(message_on(&fresh_group())).await.unwrap();
}

/// A deployment with a setting that makes no sense does not start to serve, and says which it is.
#[tokio::test]
async fn api_281_settings_that_make_no_sense_are_refused_by_name() {
    for (name, value) in [
        ("LOG_PARTITIONS", "0"),
        ("LOG_PARTITIONS", "many"),
        ("DIRECTORY_PARTITIONS", "257"),
        ("MAX_ENVELOPE_BYTES", "26214400"),
        ("MAX_REQUEST_BYTES", "26214401"),
        ("DEFAULT_QUERY_LIMIT", "1001"),
        ("RETENTION_WELCOME_SECONDS", "0"),
        ("HANDLES", "yes"),
        ("CHAINS", "{\"eip155:1\": 1}"),
        ("CHAIN_TIMEOUT_MS", "5s"),
        ("KEEPALIVE_INTERVAL_MS", "0"),
        ("MAX_PONG_WAIT_MS", "30000"), // not more than the interval
        ("STATUS_TOKEN", "too short"),
        ("MAX_QUERY_TOPIC", "10"), // nearly a setting
    ] {
        let error = Workerd::start(&[(name, value)]).await.expect_err("the deployment does not serve");
        let text = format!("{error:#}");
        assert!(text.contains("grpc-status: 14") && text.contains(name), "{name} = {value}: {text}");
    }
}
