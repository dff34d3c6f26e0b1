//! Reading settings one by one: each is taken out, so that what is left at the end has a name that nobody knows.

use std::collections::BTreeMap;

use super::{ConfigError, TokenDigest};
use crate::{chain::Chains, transport::CEILING_BYTES};

/// One request may have to call every partition twice and more, and the platform allows 1,000 calls for each.
pub(super) const MAX_PARTITIONS: u64 = 256;
/// Bounds every limit that counts topics or envelopes: so many still fit the memory of an isolate.
pub(super) const MAX_COUNT: u64 = 100_000;
/// 2^63 - 1 nanoseconds, in seconds (OPS-020).
const MAX_RETENTION_SECONDS: u64 = 9_223_372_036;
/// A shorter token can be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// The settings that are not read yet.
pub(super) struct Settings(pub(super) BTreeMap<String, String>);

impl Settings {
    pub(super) fn optional(
        &mut self,
        name: &'static str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>, ConfigError> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        match value.trim().parse() {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => Err(ConfigError::Number { name, min, max }),
        }
    }

    pub(super) fn number(
        &mut self,
        name: &'static str,
        default: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, ConfigError> {
        Ok(self.optional(name, min, max)?.unwrap_or(default))
    }

    pub(super) fn switch(&mut self, name: &'static str, default: bool) -> Result<bool, ConfigError> {
        match self.0.remove(name).as_deref().map(str::trim) {
            None => Ok(default),
            Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(_) => Err(ConfigError::Contradiction(name, "must be \"on\" or \"off\"".to_owned())),
        }
    }

    /// A limit that fits a `u32`, as all of ours do.
    pub(super) fn limit(&mut self, name: &'static str, default: u32, max: u64) -> Result<u32, ConfigError> {
        let number = self.number(name, default.into(), 1, max)?;
        u32::try_from(number).map_err(|_| ConfigError::Number { name, min: 1, max })
    }

    pub(super) fn count(&mut self, name: &'static str, default: u32) -> Result<usize, ConfigError> {
        Ok(self.limit(name, default, MAX_COUNT)? as usize)
    }

    /// A byte budget, never over the ceiling (CONF-008).
    pub(super) fn bytes(&mut self, name: &'static str, default: u32) -> Result<usize, ConfigError> {
        Ok(self.limit(name, default, CEILING_BYTES as u64)? as usize)
    }

    pub(super) fn log_partitions(&mut self) -> Result<u32, ConfigError> {
        let name = "LOG_PARTITIONS";
        if !self.0.contains_key(name) {
            return Err(ConfigError::Missing(
                name,
                "choose once over how many objects the topics are spread",
            ));
        }
        self.limit(name, 1, MAX_PARTITIONS)
    }

    pub(super) fn retention(&mut self, name: &'static str) -> Result<u64, ConfigError> {
        const NINETY_DAYS: u64 = 7_776_000;
        self.number(name, NINETY_DAYS, 1, MAX_RETENTION_SECONDS)
    }

    pub(super) fn chains(&mut self) -> Result<Chains, ConfigError> {
        let name = "CHAINS";
        let chains = self.0.remove(name).map(|text| Chains::parse(&text)).transpose();
        Ok(chains.map_err(|error| ConfigError::Contradiction(name, error.to_string()))?.unwrap_or_default())
    }

    pub(super) fn token(&mut self, name: &'static str) -> Result<Option<TokenDigest>, ConfigError> {
        match self.0.remove(name) {
            Some(token) if token.len() < MIN_TOKEN_BYTES => {
                Err(ConfigError::Contradiction(name, format!("needs {MIN_TOKEN_BYTES} characters at least")))
            }
            token => Ok(token.as_deref().map(TokenDigest::of)),
        }
    }
}
