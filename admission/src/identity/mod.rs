//! Identity updates: may this update extend the log of its inbox (IDENT-001 to IDENT-062, contract section 3.1).
//!
//! Two phases, because contract wallets live on chains and this crate has no I/O:
//!
//! 1. [`plan`] looks at the update alone: structure, bounds, and every signature that can be verified here. What is
//!    left are [`WalletQuestion`]s, each with a block that [`freshness`] judges.
//! 2. [`decide`] takes the answers and the [`State`] of the inbox, applies the association rules, and returns what is
//!    to be stored beside the update.
//!
//! The state is never stored as such: it is the [`fold`](State::fold) of the facts of every entry of the log, in order.
//! Handles pass further checks ([`handle`], [`State::check_claim_time`]) that no stored log is held to (IDENT-084).
//!
//! # Order of verdicts
//! Bounds; structure; account ids; signatures; wallets; association rules. Signatures come before association rules
//! (SEC-020), and their cheap checks before the expensive ones.

mod decide;
mod facts;
pub mod freshness;
pub mod handle;
mod identifier;
mod lookup;
mod plan;
mod rejection;
mod signature;
mod state;
mod structure;
mod text;

pub use decide::{Decision, decide};
pub use facts::FoldError;
pub use freshness::Block;
pub use identifier::Identifier;
pub use lookup::{LookupError, LookupKey, lookup_key};
pub(crate) use plan::check_wallet_signatures;
pub use plan::{Plan, Rules, plan};
pub use rejection::IdentityRejection;
pub use signature::{Evidence, INSTALLATION_CONTEXT, SignedText, WalletQuestion, verify};
pub use state::{Associations, Change, Effects, MAX_CLAIMS, Member, State};
pub use structure::Action;
pub use text::signature_text;
