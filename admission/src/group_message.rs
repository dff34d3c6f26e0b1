//! Group messages: the framing of an `MLSMessage`, and nothing that would need a group key (SEC-002, SEC-003).

use sealog_proto::backend::GroupMessage;
use sealog_proto::{Kind, Topic};

use crate::mls::{self, ContentType, Reader};
use crate::{Rejection, Route};

/// Bytes after the message are accepted, and stored with it (SEC-010).
pub(crate) fn route(message: &GroupMessage) -> Result<Route, Rejection> {
    let frame = mls::group_frame(&mut Reader::new(&message.data)).map_err(Rejection::GroupMessage)?;
    let topic = Topic::derive(Kind::GroupMessage, frame.group_id)
        .map_err(|_| Rejection::GroupIdLength(frame.group_id.len()))?;
    let is_commit_or_proposal = match frame.content_type {
        ContentType::Application => false,
        ContentType::Proposal | ContentType::Commit => true,
    };
    Ok(Route { topic, is_commit_or_proposal })
}
