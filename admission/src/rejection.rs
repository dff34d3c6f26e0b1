//! Every way in which an envelope fails admission, and the contract's reason for each.

use sealog_proto::backend::publish_error::Reason;
use thiserror::Error;

use crate::identity::IdentityRejection;
use crate::key_package::KeyPackageFault;
use crate::mls::SyntaxError;

/// Why an envelope is not stored. The text tells a client developer what to change; it names no identifier (SEC-051).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Rejection {
    /// `ClientEnvelope.payload` is unset, or of a kind that came after this backend.
    #[error("the envelope has no payload that this backend knows: set exactly one member of `payload`")]
    NoPayload,

    /// `GroupMessage.data` does not parse.
    #[error(
        "GroupMessage.data is no MLSMessage with a PublicMessage or PrivateMessage (RFC 9420 section 6): {0}"
    )]
    GroupMessage(SyntaxError),
    /// The group id has another length than a topic needs.
    #[error("the MLS group id has {0} bytes: create the group with an id of 16 bytes")]
    GroupIdLength(usize),

    /// `WelcomeMessage.version` is unset, or of a version that came after this backend.
    #[error("WelcomeMessage.version is unset: set `v1` or `welcome_pointer`")]
    NoWelcomeVersion,
    /// The destination has another length than a topic needs.
    #[error("the installation key of the Welcome has {0} bytes: it needs 32")]
    WelcomeKeyLength(usize),

    /// `key_package_tls_serialized` does not parse, or something follows it.
    #[error("key_package_tls_serialized is not exactly one KeyPackage (RFC 9420 section 10): {0}")]
    KeyPackage(SyntaxError),
    /// The leaf node's signature key has another length than a topic needs.
    #[error(
        "the leaf node's signature key has {0} bytes: use a cipher suite whose signature keys have 32 bytes"
    )]
    SignatureKeyLength(usize),

    /// The key package parses, and is not valid.
    #[error("the key package is not valid: {0}")]
    InvalidKeyPackage(#[from] KeyPackageFault),

    /// `IdentityUpdate.inbox_id` is not 64 hexadecimal characters.
    #[error("IdentityUpdate.inbox_id is not 64 hexadecimal characters")]
    InboxId,
    /// The update has more actions than signatures are verified for.
    #[error("the identity update has more than {max} actions: split it over several publishes")]
    TooManyActions {
        /// The most that is verified, a setting.
        max: usize,
    },
    /// The envelopes of the request together carry more signatures than are verified for one request.
    #[error(
        "the request makes the backend verify more than {max} signatures: split it over several publishes"
    )]
    TooMuchWork {
        /// The most that is verified, a setting.
        max: usize,
    },
    /// An earlier envelope of the request is another update of the same inbox (API-233).
    #[error("the request already carries another update of this inbox: publish one, then the next")]
    SecondUpdateOfInbox,

    /// The update is none that the rules for identities admit.
    #[error(transparent)]
    Identity(#[from] IdentityRejection),

    /// `serialized_commit_log_entry` does not decode.
    #[error("serialized_commit_log_entry is no PlaintextCommitLogEntry: serialize one into it")]
    CommitLogEntry,
    /// The group id has another length than a topic needs.
    #[error("the group id of the commit-log entry has {0} bytes: it needs 16")]
    CommitLogGroupIdLength(usize),

    /// The stored form of the envelope would be over the bound.
    #[error("the envelope has {actual} bytes re-encoded: at most {max} are stored")]
    EnvelopeTooLong {
        /// Bytes of the envelope, re-encoded.
        actual: usize,
        /// `max_envelope_bytes`.
        max: usize,
    },
}

impl Rejection {
    /// The reason that the admission table or the bounds table names.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::NoPayload
            | Self::GroupMessage(_)
            | Self::GroupIdLength(_)
            | Self::NoWelcomeVersion
            | Self::WelcomeKeyLength(_)
            | Self::KeyPackage(_)
            | Self::SignatureKeyLength(_)
            | Self::InboxId
            | Self::CommitLogEntry
            | Self::CommitLogGroupIdLength(_) => Reason::MalformedPayload,
            Self::InvalidKeyPackage(_) => Reason::InvalidKeyPackage,
            Self::Identity(rejection) => rejection.reason(),
            Self::SecondUpdateOfInbox => Reason::InvalidIdentityUpdate,
            Self::TooManyActions { .. } | Self::TooMuchWork { .. } | Self::EnvelopeTooLong { .. } => {
                Reason::TooLarge
            }
        }
    }
}
