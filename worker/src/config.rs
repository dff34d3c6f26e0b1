//! The deployment's settings, checked once per isolate. A value that is wrong, unknown or contradicts another stops
//! every request with an error that names the setting (CONF-065).

use std::time::Duration;

use sealog_admission::PublishLimits;
use sealog_objects::StreamLimits;
use sealog_proto::Kind;
use sha2::{Digest, Sha256};

use crate::chain::Chains;
use settings::{MAX_COUNT, MAX_PARTITIONS, Settings};

mod settings;
mod streams;

/// What the metadata and the framing of a stored envelope may add to it (OPS-021).
const ENVELOPE_ALLOWANCE: u64 = 256;
/// A row of the store, and a frame of a stream, hold no more (OPS-021).
const MAX_ROW_BYTES: u64 = 2_097_152;
/// The key and the longest length prefix of an envelope inside a request.
const ENVELOPE_PREFIX: u64 = 5;

/// Why the settings are refused. The texts never hold a value: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No setting has this name.
    #[error("{0} is not a setting of sealog: remove it, or correct its name")]
    Unknown(String),
    /// A setting without a default is not there.
    #[error("{0} is not set: {1}")]
    Missing(&'static str, &'static str),
    /// The value is no number, or out of its range.
    #[error("{name} must be a whole number from {min} to {max}")]
    Number {
        /// The setting.
        name: &'static str,
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// The value does not go with another setting.
    #[error("{0} {1}")]
    Contradiction(&'static str, String),
    /// A binding to the objects is not there.
    #[error("{0}")]
    Binding(String),
}

/// Everything that an operator can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `LOG_PARTITIONS`: over how many objects the topics are spread. Fixed for the life of the deployment.
    pub log_partitions: u32,
    /// `DIRECTORY_PARTITIONS`: over how many objects identifiers and handles are spread. Fixed likewise.
    pub directory_partitions: u32,
    /// Bounds of requests and answers.
    pub limits: Limits,
    /// Bounds of streams.
    pub streams: StreamLimits,
    /// How long envelopes are kept at least.
    pub retention: Retention,
    /// `CHAINS`: the nodes that are asked about smart-contract wallets.
    pub chains: Chains,
    /// `CHAIN_TIMEOUT_MS`: how long a node may take for one answer.
    pub chain_timeout: Duration,
    /// `HANDLES`: whether inboxes can claim handles, and which.
    pub handles: Handles,
    /// `MAX_PUBLISH_DURATION_MS`: our own time limit for a publish.
    pub max_publish_duration: Duration,
    /// `STATUS_TOKEN`: opens the page for operators; without it the page does not exist.
    pub status_token: Option<TokenDigest>,
}

/// Bounds of requests and answers, as published (CONF-069).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bounds of a publish: `MAX_ENVELOPE_BYTES`, `MAX_REQUEST_BYTES`, `MAX_RESPONSE_BYTES`, `MAX_PUBLISH_TOPICS`,
    /// `MAX_SIGNATURES_PER_UPDATE`, `MAX_SCW_SIGNATURES`. `MAX_REQUEST_BYTES` and `MAX_RESPONSE_BYTES` are those of every
    /// request, `MAX_SCW_SIGNATURES` is also that of a call that verifies some.
    pub publish: PublishLimits,
    /// `MAX_QUERY_TOPICS`: entries of a Query.
    pub max_query_topics: usize,
    /// `MAX_QUERY_LIMIT`: envelopes on a page.
    pub max_query_limit: u32,
    /// `DEFAULT_QUERY_LIMIT`: envelopes on a page when the request names no number.
    pub default_query_limit: u32,
    /// `MAX_NEWEST_METADATA_TOPICS`: topics of a `QueryNewest` without envelopes.
    pub max_newest_metadata_topics: usize,
    /// `MAX_NEWEST_FULL_TOPICS`: topics of a `QueryNewest` with envelopes.
    pub max_newest_full_topics: usize,
    /// `MAX_LOOKUP_IDENTIFIERS`: entries of a `GetInboxIds`.
    pub max_lookup_identifiers: usize,
    /// `MAX_IDENTITY_ENTRIES`: identity updates of one inbox (API-234).
    pub max_identity_entries: u64,
    /// `MAX_SIGNATURES_PER_REQUEST`: signatures that one Publish makes us verify, over all its envelopes.
    pub max_signatures_per_request: usize,
}

/// The operator's policy on handles (API-297).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handles {
    /// `HANDLES`: `on` or `off`. Off, an update that claims one is refused.
    pub on: bool,
    /// `MIN_HANDLE_NAME_LENGTH`: characters of a handle's name part, at least.
    pub min_name_length: usize,
}

/// Seconds from storing an envelope to its expiry (OPS-001).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    group_message: u64,
    welcome: u64,
    key_package: u64,
}

impl Retention {
    /// The retention of one envelope; 0 = it never expires. Commits and proposals, identity updates and the commit
    /// log never do, whatever is set.
    pub fn seconds(self, kind: Kind, is_commit_or_proposal: bool) -> u64 {
        match kind {
            Kind::GroupMessage if !is_commit_or_proposal => self.group_message,
            Kind::Welcome => self.welcome,
            Kind::KeyPackage => self.key_package,
            Kind::GroupMessage | Kind::IdentityUpdate | Kind::CommitLog => 0,
        }
    }
}

