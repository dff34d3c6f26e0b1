//! Identity updates: addressed by their inbox id, in hexadecimal of either case (TOPIC-002).

use sealog_proto::associations::IdentityUpdate;
use sealog_proto::{Kind, Topic};

use crate::Rejection;

pub(crate) fn topic(update: &IdentityUpdate) -> Result<Topic, Rejection> {
    let mut inbox_id = [0; 32];
    match base16ct::mixed::decode(&update.inbox_id, &mut inbox_id) {
        Ok(decoded) => Topic::derive(Kind::IdentityUpdate, decoded).map_err(|_| Rejection::InboxId),
        Err(_) => Err(Rejection::InboxId),
    }
}

/// The id of the inbox whose identity topic has this identifier: lowercase hexadecimal.
pub fn inbox_id_text(identifier: &[u8]) -> String {
    base16ct::lower::encode_string(identifier)
}
