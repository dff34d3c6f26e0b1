//! `IdentityService/GetInboxIds` (API-270, API-299).

use bytes::Bytes;
use prost::Message;
use sealog_admission::{identity, inbox_id_text};
use sealog_proto::{
    backend::{GetInboxIdsRequest, GetInboxIdsResponse, get_inbox_ids_request, get_inbox_ids_response},
    internal::LookupKey,
};

use super::more_than;
use crate::{config::Limits, deployment::Deployment, directories, error::Status, transport::answer::Answer};

/// Field number of `GetInboxIdsRequest.requests`.
const REQUESTS: u32 = 1;

pub(super) async fn serve(deployment: &Deployment, message: Bytes) -> Result<Answer, Status> {
    let config = &deployment.config;
    let (entries, keys) = read(message, &config.limits)?;
    let inbox_ids = directories::look_up(deployment, keys).await?;
    let responses = entries.into_iter().zip(inbox_ids).map(|(entry, inbox_id)| {
        let get_inbox_ids_request::Request { identifier, identifier_kind } = entry;
        let inbox_id = inbox_id.as_deref().map(inbox_id_text);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sealog_proto::{associations::IdentifierKind, status::Code};

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

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_invalid(message: Vec<u8>) {
            if let Err(status) = read(message.into(), &limits()) {
                prop_assert_eq!(status.code, Code::InvalidArgument);
            }
        }
    }
}
