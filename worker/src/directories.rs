//! Looking keys up at the Directories: one call for each that keeps some of them, however many keys there are.

use bytes::Bytes;
use sealog_log::directory;
use sealog_proto::internal::{LookupKey, LookupRequest};

use crate::{
    deployment::Deployment,
    error::Status,
    fan_out::{Spread, WIDTH},
    services::call_all,
};

/// The identifier, 32 bytes, of the inbox that each key leads to, in order; none for those that lead nowhere.
pub(crate) async fn look_up(
    deployment: &Deployment,
    keys: Vec<Option<LookupKey>>,
) -> Result<Vec<Option<Bytes>>, Status> {
    let mut inbox_ids = vec![None; keys.len()];
    let directories = deployment.config.directory_partitions;
    let questions = keys.into_iter().enumerate().filter_map(|(place, key)| {
        let key = key?;
        Some((directory::partition_of(&key, directories), place, key))
    });
    let lookups = Spread::new(questions, |keys| LookupRequest { keys });
    let mut replies = Vec::with_capacity(lookups.calls.len());
    for wave in lookups.calls.chunks(WIDTH) {
        let wave = call_all(wave, |directory, request| deployment.store.lookup(directory, request)).await?;
        replies.extend(wave);
    }
    for (place, result) in lookups.answers(replies.into_iter().map(|reply| reply.results))? {
        inbox_ids[place] = result.inbox_id;
    }
    Ok(inbox_ids)
}
