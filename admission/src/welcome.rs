//! Welcomes: a version must be set, and its destination must be 32 bytes. Nothing else is judged (SEC-014).

use sealog_proto::backend::{WelcomeMessage, welcome_message::Version};
use sealog_proto::{Kind, Topic};

use crate::Rejection;

pub(crate) fn topic(welcome: &WelcomeMessage) -> Result<Topic, Rejection> {
    let installation_key = match welcome.version.as_ref().ok_or(Rejection::NoWelcomeVersion)? {
        Version::V1(welcome) => &welcome.installation_key,
        Version::WelcomePointer(pointer) => &pointer.installation_key,
    };
    Topic::derive(Kind::Welcome, installation_key)
        .map_err(|_| Rejection::WelcomeKeyLength(installation_key.len()))
}
