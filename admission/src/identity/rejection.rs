//! Every way in which an identity update fails, with its reason and the rule that it broke.

use sealog_proto::backend::publish_error::Reason;
use thiserror::Error;

/// Why an identity update is not stored. The text tells a client developer what to change; it names no identifier
/// (SEC-051).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IdentityRejection {
    // ---- bounds ----
    /// More signatures than are verified for one update.
    #[error("the identity update carries more than {max} signatures: split it over several publishes")]
    TooManySignatures {
        /// A setting.
        max: usize,
    },
    /// More signatures of contract wallets than chains are asked about for one update.
    #[error(
        "the identity update carries more than {max} erc_6492 signatures: split it over several publishes"
    )]
    TooManyWalletSignatures {
        /// A setting.
        max: usize,
    },
    /// The log of the inbox is full (API-234).
    #[error("the inbox already has {max} identity updates, and takes no more")]
    LogFull {
        /// `max_identity_entries`.
        max: u64,
    },

    // ---- structure ----
    /// IDENT-001.
    #[error("the identity update has no actions: put at least one into it")]
    NoActions,
    /// IDENT-001.
    #[error("an action has no kind that this backend knows: set exactly one member of `kind`")]
    NoActionKind,
    /// IDENT-001.
    #[error("an action names no member: set exactly one member of `MemberIdentifier.kind`")]
    NoMember,
    /// IDENT-001. The retired member 4 counts as none.
    #[error(
        "an action lacks a signature: set one of `erc_191`, `erc_6492`, `installation_key` and `passkey`"
    )]
    NoSignature,
    /// IDENT-013.
    #[error(
        "an Ethereum address is not 0x and 40 lowercase hexadecimal digits: sign and send it in that form"
    )]
    AddressForm,
    /// A passkey given as text is no hexadecimal.
    #[error("an identifier of kind passkey is not the hexadecimal form of a public key")]
    PasskeyHex,
    /// A handle founds nothing and recovers nothing.
    #[error("a handle can be neither founder nor recovery identifier: use an address or a passkey")]
    HandleAsIdentifier,
    /// `ClaimHandle`, where handles are off.
    #[error("handles cannot be claimed on this backend: leave out `claim_handle`")]
    HandlesOff,
    /// The handle does not match the grammar.
    #[error(
        "a handle is 1 to 32 of a-z, 0-9 and _, not beginning with a digit, then at most a dot and 2 to 9 digits"
    )]
    HandleGrammar,
    /// More than one `ClaimHandle`.
    #[error("the identity update claims two handles: claim one")]
    SecondClaim,

    // ---- signatures ----
    /// IDENT-030.
    #[error(
        "an erc_191 signature is not r, s and a recovery byte of 0, 1, 27 or 28, or r or s is out of range"
    )]
    EcdsaForm,
    /// IDENT-030.
    #[error("no public key can be recovered from an erc_191 signature")]
    EcdsaRecovery,
    /// IDENT-030.
    #[error("an installation signature needs a key of 32 bytes and a signature of 64")]
    InstallationForm,
    /// IDENT-030.
    #[error(
        "an installation signature is not an Ed25519ph signature of the update's text with the context `IDENTITY UPDATE SIGNATURE`"
    )]
    InstallationSignature,
    /// IDENT-030.
    #[error("the client data of a passkey signature is not a JSON object with a challenge and an origin")]
    PasskeyClientData,
    /// IDENT-030.
    #[error("the challenge of a passkey signature is not the update's text in base64url without padding")]
    PasskeyChallenge,
    /// IDENT-030.
    #[error("the public key of a passkey signature is not a SEC1 point of P-256")]
    PasskeyKey,
    /// IDENT-030.
    #[error("the signature of a passkey is not DER")]
    PasskeySignatureForm,
    /// IDENT-030.
    #[error("the signature of a passkey does not verify")]
    PasskeySignature,
    /// IDENT-060.
    #[error("the account id of an erc_6492 signature is not eip155:<chain id>:<address> (CAIP-10)")]
    AccountId,
    /// IDENT-060.
    #[error("a contract wallet does not accept the signature at the block that is stated with it")]
    WalletRefused,
    /// IDENT-062.
    #[error("the block of an erc_6492 signature is above the head of its chain: state a block that exists")]
    BlockAboveHead,
    /// IDENT-062.
    #[error("the block of an erc_6492 signature is more than 30 minutes old: sign at a recent block")]
    BlockNotRecent,

    // ---- associations ----
    /// IDENT-011.
    #[error("the inbox does not exist: its first action must be `create_inbox`")]
    NotCreated,
    /// IDENT-011.
    #[error("the inbox exists already: leave out `create_inbox`")]
    AlreadyCreated,
    /// IDENT-012.
    #[error("`create_inbox` is not signed by the initial identifier, or its signature is over another text")]
    FounderSignature,
    /// IDENT-050.
    #[error("a signature was used by an earlier update of the inbox: sign this update")]
    Replay,
    /// IDENT-040.
    #[error("an addition is not signed by the new member, or its signature is over another text")]
    NewMemberSigner,
    /// IDENT-040.
    #[error("a member cannot add itself: let an existing member sign")]
    AddsItself,
    /// IDENT-040.
    #[error("an added identifier is a member already")]
    AlreadyMember,
    /// IDENT-040.
    #[error(
        "an action is signed by neither a member nor the recovery identifier, or its signature is over another text"
    )]
    UnknownSigner,
    /// IDENT-041.
    #[error("an installation cannot add an installation: let a wallet or a passkey sign")]
    InstallationAddsInstallation,
    /// IDENT-046.
    #[error("a signer is recorded with another chain, or as a key: sign the way it was added")]
    OtherChain,
    /// IDENT-043, IDENT-045.
    #[error(
        "a revocation or change of recovery is not signed by the recovery identifier, or its signature is over another text"
    )]
    NotRecovery,
    /// IDENT-003.
    #[error("`inbox_id` is not the id of the inbox that the actions belong to, in lowercase")]
    InboxIdMismatch,
    /// IDENT-080.
    #[error("the inbox has claimed as many handles as it can")]
    TooManyClaims,

    // ---- handles, for new claims only ----
    /// API-297.
    #[error("the name part of the handle is reserved: choose another")]
    HandleReserved,
    /// API-297.
    #[error("the name part of the handle is shorter than {min} characters: choose another")]
    HandleTooShort {
        /// `HandlesConfiguration.min_name_length`.
        min: usize,
    },
    /// API-296.
    #[error("another inbox has claimed the handle: choose another")]
    HandleTaken,
    /// API-298.
    #[error("the inbox claimed a handle less than 7 days ago: try again later")]
    HandleTooSoon,
}

