//! Signatures of smart-contract wallets: only a chain can tell whether they are good (contract, API-231;
//! SEC-040 to 045).
//!
//! Each chain of the setting `CHAINS` has one node, which is asked over JSON-RPC, always about a numbered
//! block: the verdict then has a meaning that does not change. [`Chains`] says where, [`Question`] what, and
//! [`Verifier`] asks.
//!
//! An answer is a verdict only when it is exactly what the validator returns, or clearly an EVM revert.
//! Everything else, from a dead connection to an answer that makes no sense, is a [`ChainError`]: nobody may
//! take it for a verdict.

mod account;
mod cache;
mod http;
mod question;
mod routes;
pub mod rpc;

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use serde::Serialize;

use self::cache::Answers;
pub use self::{
    account::{Account, AccountError, Address},
    http::HttpError,
    question::Question,
    routes::{Chains, ChainsError},
};

/// A block of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// How many blocks were before it.
    pub number: u64,
    /// When it was made, in seconds since the Unix epoch, as its maker says.
    pub timestamp: u64,
}

/// The block at which a question is asked, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// The request names this block. The answer is remembered (SEC-043).
    Block(u64),
    /// The request names none, and this was the head when it was asked for. The answer is neither remembered
    /// nor taken from memory.
    Head(u64),
}

impl At {
    /// The number of the block.
    pub const fn number(self) -> u64 {
        match self {
            Self::Block(number) | Self::Head(number) => number,
        }
    }
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The account's signature.
    Valid,
    /// The account says no.
    Refused,
    /// The account's code, or the code that should make it, reverted.
    Reverted,
}

impl Finding {
    /// Whether the signature counts.
    pub const fn is_valid(self) -> bool {
        matches!(self, Self::Valid)
    }
}

/// Why a chain gave no answer. All of it may pass, and none of it is a verdict (API-231).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("eip155:{chain}: {failure}")]
pub struct ChainError {
    /// The number of the chain.
    pub chain: u64,
    /// What happened.
    pub failure: ChainFailure,
}

/// What kept a chain from answering. The texts name no address (SEC-051).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainFailure {
    /// `CHAINS` has no entry for it.
    #[error("this deployment has no access to the chain")]
    NoRoute,
    /// No answer came, or not a whole one.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// What came is no answer to what was asked.
    #[error("the node's answer makes no sense")]
    Garbled,
    /// The node says that it failed.
    #[error("the node failed with the code {0}")]
    Node(i64),
    /// No node runs creation code that is longer (EIP-3860).
    #[error("no chain can be asked about a signature that long")]
    TooLong,
    /// The node does not have the block, or not any more (SEC-045).
    #[error("the node does not know the block")]
    UnknownBlock,
}

/// Asks the chains. One for each isolate: it remembers what it was told.
#[derive(Debug)]
pub struct Verifier {
    chains: Chains,
    /// For one answer.
    timeout: Duration,
    /// The id of the next request.
    next_id: Cell<u64>,
    answers: RefCell<Answers>,
}

impl Verifier {
    /// Asks these nodes, and gives each so much time for an answer.
    pub fn new(chains: Chains, timeout: Duration) -> Self {
        Self { chains, timeout, next_id: Cell::new(1), answers: RefCell::new(Answers::new()) }
    }

    /// Fails when a question can never be asked. To be found out before others cost calls.
    pub fn check(&self, question: &Question) -> Result<(), ChainError> {
        let chain = question.chain;
        self.url(chain)?;
        if question.is_too_long() {
            return Err(ChainError { chain, failure: ChainFailure::TooLong });
        }
        Ok(())
    }

    /// The newest block of a chain. Always asks.
    pub async fn head(&self, chain: u64) -> Result<Block, ChainError> {
        self.read_block(chain, None).await
    }

    /// The block of this number. Always asks.
    pub async fn block(&self, chain: u64, number: u64) -> Result<Block, ChainError> {
        self.read_block(chain, Some(number)).await
    }

    /// The verdict on a signature in the state at a block.
    pub async fn verdict(&self, question: &Question, at: At) -> Result<Finding, ChainError> {
        self.check(question)?;
        let known = self.answers.borrow_mut().get(question, at);
        if let Some(finding) = known {
            return Ok(finding);
        }
        let params = rpc::call_params(question, at.number());
        let (id, body) = self.ask(question.chain, rpc::CALL, &params).await?;
        let finding = rpc::read_finding(id, &body).map_err(|unusable| unusable.of(question.chain))?;
        self.answers.borrow_mut().put(question, at, finding);
        Ok(finding)
    }

    async fn read_block(&self, chain: u64, number: Option<u64>) -> Result<Block, ChainError> {
        let (id, body) = self.ask(chain, rpc::BLOCK, &rpc::block_params(number)).await?;
        let block = rpc::read_block(id, number, &body).map_err(|unusable| unusable.of(chain))?;
        block.ok_or(ChainError { chain, failure: ChainFailure::UnknownBlock })
    }

    /// Makes one request, and gives its id and the answer.
    async fn ask(
        &self,
        chain: u64,
        method: &str,
        params: &impl Serialize,
    ) -> Result<(u64, Vec<u8>), ChainError> {
        let url = self.url(chain)?;
        let id = self.next_id.replace(self.next_id.get() + 1);
        let answer = http::post(url, &rpc::request(id, method, params), self.timeout).await;
        let body = answer.map_err(|error| ChainError { chain, failure: error.into() })?;
        Ok((id, body))
    }

    fn url(&self, chain: u64) -> Result<&str, ChainError> {
        self.chains.url(chain).ok_or(ChainError { chain, failure: ChainFailure::NoRoute })
    }
}

impl rpc::Unusable {
    fn of(self, chain: u64) -> ChainError {
        let failure = match self {
            Self::Garbled => ChainFailure::Garbled,
            Self::Error(code) => ChainFailure::Node(code),
        };
        ChainError { chain, failure }
    }
}