/// A secret, known only by its SHA-256.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Compares in a time that tells nothing about the secret.
    pub fn matches(&self, token: &str) -> bool {
        let difference = self.0.iter().zip(Self::of(token).0).fold(0, |all, (a, b)| all | (a ^ b));
        difference == 0
    }
}

impl std::fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenDigest")
    }
}

impl Config {
    /// Reads and checks all settings, given as names and values.
    pub fn read(settings: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        let mut settings = Settings(settings.into_iter().collect());
        let log_partitions = settings.log_partitions()?;
        let limits = settings.limits()?;
        let config = Self {
            log_partitions,
            directory_partitions: settings.limit("DIRECTORY_PARTITIONS", 1, MAX_PARTITIONS)?,
            limits,
            streams: settings.streams(&limits)?,
            retention: Retention {
                group_message: settings.retention("RETENTION_GROUP_MESSAGE_SECONDS")?,
                welcome: settings.retention("RETENTION_WELCOME_SECONDS")?,
                key_package: settings.retention("RETENTION_KEY_PACKAGE_SECONDS")?,
            },
            chains: settings.chains()?,
            chain_timeout: Duration::from_millis(settings.number("CHAIN_TIMEOUT_MS", 5_000, 100, 60_000)?),
            handles: Handles {
                on: settings.switch("HANDLES", true)?,
                // A name part has 32 characters at most: with more nobody could claim one.
                min_name_length: settings.limit("MIN_HANDLE_NAME_LENGTH", 3, 32)? as usize,
            },
            max_publish_duration: Duration::from_millis(settings.number(
                "MAX_PUBLISH_DURATION_MS",
                10_000,
                100,
                600_000,
            )?),
            status_token: settings.token("STATUS_TOKEN")?,
        };
        match settings.0.into_keys().next() {
            Some(name) => Err(ConfigError::Unknown(name)),
            None => Ok(config),
        }
    }
}

impl Settings {
    fn limits(&mut self) -> Result<Limits, ConfigError> {
        let publish = PublishLimits {
            max_envelope_bytes: self.bytes("MAX_ENVELOPE_BYTES", 1_048_576)?,
            max_request_bytes: self.bytes("MAX_REQUEST_BYTES", 26_214_400)?,
            max_response_bytes: self.bytes("MAX_RESPONSE_BYTES", 26_214_400)?,
            max_publish_topics: self.count("MAX_PUBLISH_TOPICS", 1_000)?,
            max_update_actions: self.count("MAX_SIGNATURES_PER_UPDATE", 1_000)?,
            max_wallet_signatures: self.count("MAX_SCW_SIGNATURES", 100)?,
        };
        check_envelope_fits(&publish)?;
        let limits = Limits {
            publish,
            max_query_topics: self.count("MAX_QUERY_TOPICS", 1_000)?,
            max_query_limit: self.limit("MAX_QUERY_LIMIT", 1_000, MAX_COUNT)?,
            default_query_limit: self.limit("DEFAULT_QUERY_LIMIT", 100, MAX_COUNT)?,
            max_newest_metadata_topics: self.count("MAX_NEWEST_METADATA_TOPICS", 1_000)?,
            max_newest_full_topics: self.count("MAX_NEWEST_FULL_TOPICS", 100)?,
            max_lookup_identifiers: self.count("MAX_LOOKUP_IDENTIFIERS", 250)?,
            max_identity_entries: self.limit("MAX_IDENTITY_ENTRIES", 256, MAX_COUNT)?.into(),
            max_signatures_per_request: self.count("MAX_SIGNATURES_PER_REQUEST", 5_000)?,
        };
        if limits.default_query_limit > limits.max_query_limit {
            return Err(ConfigError::Contradiction(
                "DEFAULT_QUERY_LIMIT",
                format!("must not be greater than MAX_QUERY_LIMIT, {}", limits.max_query_limit),
            ));
        }
        Ok(limits)
    }
}

