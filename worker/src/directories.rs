//! Looking keys up at the Directories: one call for each that keeps some of them, however many keys there are.

use std::collections::BTreeMap;

use bytes::Bytes;
use sealog_log::directory;
use sealog_proto::{
    internal::{LookupKey, LookupReply, LookupRequest},
    status::Code,
};

use crate::{
    deployment::Deployment,
    error::Status,
    fan_out::{Call, WIDTH},
    services::call_all,
};

/// The identifier, 32 bytes, of the inbox that each key leads to, in order; none for those that lead nowhere.
pub(crate) async fn look_up(
    deployment: &Deployment,
    keys: Vec<Option<LookupKey>>,
) -> Result<Vec<Option<Bytes>>, Status> {
    let lookups = Lookups::spread(keys, deployment.config.directory_partitions);
    let mut replies = Vec::with_capacity(lookups.calls.len());
    for wave in lookups.calls.chunks(WIDTH) {
        let wave = call_all(wave, |directory, request| deployment.store.lookup(directory, request)).await?;
        replies.extend(wave);
    }
    lookups.gather(&replies)
}

/// One call per Directory, and where the result of each entry stands.
struct Lookups {
    calls: Vec<Call<LookupRequest>>,
    places: Vec<Option<(usize, usize)>>,
}

impl Lookups {
    fn spread(keys: Vec<Option<LookupKey>>, directories: u32) -> Self {
        let mut this = Self { calls: Vec::new(), places: Vec::with_capacity(keys.len()) };
        let mut call_of = BTreeMap::new();
        for key in keys {
            let place = key.map(|key| {
                let directory = directory::partition_of(&key, directories);
                let call = *call_of.entry(directory).or_insert_with(|| {
                    this.calls.push(Call { partition: directory, request: LookupRequest::default() });
                    this.calls.len() - 1
                });
                let asked = &mut this.calls[call].request.keys;
                asked.push(key);
                (call, asked.len() - 1)
            });
            this.places.push(place);
        }
        this
    }

    /// The result of each key, in order.
    fn gather(&self, replies: &[LookupReply]) -> Result<Vec<Option<Bytes>>, Status> {
        let result = |place: &Option<(usize, usize)>| {
            let Some((call, at)) = *place else { return Ok(None) };
            let result = replies.get(call).and_then(|reply| reply.results.get(at)).ok_or_else(|| {
                Status::new(Code::Internal, "a Directory answered against its rules: it left an entry out")
            })?;
            Ok(result.inbox_id.clone())
        };
        self.places.iter().map(result).collect()
    }
}

#[cfg(test)]
mod tests {
    use sealog_proto::{associations::IdentifierKind, internal::lookup_reply};

    use super::*;

    #[test]
    fn api_270_answers_return_to_their_index_and_each_directory_is_called_once() {
        let address = |n: u32| format!("0x{n:040x}");
        let keys = (0..250).map(|n| {
            let never = n % 50 == 49; // such an identifier is asked of nobody
            (!never).then(|| LookupKey {
                kind: IdentifierKind::Ethereum.into(),
                key: address(n).into_bytes().into(),
            })
        });
        let lookups = Lookups::spread(keys.collect(), 4);
        assert_eq!(lookups.calls.len(), 4);
        let echo = |key: &LookupKey| lookup_reply::Result { inbox_id: Some(key.key.clone()) };
        let replies: Vec<LookupReply> = lookups
            .calls
            .iter()
            .map(|call| LookupReply { results: call.request.keys.iter().map(echo).collect() })
            .collect();
        for (n, inbox_id) in (0..).zip(lookups.gather(&replies).unwrap()) {
            let expected = (n % 50 != 49).then(|| Bytes::from(address(n)));
            assert_eq!(inbox_id, expected);
        }
        assert_eq!(lookups.gather(&replies[1..]).unwrap_err().code, Code::Internal);
    }
}
