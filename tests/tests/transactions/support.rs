//! What the files of this suite have in common.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sealog_proto::backend::{ClientEnvelope, EnvelopeMeta};
use sealog_proto::{Kind, Topic};
use sealog_tests::backend::{Backend, Shared, Var};
use sealog_tests::client::{Client, sequence_id};
use sealog_tests::fixtures::{fresh_topic_on, group_message};
use sealog_tests::status;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

/// As in the production example.
pub(crate) const PARTITIONS: u32 = 8;
/// The settings of this suite.
pub(crate) const VARS: &[Var<'static>] = &[("LOG_PARTITIONS", "8"), status::OPEN];

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// One request.
pub(crate) type Publish = Vec<ClientEnvelope>;
/// The same with its answer.
pub(crate) type Answered = (Publish, Vec<EnvelopeMeta>);

/// The backend with 8 partitions that the tests of this suite share.
pub(crate) async fn shared() -> Arc<Backend> {
    static SHARED: Shared = Shared::const_new(Weak::new());
    Backend::once(&SHARED, VARS).await
}

/// A group's message topic on each of the partitions, in their order.
pub(crate) fn a_group_on_each_partition() -> Vec<Topic> {
    (0..PARTITIONS).map(|partition| fresh_topic_on(Kind::GroupMessage, partition, PARTITIONS)).collect()
}

/// A small message, different each time.
pub(crate) fn message_on(topic: &Topic) -> ClientEnvelope {
    group_message(topic.identifier(), 48)
}

/// The sequence ids of a publish's answer, in its order.
pub(crate) fn ids(metas: &[EnvelopeMeta]) -> Vec<u64> {
    metas.iter().map(sequence_id).collect()
}

/// Publishes as a client does whose bytes must get through: after `UNAVAILABLE` and `DEADLINE_EXCEEDED` the same bytes
/// again, with longer and longer pauses.
///
/// # Panics
/// When they have not got through after `patience`, and on any other failure.
pub(crate) async fn publish_until_stored(
    client: &Client,
    publish: &Publish,
    patience: Duration,
) -> Vec<EnvelopeMeta> {
    let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        match client.publish(publish.clone()).await {
            Ok(metas) => return metas,
            Err(status) => {
                assert!(may_be_repeated(&status), "{status:?}");
                assert!(start.elapsed() < patience, "not stored after {patience:?}: {status:?}");
            }
        }
        sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        pause = (2 * pause).min(LAST_PAUSE);
    }
}

/// Whether the same bytes may be sent again.
pub(crate) fn may_be_repeated(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded)
}
