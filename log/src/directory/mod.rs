//! A Directory partition: which inboxes an identifier is associated with (API-270), and which inbox holds which handle
//! (API-296). A participant without ids.
//!
//! Associations come from the outboxes of the log partitions, some time after their identity updates are stored. A
//! claim is different: it is staged here while its update is staged at the update's log partition, and the one decision
//! of the sequencer applies both. So two inboxes that claim a handle at the same time cannot both store.

mod associations;
mod claims;
mod member;
mod schema;

use sealog_proto::associations::IdentifierKind;
use sealog_proto::internal::{
    AssociateReply, AssociateRequest, LookupKey, LookupReply, LookupRequest, failure::Kind, lookup_reply,
};
use sha2::{Digest, Sha256};

use crate::participant::Seat;
pub use crate::participant::{Action, CallId, Machine, Reply};
use crate::{CommandError, Fault, Sql};
use claims::Holder;

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Directory {
    seat: Seat,
}

/// Which of `directories` Directory partitions keeps a key in its normal form (SEC-023).
///
/// A fixed hash of kind and key. It must never change: the rows are where it says.
///
/// # Panics
/// When there are no Directories.
pub fn partition_of(key: &LookupKey, directories: u32) -> u32 {
    let kind = u8::try_from(key.kind).unwrap_or(0); // kinds are few; whatever else comes has one place too
    let hash = Sha256::new_with_prefix([kind]).chain_update(&key.key).finalize();
    let start = hash[..8].iter().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    let index = start % u64::from(directories);
    u32::try_from(index).expect("an index is below a number of its kind")
}

impl Directory {
    /// Command `associate`: what identity updates did to identifiers.
    ///
    /// Idempotent, in any order: of two changes of one identifier by one inbox, that with the greater sequence id
    /// stands. Writes. Log partitions repeat it until it is answered, the repair until it succeeds.
    ///
    /// Claims come from the repair alone. One that contradicts a claim held here is refused, and nothing is written.
    pub fn associate(
        &self,
        sql: &dyn Sql,
        request: &AssociateRequest,
    ) -> Result<AssociateReply, CommandError> {
        for claim in &request.claims {
            match claims::held_by(sql, &claim.handle)? {
                Holder::Inbox(inbox) if inbox != claim.inbox_id => {
                    let message =
                        "two inboxes have claimed one handle: which of them holds it stays as it was";
                    return Err(CommandError::refused(Kind::Invariant, message));
                }
                // It may still be aborted. Beside it, a claim of another inbox would stand in its way for ever.
                Holder::Transaction => {
                    let message = "a handle is being claimed at this moment: repeat the repair";
                    return Err(CommandError::refused(Kind::Unavailable, message));
                }
                Holder::Inbox(_) | Holder::Nobody => {}
            }
        }
        sql.transaction(&mut || {
            for association in &request.associations {
                associations::set(sql, association)?;
            }
            request.claims.iter().try_for_each(|claim| claims::insert(sql, claim))
        })?;
        Ok(AssociateReply {})
    }
}

/// Command `lookup`: the inbox of each key (API-270, API-299). Writes nothing. Anybody may repeat it.
pub fn lookup(sql: &dyn Sql, request: &LookupRequest) -> Result<LookupReply, Fault> {
    let result = |key: &LookupKey| {
        let inbox_id = match key.kind() {
            IdentifierKind::Handle => claims::holder(sql, &key.key)?,
            _ => associations::newest(sql, key)?,
        };
        Ok(lookup_reply::Result { inbox_id })
    };
    Ok(LookupReply { results: request.keys.iter().map(result).collect::<Result<_, Fault>>()? })
}
