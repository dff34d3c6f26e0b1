//! Admission: may this envelope be stored, and on which topic (API-230).
//!
//! Pure: no clock, no storage, no JavaScript. This crate holds the checks that an envelope can be judged by on its
//! own bytes; [`admit`] runs them for one decoded envelope, [`read_publish`] for a whole request from its wire bytes.
//!
//! One file per kind says how that kind is parsed. [`Rejection`] lists every way in which it can fail, and maps each
//! to the contract's reason in one place.

mod commit_log;
mod group_message;
pub mod identity;
mod identity_update;
pub mod key_package;
mod mls;
mod rejection;
mod request;
mod welcome;

pub use identity_update::inbox_id_text;
pub use mls::SyntaxError;
pub use rejection::Rejection;
pub use request::{Publish, PublishLimits, PublishRefusal, read_publish};

use sealog_proto::Topic;
use sealog_proto::backend::{ClientEnvelope, client_envelope::Payload};
use sealog_proto::canonical::Canonical;

/// An envelope that may be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Where it belongs; its kind is the envelope's kind.
    pub topic: Topic,
    /// What is stored, and its hash (API-211).
    pub canonical: Canonical,
    /// Whether it is an MLS commit or proposal (API-212, SEC-011). Says nothing about who sent it.
    pub is_commit_or_proposal: bool,
}

/// Judges one envelope.
pub fn admit(envelope: &ClientEnvelope) -> Result<Admitted, Rejection> {
    let Route { topic, is_commit_or_proposal } = route(envelope)?;
    Ok(Admitted { topic, canonical: Canonical::of(envelope), is_commit_or_proposal })
}

/// What the payload's own bytes say.
struct Route {
    topic: Topic,
    is_commit_or_proposal: bool,
}

/// Parses the payload as its kind demands, and derives its topic.
fn route(envelope: &ClientEnvelope) -> Result<Route, Rejection> {
    let topic = match envelope.payload.as_ref().ok_or(Rejection::NoPayload)? {
        Payload::GroupMessage(message) => return group_message::route(message),
        Payload::WelcomeMessage(welcome) => welcome::topic(welcome)?,
        Payload::KeyPackage(package) => key_package::topic(package)?,
        Payload::IdentityUpdate(update) => identity_update::topic(update)?,
        Payload::CommitLogEntry(entry) => commit_log::topic(entry)?,
    };
    Ok(Route { topic, is_commit_or_proposal: false })
}
