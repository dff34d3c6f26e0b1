//! `IdentityService/GetInboxIds` (API-270, API-299).

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use sealog_admission::{identity, inbox_id_text};
use sealog_log::directory;
use sealog_proto::{
    backend::{GetInboxIdsRequest, GetInboxIdsResponse, get_inbox_ids_request, get_inbox_ids_response},
    internal::{LookupKey, LookupReply, LookupRequest},
    status::Code,
};

use super::{call_all, more_than};
use crate::{
    config::Limits,
    deployment::Deployment,
    error::Status,
    fan_out::{Call, WIDTH},
    transport::answer::Answer,
};

/// Field number of `GetInboxIdsRequest.requests`.
const REQUESTS: u32 = 1;

pub(super) async fn serve(deployment: &Deployment, message: Bytes) -> Result<Answer, Status> {
    let config = &deployment.config;
    let (entries, keys) = read(message, &config.limits)?;
    let lookups = Lookups::spread(keys, config.directory_partitions);
    let mut replies = Vec::with_capacity(lookups.calls.len());
    for wave in lookups.calls.chunks(WIDTH) {
        let wave = call_all(wave, |directory, request| deployment.store.lookup(directory, request)).await?;
        replies.extend(wave);
    }
    let inbox_ids = lookups.gather(&replies)?;
    let responses = entries.into_iter().zip(inbox_ids).map(|(entry, inbox_id)| {
        let get_inbox_ids_request::Request { identifier, identifier_kind } = entry;
        get_inbox_ids_response::Response { identifier, identifier_kind, inbox_id }
    });
    let response = GetInboxIdsResponse { responses: responses.collect() };
    Answer::success(&response, config.limits.publish.max_response_bytes)
}

/// The entries as sent, and the key of each; none where nothing can ever be associated.
type Read = (Vec<get_inbox_ids_request::Request>, Vec<Option<LookupKey>>);

fn read(message: Bytes, limits: &Limits) -> Result<Read, Status> {
    let most = limits.max_lookup_identifiers;
    if more_than(most, &message, REQUESTS) {
        return Err(Status::invalid(format!("at most {most} identifiers are looked up in one GetInboxIds")));
    }
    let request = GetInboxIdsRequest::decode(message)?;
    let key = |(index, entry): (usize, &get_inbox_ids_request::Request)| {
        let key = identity::lookup_key(&entry.identifier, entry.identifier_kind)
            .map_err(|error| Status::invalid(format!("requests[{index}]: {error}")))?;
        Ok::<_, Status>(key.map(|key| LookupKey { kind: key.kind.into(), key: key.key }))
    };
    let keys = request.requests.iter().enumerate().map(key).collect::<Result<_, _>>()?;
    Ok((request.requests, keys))
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

    /// The inbox id of each entry, in order.
    fn gather(&self, replies: &[LookupReply]) -> Result<Vec<Option<String>>, Status> {
        let result = |place: &Option<(usize, usize)>| {
            let Some((call, at)) = *place else { return Ok(None) };
            let result = replies.get(call).and_then(|reply| reply.results.get(at)).ok_or_else(|| {
                Status::new(Code::Internal, "a Directory answered against its rules: it left an entry out")
            })?;
            Ok(result.inbox_id.as_deref().map(inbox_id_text))
        };
        self.places.iter().map(result).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sealog_proto::{associations::IdentifierKind, internal::lookup_reply};

    use super::*;
    use crate::config::Config;

    fn limits() -> Limits {
        let settings = [("LOG_PARTITIONS", "8"), ("MAX_LOOKUP_IDENTIFIERS", "3")];
        Config::read(settings.map(|(name, value)| (name.to_owned(), value.to_owned()))).unwrap().limits
    }

    fn entry(identifier: &str, kind: IdentifierKind) -> get_inbox_ids_request::Request {
        get_inbox_ids_request::Request { identifier: identifier.to_owned(), identifier_kind: kind.into() }
    }

    fn try_read(requests: Vec<get_inbox_ids_request::Request>) -> Result<Read, Status> {
        read(GetInboxIdsRequest { requests }.encode_to_vec().into(), &limits())
    }

    #[test]
    fn api_281_entries_are_bounded() {
        let one = entry("0xabc", IdentifierKind::Ethereum);
        assert!(try_read(vec![one.clone(); 3]).is_ok());
        assert_eq!(try_read(vec![one; 4]).unwrap_err().code, Code::InvalidArgument);
    }

    #[test]
    fn api_299_one_handle_against_the_grammar_fails_the_request_and_is_named() {
        let good = entry("alice", IdentifierKind::Handle);
        let status = try_read(vec![good, entry("al ice", IdentifierKind::Handle)]).unwrap_err();
        assert_eq!(status.code, Code::InvalidArgument);
        assert!(status.message.starts_with("requests[1]: "), "{}", status.message);
    }

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
        let echo = |key: &LookupKey| lookup_reply::Result {
            inbox_id: Some(key.key.slice(10..42)), // the end of the address stands for the inbox
        };
        let replies: Vec<LookupReply> = lookups
            .calls
            .iter()
            .map(|call| LookupReply { results: call.request.keys.iter().map(echo).collect() })
            .collect();
        for (n, inbox_id) in (0..).zip(lookups.gather(&replies).unwrap()) {
            let expected = (n % 50 != 49).then(|| inbox_id_text(&address(n).as_bytes()[10..]));
            assert_eq!(inbox_id, expected);
        }
        assert_eq!(lookups.gather(&replies[1..]).unwrap_err().code, Code::Internal);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_invalid(message: Vec<u8>) {
            if let Err(status) = read(message.into(), &limits()) {
                prop_assert_eq!(status.code, Code::InvalidArgument);
            }
        }
    }
}
