//! One publish over many partitions is one transaction.

use std::collections::HashSet;

use openmls::prelude::PURE_CIPHERTEXT_WIRE_FORMAT_POLICY;
use sealog_proto::backend::client_envelope::Payload;
use sealog_tests::client::{sequence_id, topic_of};
use sealog_tests::fixtures::Person;

use crate::support::{PARTITIONS, a_group_on_each_partition, ids, message_on, shared};

/// A commit that adds seven people, as openmls makes it, in one publish with the Welcomes.
#[tokio::test]
async fn api_220_221_a_commit_and_its_welcomes_are_stored_together_over_8_partitions() {
    let backend = shared().await;
    let client = backend.client();
    let alice = Person::new("Alice").unwrap();
    let invited: Vec<Person> = (0..7).map(|i| Person::new(&format!("Bob {i}")).unwrap()).collect();
    let packages: Vec<_> = invited
        .iter()
        .map(|person| {
            let Some(Payload::KeyPackage(package)) = person.key_package().unwrap().payload else {
                panic!("a key package")
            };
            alice.check_key_package(&package.key_package_tls_serialized).unwrap()
        })
        .collect();
    let mut seat = alice.create_group(PURE_CIPHERTEXT_WIRE_FORMAT_POLICY).unwrap();
    let invitation = seat.invite(&packages).unwrap();
    let mut topics = vec![seat.topic()];
    topics.extend(invited.iter().map(Person::welcome_topic));
    let partitions: HashSet<u32> = topics.iter().map(|topic| topic.partition(PARTITIONS)).collect();
    assert!(
        partitions.len() > 1,
        "one in two million runs meets eight topics on one partition: run it again"
    );

    let publish = [vec![invitation.commit], invitation.welcomes].concat();
    let metas = client.publish(publish.clone()).await.unwrap();
    assert_eq!(metas.len(), topics.len());
    let mut named: Vec<_> = metas[1..].iter().map(topic_of).collect();
    assert_eq!(topic_of(&metas[0]), topics[0]);
    named.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    topics[1..].sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    assert_eq!(named, topics[1..], "each Welcome has its topic");
    assert!(metas.iter().all(|meta| meta.server_ns == metas[0].server_ns), "one transaction, one time");
    for (envelope, meta) in publish.iter().zip(&metas) {
        let stored = client.read(&topic_of(meta), 0).await.unwrap();
        assert_eq!(stored.len(), 1);
        assert_eq!((stored[0].meta.as_ref(), stored[0].envelope.as_ref()), (Some(meta), Some(envelope)));
    }
}

/// Wide and narrow publishes by turns: each gets greater ids than all that were visible before it, on every topic.
#[tokio::test]
async fn api_221_289_a_later_publish_has_greater_ids_on_every_partition() {
    let backend = shared().await;
    let topics = a_group_on_each_partition();
    let mut highest = 0;
    for round in 0..16 {
        let client = backend.client(); // another connection each time
        let turned = topics.iter().cycle().skip(3 * round).take(1 + round % topics.len());
        let publish: Vec<_> = turned.clone().map(message_on).collect();
        let metas = client.publish(publish).await.unwrap();
        assert!(metas.iter().map(topic_of).eq(turned.cloned()), "entries in the order of the request");
        assert!(metas.iter().all(|meta| meta.server_ns == metas[0].server_ns), "one transaction, one time");
        let given = ids(&metas);
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len());
        assert!(given.iter().all(|id| *id > highest), "{given:?} after {highest} was visible");
        highest = *given.iter().max().unwrap();
        // API-202: another client reads it at once.
        for meta in &metas {
            let id = sequence_id(meta);
            let page = backend.client().query(&[(topic_of(meta), id - 1)], 0).await.unwrap();
            assert_eq!(page.envelopes.iter().filter_map(|e| e.meta.as_ref()).collect::<Vec<_>>(), [meta]);
        }
    }
}
