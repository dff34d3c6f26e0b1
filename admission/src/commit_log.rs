//! Commit-log entries: the plaintext entry must decode and name a group. The signature is kept unread (SEC-015).

use prost::Message;
use sealog_proto::backend::CommitLogEntry;
use sealog_proto::message_contents::PlaintextCommitLogEntry;
use sealog_proto::{Kind, Topic};

use crate::Rejection;

pub(crate) fn topic(entry: &CommitLogEntry) -> Result<Topic, Rejection> {
    let plaintext = PlaintextCommitLogEntry::decode(entry.serialized_commit_log_entry.clone())
        .map_err(|_| Rejection::CommitLogEntry)?;
    Topic::derive(Kind::CommitLog, &plaintext.group_id)
        .map_err(|_| Rejection::CommitLogGroupIdLength(plaintext.group_id.len()))
}
