//! Which chains are asked, and where: the setting `CHAINS`.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

use super::account;

/// A node for each chain. The addresses are secrets: they usually hold the key of an account with a provider,
/// so that nothing here shows one, not even a refusal.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Chains(BTreeMap<u64, String>);

/// Why the setting is refused. The texts hold no address. They name an entry by its id once that is known to be
/// one, and by its position before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainsError {
    /// Not a JSON object.
    #[error(
        "must be a JSON object of chain ids and the addresses of their nodes, for example {{\"eip155:1\": \"https://...\"}}; \
         it stops being one at line {line}, column {column}"
    )]
    NotAnObject {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// Not the id of a chain.
    #[error("has an entry, number {0}, whose name is not eip155: and a decimal number without leading zeros")]
    Id(usize),
    /// One chain, two nodes.
    #[error("names eip155:{0} twice: leave one entry")]
    Twice(u64),
    /// Not the address of a node.
    #[error("eip155:{0} needs the address of a node as a text that begins with https:// or http://")]
    Address(u64),
    /// `fetch` refuses such an address.
    #[error(
        "eip155:{0} has a user name or a password in its address: put the key into the path or the query"
    )]
    Credentials(u64),
}

impl Chains {
    /// Reads the JSON object of CAIP-2 ids and URLs.
    pub fn parse(text: &str) -> Result<Self, ChainsError> {
        let entries: Entries = serde_json::from_str(text)
            .map_err(|error| ChainsError::NotAnObject { line: error.line(), column: error.column() })?;
        let mut chains = BTreeMap::new();
        for (at, (id, address)) in entries.0.into_iter().enumerate() {
            let chain =
                id.strip_prefix("eip155:").and_then(account::reference).ok_or(ChainsError::Id(at + 1))?;
            if chains.insert(chain, check(chain, &address)?).is_some() {
                return Err(ChainsError::Twice(chain));
            }
        }
        Ok(Self(chains))
    }

    /// The chains with a node, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }

    /// Where the node of a chain answers.
    pub(super) fn url(&self, chain: u64) -> Option<&str> {
        self.0.get(&chain).map(String::as_str)
    }
}

/// Looks at as much of an address as tells what went wrong; the platform's `fetch` judges the rest. (A parser
/// of URLs would bring along the tables of international domain names: a third of the worker's size.)
fn check(chain: u64, address: &Value) -> Result<String, ChainsError> {
    let address = address.as_str().unwrap_or_default();
    let rest =
        ["https://", "http://"].iter().find_map(|scheme| address.strip_prefix(scheme)).unwrap_or_default();
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || !address.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ChainsError::Address(chain));
    }
    if host.contains('@') {
        return Err(ChainsError::Credentials(chain));
    }
    Ok(address.to_owned())
}

impl fmt::Debug for Chains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.ids()).finish()
    }
}

/// The members of a JSON object in their order. A map would drop all but the last of those with one name.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entries, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(All)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "https://node.example/key-0123456789";

    #[test]
    fn sec_040_each_chain_has_its_node() {
        let text = r#" {"eip155:8453": "https://b.example", "eip155:1": "http://127.0.0.1:8545/v1?key=a"} "#;
        let chains = Chains::parse(text).unwrap();
        assert_eq!(chains.ids().collect::<Vec<_>>(), [1, 8453]);
        assert_eq!(chains.url(1), Some("http://127.0.0.1:8545/v1?key=a"));
        assert_eq!(chains.url(8453), Some("https://b.example"));
        assert_eq!(chains.url(2), None);
        assert_eq!(Chains::parse("{}"), Ok(Chains::default()));
        let greatest = format!(r#"{{"eip155:{}": "{SECRET}"}}"#, u64::MAX);
        assert_eq!(Chains::parse(&greatest).unwrap().ids().collect::<Vec<_>>(), [u64::MAX]);
    }

    #[test]
    fn conf_065_a_refusal_names_the_entry() {
        for (text, expected) in [
            (String::new(), ChainsError::NotAnObject { line: 1, column: 0 }),
            (format!("[\"{SECRET}\"]"), ChainsError::NotAnObject { line: 1, column: 0 }),
            (format!("{{\"eip155:1\":\n\"{SECRET}\"}} x"), ChainsError::NotAnObject { line: 2, column: 40 }),
            (format!(r#"{{"eip155:1": "{SECRET}", "{SECRET}": "eip155:2"}}"#), ChainsError::Id(2)),
            (format!(r#"{{"eip155:1": "{SECRET}", "eip155:1": "{SECRET}"}}"#), ChainsError::Twice(1)),
            (format!(r#"{{"eip155:1": ["{SECRET}"]}}"#), ChainsError::Address(1)),
            (r#"{"eip155:1": null}"#.to_owned(), ChainsError::Address(1)),
            (r#"{"eip155:1": "node.example"}"#.to_owned(), ChainsError::Address(1)),
            (r#"{"eip155:1": "wss://node.example"}"#.to_owned(), ChainsError::Address(1)),
            (r#"{"eip155:1": "https://"}"#.to_owned(), ChainsError::Address(1)),
            (r#"{"eip155:1": "https:///key"}"#.to_owned(), ChainsError::Address(1)),
            (r#"{"eip155:1": " https://node.example"}"#.to_owned(), ChainsError::Address(1)),
            (r#"{"eip155:1": "https://node.example/\n"}"#.to_owned(), ChainsError::Address(1)),
            (r#"{"eip155:1": "https://me@node.example"}"#.to_owned(), ChainsError::Credentials(1)),
            (r#"{"eip155:1": "https://:key@node.example"}"#.to_owned(), ChainsError::Credentials(1)),
        ] {
            let error = Chains::parse(&text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("node.example"), "{error}");
        }
        for id in ["", "1", "eip155:", "eip155:01", "eip155:+1", "eip155:0x1", "eip155:1 ", "EIP155:1"] {
            assert_eq!(
                Chains::parse(&format!(r#"{{"{id}": "{SECRET}"}}"#)),
                Err(ChainsError::Id(1)),
                "{id:?}"
            );
        }
        let over = r#"{"eip155:18446744073709551616": "https://node.example"}"#;
        assert_eq!(Chains::parse(over), Err(ChainsError::Id(1)));
    }

    #[test]
    fn sec_051_nothing_shows_an_address() {
        let chains = Chains::parse(&format!(r#"{{"eip155:1": "{SECRET}"}}"#)).unwrap();
        assert_eq!(format!("{chains:?}"), "{1}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_map_of_chains_or_refused(text: String) {
            let _ = Chains::parse(&text);
        }
    }
}
