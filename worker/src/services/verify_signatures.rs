//! `IdentityService/VerifySmartContractWalletSignatures` (API-271).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use prost::Message;
use sealog_proto::{
    backend::{
        VerifySmartContractWalletSignaturesRequest, VerifySmartContractWalletSignaturesResponse,
        verify_smart_contract_wallet_signatures_request::Signature,
        verify_smart_contract_wallet_signatures_response::Response,
    },
    status::Code,
};

use super::more_than;
use crate::{
    chain::{Account, At, ChainError, Finding, Question, Verifier},
    deployment::Deployment,
    error::Status,
    fan_out::WIDTH,
    transport::answer::Answer,
};

/// Field number of `VerifySmartContractWalletSignaturesRequest.signatures`.
const SIGNATURES: u32 = 1;

pub(super) async fn serve(deployment: &Deployment, message: Bytes) -> Result<Answer, Status> {
    let limits = &deployment.config.limits;
    let entries = read(message, limits.publish.max_wallet_signatures)?;
    let verdicts = verdicts(&deployment.verifier, &entries).await?;
    let responses = verdicts.into_iter().map(response).collect();
    let answer = VerifySmartContractWalletSignaturesResponse { responses };
    Answer::success(&answer, limits.publish.max_response_bytes)
}

/// A question, and the block that the request names for it.
type Entry = (Question, Option<u64>);

/// The entries of a request, `most` of them at most.
fn read(message: Bytes, most: usize) -> Result<Vec<Entry>, Status> {
    if more_than(most, &message, SIGNATURES) {
        return Err(Status::invalid(format!("at most {most} signatures are verified in one request")));
    }
    let request = VerifySmartContractWalletSignaturesRequest::decode(message)?;
    let entries =
        request.signatures.into_iter().enumerate().map(|(index, signature)| entry(index, signature));
    // All are read before one is found to be of a chain that cannot be asked: what is malformed never gets a
    // verdict.
    let entries: Vec<Option<Entry>> = entries.collect::<Result<_, _>>()?;
    entries.into_iter().collect::<Option<_>>().ok_or_else(|| {
        Status::new(
            Code::Unavailable,
            "an account_id is of another namespace than eip155: no chain of it can be asked",
        )
    })
}

/// One entry, or `None` when its account is on a chain of another namespace.
fn entry(index: usize, signature: Signature) -> Result<Option<Entry>, Status> {
    let Signature { account_id, block_number, hash, signature } = signature;
    let account = Account::parse(&account_id)
        .map_err(|error| Status::invalid(format!("signatures[{index}]: {error}")))?;
    let hash = hash.as_ref().try_into().map_err(|_| {
        Status::invalid(format!("signatures[{index}]: hash has {} bytes, not 32", hash.len()))
    })?;
    Ok(match account {
        Account::Evm { chain, address } => Some((Question { chain, address, hash, signature }, block_number)),
        Account::Foreign => None,
    })
}

/// A verdict for each entry, in order. Each chain's head is read once, and equal entries are asked about once.
async fn verdicts(verifier: &Verifier, entries: &[Entry]) -> Result<Vec<(Finding, u64)>, ChainError> {
    entries.iter().try_for_each(|(question, _)| verifier.check(question))?;

    let unnumbered = entries.iter().filter(|(_, block)| block.is_none());
    let chains: BTreeSet<u64> = unnumbered.map(|(question, _)| question.chain).collect();
    let heads: BTreeMap<u64, u64> = stream::iter(chains)
        .map(async |chain| Ok((chain, verifier.head(chain).await?.number)))
        .buffered(WIDTH)
        .try_collect()
        .await?;

    let at = |(question, block): &Entry| block.map_or_else(|| At::Head(heads[&question.chain]), At::Block);
    let distinct: BTreeSet<(&Question, At)> = entries.iter().map(|entry| (&entry.0, at(entry))).collect();
    let found: BTreeMap<(&Question, At), Finding> = stream::iter(distinct)
        .map(async |(question, at)| Ok(((question, at), verifier.verdict(question, at).await?)))
        .buffered(WIDTH)
        .try_collect()
        .await?;
    Ok(entries.iter().map(|entry| (found[&(&entry.0, at(entry))], at(entry).number())).collect())
}

fn response((finding, block): (Finding, u64)) -> Response {
    let error = match finding {
        Finding::Valid => None,
        Finding::Refused => Some("the account does not accept the signature"),
        Finding::Reverted => Some("the account's contract, or the call that should create it, reverted"),
    };
    Response { is_valid: finding.is_valid(), block_number: Some(block), error: error.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACCOUNT: &str = "eip155:1:0xaAbBcC0000000000000000000000000000000001";

    fn signature(account_id: &str, hash: &[u8]) -> Signature {
        Signature {
            account_id: account_id.to_owned(),
            hash: Bytes::copy_from_slice(hash),
            signature: Bytes::from_static(b"s"),
            block_number: None,
        }
    }

    fn try_read(signatures: Vec<Signature>) -> Result<Vec<Entry>, Status> {
        read(VerifySmartContractWalletSignaturesRequest { signatures }.encode_to_vec().into(), 3)
    }

    #[test]
    fn api_281_entries_are_bounded() {
        let good = signature(ACCOUNT, &[7; 32]);
        assert_eq!(try_read(Vec::new()), Ok(Vec::new()));
        assert_eq!(try_read(vec![good.clone(); 3]).unwrap().len(), 3);
        assert_eq!(try_read(vec![good; 4]).unwrap_err().code, Code::InvalidArgument);
    }

    #[test]
    fn api_271_an_entry_is_a_question_and_a_block() {
        let numbered = Signature { block_number: Some(0), ..signature(ACCOUNT, &[7; 32]) };
        let entries = try_read(vec![signature(ACCOUNT, &[7; 32]), numbered]).unwrap();
        let question = Question::new(1, &ACCOUNT[9..], [7; 32], Bytes::from_static(b"s")).unwrap();
        assert_eq!(entries, [(question.clone(), None), (question, Some(0))], "block 0 is a block");
    }

    #[test]
    fn api_271_a_malformed_entry_fails_the_request_and_is_named() {
        let good = || signature(ACCOUNT, &[7; 32]);
        let foreign = || signature("cosmos:hub-1:abc", &[7; 32]);
        for bad in [
            signature("", &[7; 32]),
            signature(&ACCOUNT[..50], &[7; 32]),
            signature(ACCOUNT, &[7; 31]),
            signature(ACCOUNT, &[7; 33]),
            signature(ACCOUNT, &[]),
            signature("cosmos:hub-1:abc", &[]),
        ] {
            let status = try_read(vec![good(), foreign(), bad]).unwrap_err();
            assert_eq!(status.code, Code::InvalidArgument);
            assert!(status.message.starts_with("signatures[2]: "), "{}", status.message);
        }
        assert_eq!(try_read(vec![good(), foreign()]).unwrap_err().code, Code::Unavailable);
    }

    #[test]
    fn api_271_an_invalid_signature_is_an_answer() {
        assert_eq!(
            response((Finding::Valid, 5)),
            Response { is_valid: true, block_number: Some(5), error: None }
        );
        for finding in [Finding::Refused, Finding::Reverted] {
            let response = response((finding, 0));
            assert_eq!((response.is_valid, response.block_number), (false, Some(0)));
            assert!(response.error.is_some());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_invalid(message: Vec<u8>) {
            if let Err(status) = read(message.into(), 3) {
                prop_assert!(matches!(status.code, Code::InvalidArgument | Code::Unavailable));
            }
        }
    }
}
