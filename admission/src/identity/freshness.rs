//! How old the block may be that a wallet's signature is judged at (IDENT-062).
//!
//! For updates that are not stored yet, per signature and before the wallet is asked. Never for a stored log.

use super::IdentityRejection;
use crate::Rejection;

/// The most that a block may be older than the head of its chain, in seconds.
pub const MAX_AGE_SECONDS: u64 = 1_800;

/// A block of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number.
    pub number: u64,
    /// Seconds since the Unix epoch.
    pub timestamp: u64,
}

/// First: the block must not lie above the head. Needs no look at the block itself.
pub fn check_number(block_number: u64, head: Block) -> Result<(), Rejection> {
    if block_number > head.number { Err(IdentityRejection::BlockAboveHead.into()) } else { Ok(()) }
}

/// Then: the block must not be too old, nor stamped after the head, which tells of reads on two sides of a
/// reorganisation.
pub fn check_age(block: Block, head: Block) -> Result<(), Rejection> {
    match head.timestamp.checked_sub(block.timestamp) {
        Some(0..=MAX_AGE_SECONDS) => Ok(()),
        _ => Err(IdentityRejection::BlockNotRecent.into()),
    }
}