impl IdentityRejection {
    /// The reason that the contract names.
    pub const fn reason(self) -> Reason {
        match self {
            Self::TooManySignatures { .. } | Self::TooManyWalletSignatures { .. } => Reason::TooLarge,
            Self::EcdsaForm
            | Self::EcdsaRecovery
            | Self::InstallationForm
            | Self::InstallationSignature
            | Self::PasskeyClientData
            | Self::PasskeyChallenge
            | Self::PasskeyKey
            | Self::PasskeySignatureForm
            | Self::PasskeySignature
            | Self::AccountId
            | Self::WalletRefused
            | Self::BlockAboveHead
            | Self::BlockNotRecent => Reason::InvalidSignature,
            Self::HandleTaken => Reason::HandleTaken,
            Self::HandleReserved | Self::HandleTooShort { .. } => Reason::HandleNotAllowed,
            Self::HandleTooSoon => Reason::HandleTooSoon,
            Self::LogFull { .. }
            | Self::NoActions
            | Self::NoActionKind
            | Self::NoMember
            | Self::NoSignature
            | Self::AddressForm
            | Self::PasskeyHex
            | Self::HandleAsIdentifier
            | Self::HandlesOff
            | Self::HandleGrammar
            | Self::SecondClaim
            | Self::NotCreated
            | Self::AlreadyCreated
            | Self::FounderSignature
            | Self::Replay
            | Self::NewMemberSigner
            | Self::AddsItself
            | Self::AlreadyMember
            | Self::UnknownSigner
            | Self::InstallationAddsInstallation
            | Self::OtherChain
            | Self::NotRecovery
            | Self::InboxIdMismatch
            | Self::TooManyClaims => Reason::InvalidIdentityUpdate,
        }
    }
}
