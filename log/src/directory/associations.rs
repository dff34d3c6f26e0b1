//! Identifiers and the inboxes that they are, or were, associated with.

use bytes::Bytes;
use sealog_proto::internal::{LookupKey, associate_request::Association};

use crate::{Fault, Param, Sql, blob8};

/// Enters a change, unless a newer one of the same inbox is there.
pub(super) fn set(sql: &dyn Sql, association: &Association) -> Result<(), Fault> {
    let Some(key) = &association.key else { return Ok(()) };
    Ok(sql.run(
        "INSERT INTO associations (kind, key, inbox_id, sequence_id, live) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (kind, key, inbox_id) DO UPDATE SET sequence_id = excluded.sequence_id, live = excluded.live
         WHERE sequence_id < excluded.sequence_id",
        &[
            Param::Integer(key.kind.into()),
            Param::Blob(&key.key),
            Param::Blob(&association.inbox_id),
            Param::Blob(&blob8(association.sequence_id)),
            Param::Integer(association.live.into()),
        ],
    )?)
}

/// The inbox whose association with an identifier is the newest of those that are live (API-270).
pub(super) fn newest(sql: &dyn Sql, key: &LookupKey) -> Result<Option<Bytes>, Fault> {
    let row = sql.first(
        "SELECT inbox_id FROM associations WHERE kind = ? AND key = ? AND live = 1
         ORDER BY sequence_id DESC LIMIT 1",
        &[Param::Integer(key.kind.into()), Param::Blob(&key.key)],
    )?;
    Ok(row.map(|row| row[0].blob()).transpose()?)
}
