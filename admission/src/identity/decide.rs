//! The second phase: the answers of the chains, and the association rules.

use bytes::Bytes;

use super::{Effects, IdentityRejection, Plan, State, facts};
use crate::Rejection;

/// What goes with an update that may be stored as the next entry of its inbox's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// An encoded `internal.IdentityFacts`, for [`State::fold`].
    pub facts: Bytes,
    /// What the Directories hear of it.
    pub effects: Effects,
}

/// Applies the update to the state of its inbox. `verdicts` are the wallets' answers, in the order of
/// [`Plan::questions`]. Pure: the state moves on when the stored entry is folded.
///
/// # Panics
/// When there is not one verdict for each question.
pub fn decide(plan: &Plan, verdicts: &[bool], state: &State) -> Result<Decision, Rejection> {
    assert_eq!(verdicts.len(), plan.questions().len(), "one verdict for each question");
    if verdicts.contains(&false) {
        return Err(IdentityRejection::WalletRefused.into());
    }
    let effects = state.clone_and_apply(&plan.update)?;
    Ok(Decision { facts: facts::encode(&plan.update), effects })
}
