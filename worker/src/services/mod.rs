//! The methods that are served. Each takes the request message and gives the encoded answer.

use std::future::Future;

use bytes::Bytes;
use futures::future::try_join_all;
use sealog_proto::wire;

use crate::{deployment::Deployment, error::Status, fan_out::Call, route::Method, transport::answer::Answer};

mod get_inbox_ids;
mod health;
mod publish;
mod query;
mod query_newest;
pub mod subscribe;
mod verify_signatures;

/// Serves one call.
pub async fn serve(method: Method, deployment: &Deployment, message: Bytes) -> Result<Answer, Status> {
    match method {
        Method::Publish => publish::serve(deployment, message).await,
        Method::Query => query::serve(deployment, message).await,
        Method::QueryNewest => query_newest::serve(deployment, message).await,
        Method::GetInboxIds => get_inbox_ids::serve(deployment, message).await,
        Method::VerifySmartContractWalletSignatures => verify_signatures::serve(deployment, message).await,
        Method::HealthCheck => health::serve(deployment, message).await,
    }
}

/// Whether the field `number` is there more than `most` times. Asked before decoding: an empty entry takes two bytes on
/// the wire and many more in memory.
fn more_than(most: usize, message: &Bytes, number: u32) -> bool {
    let entries = wire::fields(message.clone()).map_while(Result::ok).filter(|field| field.number == number);
    entries.take(most + 1).count() > most
}

/// Makes the calls of a wave, all at once, and gives their replies in its order. The first failure fails the wave.
pub(crate) async fn call_all<Request: Clone, Reply, Calling>(
    wave: &[Call<Request>],
    call: impl Fn(u32, Request) -> Calling,
) -> Result<Vec<Reply>, Status>
where
    Calling: Future<Output = Result<Reply, Status>>,
{
    try_join_all(wave.iter().map(|item| call(item.partition, item.request.clone()))).await
}
