//! `/-/status`: what this isolate has done, for operators.
//!
//! The page exists only where the secret `STATUS_TOKEN` is set, and only for who sends it as a bearer token; for
//! everyone else there is nothing at this path.

use serde::Serialize;

use crate::{config::Config, counters::Counts};

#[derive(Serialize)]
struct Page<'a> {
    version: &'static str,
    log_partitions: u32,
    /// Bytes of memory that the instance has taken. It gives none back, so this is also the most that it needed.
    memory_bytes: u32,
    #[serde(flatten)]
    counts: &'a Counts,
}

/// Whether the header `authorization` opens the page.
pub fn is_open_to(config: &Config, authorization: Option<&str>) -> bool {
    let (Some(secret), Some(authorization)) = (&config.status_token, authorization) else { return false };
    authorization
        .split_once(' ')
        .is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && secret.matches(token))
}

/// The page, as JSON.
pub fn page(config: &Config, counts: &Counts, memory_bytes: u32) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Page {
        version: env!("CARGO_PKG_VERSION"),
        log_partitions: config.log_partitions,
        memory_bytes,
        counts,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn config(token: Option<&str>) -> Config {
        let mut settings = vec![("LOG_PARTITIONS".to_owned(), "8".to_owned())];
        settings.extend(token.map(|token| ("STATUS_TOKEN".to_owned(), token.to_owned())));
        Config::read(settings).unwrap()
    }

    #[test]
    fn the_page_opens_only_to_the_token() {
        let open = config(Some(TOKEN));
        assert!(is_open_to(&open, Some("Bearer 0123456789abcdef")));
        assert!(is_open_to(&open, Some("bearer 0123456789abcdef")));
        for header in [None, Some(""), Some("Bearer "), Some(TOKEN), Some("Basic 0123456789abcdef")] {
            assert!(!is_open_to(&open, header), "{header:?}");
        }
        for header in [None, Some("Bearer "), Some("Bearer 0123456789abcdef")] {
            assert!(!is_open_to(&config(None), header), "{header:?}");
        }
    }

    #[test]
    fn the_page_holds_the_counters() {
        let counts = Counts { object_calls: BTreeMap::from([("read", 3)]), ..Default::default() };
        let page = page(&config(None), &counts, 65_536).unwrap();
        assert_eq!(
            String::from_utf8(page).unwrap(),
            format!(
                r#"{{"version":"{}","log_partitions":8,"memory_bytes":65536,"requests":{{}},"object_calls":{{"read":3}}}}"#,
                env!("CARGO_PKG_VERSION")
            )
        );
    }
}