/// OPS-021: an envelope that is accepted can be stored, sent again and read.
fn check_envelope_fits(publish: &PublishLimits) -> Result<(), ConfigError> {
    let by_response =
        (publish.max_response_bytes as u64).min(MAX_ROW_BYTES).saturating_sub(ENVELOPE_ALLOWANCE);
    let by_request = (publish.max_request_bytes as u64).saturating_sub(ENVELOPE_PREFIX);
    let most = by_response.min(by_request);
    if publish.max_envelope_bytes as u64 > most {
        return Err(ConfigError::Contradiction(
            "MAX_ENVELOPE_BYTES",
            format!(
                "must not be greater than {most}: an envelope has to fit MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES and a row"
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn read(settings: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::read(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    pub(super) fn read_with(name: &str, value: &str) -> Result<Config, ConfigError> {
        read(&[("LOG_PARTITIONS", "8"), (name, value)])
    }

    pub(super) fn blames(result: Result<Config, ConfigError>, name: &str) -> bool {
        result.is_err_and(|error| error.to_string().starts_with(name))
    }

    #[test]
    fn the_defaults_are_those_of_the_published_table() {
        let config = read(&[("LOG_PARTITIONS", "8")]).unwrap();
        assert_eq!(config.log_partitions, 8);
        assert_eq!(config.limits.publish, PublishLimits::default());
        assert_eq!(config.limits.max_query_topics, 1_000);
        assert_eq!(config.limits.max_query_limit, 1_000);
        assert_eq!(config.limits.default_query_limit, 100);
        assert_eq!(config.limits.max_newest_metadata_topics, 1_000);
        assert_eq!(config.limits.max_newest_full_topics, 100);
        assert_eq!(config.limits.max_lookup_identifiers, 250);
        assert_eq!(config.limits.max_identity_entries, 256);
        assert_eq!(config.handles, Handles { on: true, min_name_length: 3 });
        assert_eq!(config.chains, Chains::default());
        assert_eq!(config.chain_timeout, Duration::from_secs(5));
        assert_eq!(config.max_publish_duration, Duration::from_secs(10));
        assert_eq!(config.status_token, None);
    }

    #[test]
    fn conf_065_every_refusal_names_the_setting() {
        assert!(blames(read(&[]), "LOG_PARTITIONS"));
        assert!(blames(read_with("MAX_QUERY_TOPIC", "5"), "MAX_QUERY_TOPIC "));
        for value in ["", "0", "-1", "1.5", "many", "99999999999999999999"] {
            assert!(blames(read(&[("LOG_PARTITIONS", value)]), "LOG_PARTITIONS"), "{value:?}");
            assert!(blames(read_with("MAX_QUERY_TOPICS", value), "MAX_QUERY_TOPICS"), "{value:?}");
        }
        assert!(blames(read(&[("LOG_PARTITIONS", "257")]), "LOG_PARTITIONS"));
        assert!(blames(read_with("STATUS_TOKEN", "short"), "STATUS_TOKEN"));
        assert!(blames(read_with("CHAINS", "https://node.example"), "CHAINS "));
        assert!(blames(read_with("CHAIN_TIMEOUT_MS", "99"), "CHAIN_TIMEOUT_MS"));
        assert!(blames(read_with("HANDLES", "yes"), "HANDLES"));
        assert!(blames(read_with("MIN_HANDLE_NAME_LENGTH", "33"), "MIN_HANDLE_NAME_LENGTH"));
        assert!(blames(read_with("DEFAULT_QUERY_LIMIT", "1001"), "DEFAULT_QUERY_LIMIT"));
    }

    #[test]
    fn conf_008_byte_budgets_stay_within_the_ceiling() {
        for name in ["MAX_REQUEST_BYTES", "MAX_RESPONSE_BYTES"] {
            assert!(read_with(name, "26214400").is_ok());
            assert!(blames(read_with(name, "26214401"), name));
        }
    }

    #[test]
    fn ops_020_retention_stays_within_64_bits_of_nanoseconds() {
        let name = "RETENTION_WELCOME_SECONDS";
        assert!(read_with(name, "9223372036").is_ok());
        assert!(blames(read_with(name, "9223372037"), name));
        assert!(blames(read_with(name, "0"), name));
    }

    #[test]
    fn ops_021_an_envelope_fits_a_row_a_request_and_a_response() {
        let name = "MAX_ENVELOPE_BYTES";
        assert!(read_with(name, "2096896").is_ok());
        assert!(blames(read_with(name, "2096897"), name));
        for (other, value) in [("MAX_REQUEST_BYTES", "1048580"), ("MAX_RESPONSE_BYTES", "1048831")] {
            assert!(blames(read_with(other, value), name), "{other}");
        }
        assert!(read_with("MAX_REQUEST_BYTES", "1048581").is_ok());
        assert!(read_with("MAX_RESPONSE_BYTES", "1048832").is_ok());
    }

    #[test]
    fn ops_001_what_must_never_expire_never_does() {
        let retention = read_with("RETENTION_KEY_PACKAGE_SECONDS", "60").unwrap().retention;
        assert_eq!(retention.seconds(Kind::GroupMessage, false), 7_776_000);
        assert_eq!(retention.seconds(Kind::GroupMessage, true), 0);
        assert_eq!(retention.seconds(Kind::Welcome, false), 7_776_000);
        assert_eq!(retention.seconds(Kind::KeyPackage, false), 60);
        assert_eq!(retention.seconds(Kind::IdentityUpdate, false), 0);
        assert_eq!(retention.seconds(Kind::CommitLog, false), 0);
    }

    #[test]
    fn a_token_matches_itself_only_and_is_never_shown() {
        let config = read_with("STATUS_TOKEN", "0123456789abcdef").unwrap();
        assert!(!format!("{config:?}").contains("0123456789abcdef"));
        let token = config.status_token.unwrap();
        assert!(token.matches("0123456789abcdef"));
        assert!(!token.matches("0123456789abcdeg"));
        assert!(!token.matches(""));
    }
}
