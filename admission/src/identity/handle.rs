//! Handles: names that an inbox claims.
//!
//! The grammar is part of the rules for updates. What the backend allows on top of it is policy, for new claims only
//! (IDENT-084).

use super::IdentityRejection;
use crate::Rejection;

/// Name parts that nobody may claim (API-297). Sorted.
const RESERVED: &[&str] = &[
    "abuse",
    "admin",
    "administrator",
    "all",
    "billing",
    "bot",
    "everyone",
    "help",
    "here",
    "info",
    "me",
    "moderator",
    "noreply",
    "null",
    "official",
    "postmaster",
    "root",
    "sealog",
    "security",
    "staff",
    "support",
    "system",
    "team",
    "undefined",
    "webmaster",
    "xmtp",
];

/// The name part of a handle, or `None` when it does not match the grammar: 1 to 32 of `a-z`, `0-9` and `_`, of which the
/// first is no digit; then, if anything, a dot and 2 to 9 digits.
pub fn name_part(handle: &str) -> Option<&str> {
    let (name, discriminator) = match handle.split_once('.') {
        Some((name, discriminator)) => (name, Some(discriminator)),
        None => (handle, None),
    };
    let is_name = matches!(name.len(), 1..=32)
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && !name.as_bytes()[0].is_ascii_digit();
    let is_discriminator =
        |digits: &str| matches!(digits.len(), 2..=9) && digits.bytes().all(|digit| digit.is_ascii_digit());
    (is_name && discriminator.is_none_or(is_discriminator)).then_some(name)
}

/// Whether a new claim of the handle is allowed (API-297), also to an inbox that holds it.
pub fn check_name(handle: &str, min_name_length: usize) -> Result<(), Rejection> {
    let name = name_part(handle).ok_or(IdentityRejection::HandleGrammar)?;
    if name.chars().count() < min_name_length {
        return Err(IdentityRejection::HandleTooShort { min: min_name_length }.into());
    }
    if RESERVED.binary_search(&name).is_ok() {
        return Err(IdentityRejection::HandleReserved.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::RESERVED;

    #[test]
    fn reserved_names_can_be_searched() {
        assert!(RESERVED.is_sorted());
        assert!(RESERVED.iter().all(|name| super::name_part(name) == Some(name)));
    }
}
