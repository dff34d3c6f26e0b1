//! The questions of an identity update that only a chain can answer (IDENT-060 to 062).

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt, stream};
use sealog_admission::{
    Rejection,
    identity::{WalletQuestion, freshness},
};

use crate::{
    chain::{self, At, ChainError, Verifier},
    error::Status,
    fan_out::WIDTH,
};

/// Why the questions have no answers.
pub(super) enum Unanswered {
    /// The update is refused.
    Rejected(Rejection),
    /// Nobody can tell now (API-231).
    Outage(Status),
}

impl From<ChainError> for Unanswered {
    fn from(error: ChainError) -> Self {
        Self::Outage(error.into())
    }
}

/// The verdict on each question, in order.
///
/// A new update's blocks must be fresh; that is found out first, and each head and block is read once. A stored one's
/// blocks are as old as it is.
pub(super) async fn verdicts(
    verifier: &Verifier,
    questions: &[WalletQuestion],
    is_new: bool,
) -> Result<Vec<bool>, Unanswered> {
    let asked = questions
        .iter()
        .map(|question| Some((chain_question(question)?, At::Block(question.block_number))))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Unanswered::Outage(Status::invariant()))?; // the form of addresses is checked before
    asked.iter().try_for_each(|(question, _)| verifier.check(question))?;
    if is_new {
        check_fresh(verifier, questions).await?;
    }
    stream::iter(&asked)
        .map(|(question, at)| async { Ok(verifier.verdict(question, *at).await?.is_valid()) })
        .buffered(WIDTH)
        .try_collect()
        .await
}

fn chain_question(question: &WalletQuestion) -> Option<chain::Question> {
    let WalletQuestion { chain_id, address, hash, signature, .. } = question;
    chain::Question::new(*chain_id, address, *hash, signature.clone())
}

async fn check_fresh(verifier: &Verifier, questions: &[WalletQuestion]) -> Result<(), Unanswered> {
    let mut blocks: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for question in questions {
        blocks.entry(question.chain_id).or_default().insert(question.block_number);
    }
    for (chain, numbers) in blocks {
        let head = freshness_block(verifier.head(chain).await?);
        for number in numbers {
            freshness::check_number(number, head).map_err(Unanswered::Rejected)?;
            let block = if number == head.number {
                head
            } else {
                freshness_block(verifier.block(chain, number).await?)
            };
            freshness::check_age(block, head).map_err(Unanswered::Rejected)?;
        }
    }
    Ok(())
}

const fn freshness_block(block: chain::Block) -> freshness::Block {
    freshness::Block { number: block.number, timestamp: block.timestamp }
}
