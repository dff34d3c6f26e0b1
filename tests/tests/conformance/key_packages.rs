//! Sections 3 and 3.1: which key packages are valid, and that a stored one stays so.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openmls::prelude::Lifetime;
use sealog_proto::backend::{ClientEnvelope, KeyPackage, client_envelope::Payload, publish_error::Reason};
use sealog_tests::backend::Backend;
use sealog_tests::fixtures::Person;
use tokio::time::sleep;

use crate::support::{assert_refused, fresh_group, message_on};

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// The package with one byte of it changed, counted from its end.
fn tampered(package: &ClientEnvelope, from_end: usize) -> ClientEnvelope {
    let Some(Payload::KeyPackage(package)) = &package.payload else { panic!("a key package") };
    let mut bytes = package.key_package_tls_serialized.to_vec();
    let at = bytes.len() - 1 - from_end;
    bytes[at] ^= 1;
    let payload = Payload::KeyPackage(KeyPackage { key_package_tls_serialized: bytes.into() });
    ClientEnvelope { payload: Some(payload) }
}

#[tokio::test]
async fn api_230_sec_012_foreign_and_broken_signatures_are_refused() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let (alice, bob) = (Person::new("Alice").unwrap(), Person::new("Bob").unwrap());
    let foreign = alice.key_package_signed_by(&bob).unwrap();
    assert_refused(client.publish_one(foreign).await, Some(0), Reason::InvalidKeyPackage);

    let package = alice.key_package().unwrap();
    // From the end: the outer signature, a key among the package's own extensions, the leaf's signature, and the
    // application id in the leaf.
    for from_end in [0, 63, 100, 1_000, 1_302, 1_365, 1_400] {
        let answer = client.publish_one(tampered(&package, from_end)).await;
        assert_refused(answer, Some(0), Reason::InvalidKeyPackage);
    }
    assert_eq!(client.query_newest(&[alice.key_package_topic()], false).await.unwrap(), []);
    client.publish_one(package).await.expect("as it was signed");
}

/// JOIN-008.
#[tokio::test]
async fn api_230_a_lifetime_must_have_begun_and_must_not_be_over() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let person = Person::new("Una").unwrap();
    let now = now_seconds();
    for (not_before, not_after) in
        [(now - 7_200, now - 3_600), (now + 3_600, now + 7_200), (now + 3_600, now - 3_600), (0, 1), (0, 0)]
    {
        let package = person.key_package_with(Lifetime::init(not_before, not_after)).unwrap();
        assert_refused(client.publish_one(package).await, Some(0), Reason::InvalidKeyPackage);
    }
    for (not_before, not_after) in [(0, u64::MAX), (now - 60, now + 60)] {
        let package = person.key_package_with(Lifetime::init(not_before, not_after)).unwrap();
        client.publish_one(package).await.expect("within its lifetime");
    }
}

#[tokio::test]
async fn api_222_a_package_that_expired_after_it_was_stored_is_still_a_duplicate() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let person = Person::new("Vic").unwrap();
    let lifetime = || Lifetime::init(now_seconds() - 60, now_seconds() + 3);
    let (stored, late) =
        (person.key_package_with(lifetime()).unwrap(), person.key_package_with(lifetime()).unwrap());
    let meta = client.publish_one(stored.clone()).await.expect("within its lifetime");
    sleep(Duration::from_secs(4)).await;
    assert_refused(client.publish_one(late.clone()).await, Some(0), Reason::InvalidKeyPackage);

    assert_eq!(client.publish_one(stored.clone()).await.unwrap(), meta);
    // Beside a new envelope, and beside one that fails: the index is that of the other.
    let batch = vec![message_on(&fresh_group()), stored.clone()];
    assert_eq!(client.publish(batch).await.unwrap()[1], meta);
    let batch = vec![stored.clone(), late, stored];
    assert_refused(client.publish(batch).await, Some(1), Reason::InvalidKeyPackage);
}

/// A check that needs more than the bytes may fail below one that does not.
#[tokio::test]
async fn api_223_the_lowest_index_is_named_whatever_check_fails() {
    let backend = Backend::shared().await;
    let client = backend.client();
    let group = fresh_group();
    let broken = tampered(&Person::new("Wim").unwrap().key_package().unwrap(), 0);
    let malformed = ClientEnvelope { payload: None };
    let (good, also_good) = (message_on(&group), message_on(&group));
    let batch = vec![good.clone(), broken.clone(), malformed.clone()];
    assert_refused(client.publish(batch).await, Some(1), Reason::InvalidKeyPackage);
    let batch = vec![good, malformed, broken, also_good];
    assert_refused(client.publish(batch).await, Some(1), Reason::MalformedPayload);
    assert!(client.read(&group, 0).await.unwrap().is_empty(), "nothing of it is stored");
}
