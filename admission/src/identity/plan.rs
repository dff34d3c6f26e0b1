//! The first phase: everything that the update alone decides.

use sealog_proto::associations::{IdentityUpdate, Signature, signature};

use super::signature::{Form, SignedText};
use super::state::Verified;
use super::{IdentityRejection, WalletQuestion, signature_text, structure};
use crate::{Rejection, identity_update};

/// What an update is held to beyond the rules that every validator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Signatures of one update at most, identical ones counted as often as they are carried.
    pub max_signatures: usize,
    /// Signatures of contract wallets among them at most.
    pub max_wallet_signatures: usize,
    /// Whether handles can be claimed.
    pub handles: bool,
}

impl Rules {
    /// For updates that are stored already, when their facts have to be established again.
    pub const STORED: Self =
        Self { max_signatures: usize::MAX, max_wallet_signatures: usize::MAX, handles: true };
}

/// An update whose structure and local signatures are sound.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) update: Verified,
    questions: Vec<WalletQuestion>,
    signature_count: usize,
}

impl Plan {
    /// What the chains must be asked, each question once. All answers go to [`decide`](super::decide()).
    pub fn questions(&self) -> &[WalletQuestion] {
        &self.questions
    }

    /// Distinct signatures, the wallets' among them.
    pub fn signature_count(&self) -> usize {
        self.signature_count
    }

    /// The inbox, as the update spells it.
    pub fn inbox_id(&self) -> &str {
        &self.update.inbox_id
    }
}

/// Judges the update by itself: bounds, structure, account ids, and every signature that needs no chain. Pure.
pub fn plan(update: &IdentityUpdate, rules: &Rules) -> Result<Plan, Rejection> {
    identity_update::topic(update)?;
    check_bounds(update, rules)?;
    let structure = structure::read(update, rules)?;
    let text = signature_text(&update.inbox_id, update.client_timestamp_ns, &structure.actions);
    let text = SignedText::new(text);
    // Every form before the first curve operation: all faults of signatures have one reason.
    let forms: Vec<Form<'_>> = structure
        .signatures
        .iter()
        .map(|signature| Form::read(signature, &text))
        .collect::<Result<_, _>>()?;
    let mut questions = Vec::new();
    let mut signatures = Vec::with_capacity(forms.len());
    for form in forms {
        if let Form::Wallet(question) = &form
            && !questions.contains(question)
        {
            questions.push(question.clone());
        }
        signatures.push(form.verify(&text)?);
    }
    Ok(Plan {
        signature_count: signatures.len(),
        questions,
        update: Verified {
            inbox_id: update.inbox_id.clone(),
            client_timestamp_ns: update.client_timestamp_ns,
            actions: structure.actions,
            signatures,
        },
    })
}

fn check_bounds(update: &IdentityUpdate, rules: &Rules) -> Result<(), IdentityRejection> {
    let max = rules.max_signatures;
    if structure::carried(update).count() > max {
        return Err(IdentityRejection::TooManySignatures { max });
    }
    check_wallet_signatures(update, rules.max_wallet_signatures)
}

/// The bound on `erc_6492` signatures in one update. The contract has it in the table of bounds (section 7), so that a
/// duplicate is held to it too (API-222), unlike to everything else that [`plan`] checks.
pub(crate) fn check_wallet_signatures(update: &IdentityUpdate, max: usize) -> Result<(), IdentityRejection> {
    let is_wallet =
        |carried: &&Signature| matches!(carried.signature, Some(signature::Signature::Erc6492(_)));
    if structure::carried(update).filter(is_wallet).count() > max {
        return Err(IdentityRejection::TooManyWalletSignatures { max });
    }
    Ok(())
}
