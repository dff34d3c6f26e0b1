//! What the files of this suite have in common.

use sealog_proto::backend::verify_smart_contract_wallet_signatures_request::Signature;
use sealog_tests::backend::{Backend, Var};
use sealog_tests::chain::{Address, Contracts, Evm, Node, Signer, account_id, word};
use sealog_tests::fixtures::random;
use tonic::{Code, Status};

/// The number of every chain here, unless a test says otherwise.
pub(crate) const CHAIN: u64 = 31_337;

/// A chain, its node, and a backend that asks that node.
pub(crate) struct World {
    pub(crate) evm: Evm,
    pub(crate) node: Node,
    pub(crate) backend: Backend,
    /// A plain key, the owner of every wallet.
    pub(crate) owner: Signer,
}

impl World {
    pub(crate) async fn start(vars: &[Var<'_>]) -> Self {
        let evm = Evm::start(CHAIN).await;
        let node = Node::start(&evm).await;
        let chains = chains(&[(CHAIN, node.url())]);
        let backend = Backend::start(&[&[("CHAINS", chains.as_str())], vars].concat()).await;
        let owner = evm.signer(1).await;
        Self { evm, node, backend, owner }
    }

    /// A wallet of the owner that is there.
    pub(crate) async fn wallet(&self) -> Address {
        self.evm.deploy("Wallet", &[word(&self.owner.0)]).await
    }

    /// A fresh message, signed by the owner, as an account's entry.
    pub(crate) async fn signed(&self, account: &Address) -> Signature {
        let message = random::<16>();
        Signature {
            account_id: account_id(CHAIN, account),
            block_number: None,
            hash: self.evm.message_hash(&message).await.to_vec().into(),
            signature: self.evm.sign(self.owner, &message).await.into(),
        }
    }

    /// A factory, the address of a wallet that it can make, and the call that makes it.
    pub(crate) async fn unborn_wallet(&self) -> (Address, Address, Vec<u8>) {
        let factory = self.evm.deploy("Factory", &[]).await;
        let arguments = [word(&self.owner.0), random()];
        let call = |function| Contracts::get().call("Factory", function, &arguments);
        let returned = self.evm.view(&factory, &call("addressOf(address,bytes32)")).await;
        let address = returned[12..].try_into().expect("an address is the end of a word");
        (factory, address, call("deploy(address,bytes32)"))
    }

    /// The one verdict of a request: whether the signature is valid, and at which block.
    pub(crate) async fn verdict(&self, signature: Signature) -> (bool, u64) {
        let answer = self.try_verdict(signature).await;
        answer.unwrap_or_else(|status| panic!("there is a verdict: {status:?}"))
    }

    pub(crate) async fn try_verdict(&self, signature: Signature) -> Result<(bool, u64), Status> {
        let responses = self.backend.client().verify(vec![signature]).await?;
        assert_eq!(responses.len(), 1, "one response for one entry");
        let response = &responses[0];
        assert_eq!(response.error.is_none(), response.is_valid, "an invalid signature comes with a reason");
        Ok((response.is_valid, response.block_number.expect("the block is reported")))
    }

    /// Asserts that the node was called so often since the last time: calls of code, reads of blocks.
    #[track_caller]
    pub(crate) fn assert_calls(&self, calls: usize, blocks: usize) {
        let seen = self.node.calls();
        let count = |method: &str| seen.get(method).copied().unwrap_or_default();
        assert_eq!((count("eth_call"), count("eth_getBlockByNumber")), (calls, blocks), "{seen:?}");
        assert_eq!(seen.values().sum::<usize>(), calls + blocks, "nothing else is called: {seen:?}");
    }
}

/// The same entry, about a block.
pub(crate) fn at(block: u64, signature: &Signature) -> Signature {
    Signature { block_number: Some(block), ..signature.clone() }
}

/// The setting `CHAINS`.
pub(crate) fn chains(nodes: &[(u64, &str)]) -> String {
    let entries = nodes.iter().map(|(chain, url)| (format!("eip155:{chain}"), (*url).into()));
    serde_json::Value::Object(entries.collect()).to_string()
}

/// Asserts that there is no verdict, and that the text tells nothing of the node's address (SEC-051).
#[track_caller]
pub(crate) fn assert_no_verdict(answer: Result<(bool, u64), Status>) {
    let status = answer.expect_err("there is no verdict");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(!status.message().contains("127.0.0.1"), "{status:?}");
}
