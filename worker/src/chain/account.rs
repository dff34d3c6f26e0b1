//! Which account a signature is for: a CAIP-10 account id.

/// An account that a chain can be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// An account of an EVM chain.
    Evm {
        /// The number after `eip155:`.
        chain: u64,
        /// The 20 bytes of its address.
        address: Address,
    },
    /// A well-formed id of another namespace. No chain of it can be configured, so that there is never a
    /// verdict.
    Foreign,
}

/// An address of an EVM account.
pub type Address = [u8; 20];

/// The text is no CAIP-10 account id, or breaks the rules of its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("account_id is not a CAIP-10 account id: write eip155:<chain id>:0x<40 hexadecimal digits>")]
pub struct AccountError;

impl Account {
    /// Reads an account id. In the namespace `eip155` the reference is a canonical decimal number of 64 bits
    /// and the address has 40 digits of either case (IDENT-060); what other namespaces allow there is only
    /// known to be CAIP-10.
    pub fn parse(id: &str) -> Result<Self, AccountError> {
        let mut parts = id.split(':');
        let (Some(namespace), Some(chain), Some(address), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(AccountError);
        };
        if namespace == "eip155" {
            let (chain, address) = reference(chain).zip(parse_address(address)).ok_or(AccountError)?;
            return Ok(Self::Evm { chain, address });
        }
        let is_caip = is(namespace, 3..=8, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
            && is(chain, 1..=32, |c| c.is_ascii_alphanumeric() || b"-_".contains(&c))
            && is(address, 1..=128, |c| c.is_ascii_alphanumeric() || b"-.%".contains(&c));
        if is_caip { Ok(Self::Foreign) } else { Err(AccountError) }
    }
}

/// A chain's number in its one spelling: decimal, no sign, no leading zero, 64 bits.
pub(super) fn reference(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// `0x` and 40 hexadecimal digits of either case.
pub(super) fn parse_address(text: &str) -> Option<Address> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    let mut address = Address::default();
    if digits.len() != 2 * address.len() {
        return None;
    }
    for (at, byte) in address.iter_mut().enumerate() {
        *byte = u8::try_from(digit(2 * at)? << 4 | digit(2 * at + 1)?).ok()?;
    }
    Some(address)
}

fn is(text: &str, length: std::ops::RangeInclusive<usize>, allowed: impl Fn(u8) -> bool) -> bool {
    length.contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ADDRESS: &str = "0xAbCdef0123456789abcdef0123456789abcdef01";

    #[test]
    fn ident_060_an_evm_account_is_read_in_either_case() {
        let account = |id: &str| Account::parse(id);
        let mut address = [0; 20];
        address.copy_from_slice(
            b"\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01",
        );
        for chain in [0, 1, u64::MAX] {
            for text in [ADDRESS.to_owned(), ADDRESS.to_lowercase()] {
                assert_eq!(account(&format!("eip155:{chain}:{text}")), Ok(Account::Evm { chain, address }));
            }
        }
    }

    #[test]
    fn api_271_what_is_no_account_id_is_refused() {
        for chain in ["", "01", "+1", "-1", "0x1", " 1", "1 ", "18446744073709551616", "one"] {
            assert_eq!(Account::parse(&format!("eip155:{chain}:{ADDRESS}")), Err(AccountError), "{chain:?}");
        }
        let short = &ADDRESS[..41];
        for address in ["", "0x", short, &format!("{ADDRESS}0"), &ADDRESS[2..], "0xg", &format!("{short}g")] {
            assert_eq!(Account::parse(&format!("eip155:1:{address}")), Err(AccountError), "{address:?}");
        }
        let upper = ADDRESS.replace("0x", "0X");
        for id in ["", ":", "::", "eip155", "eip155:1", "eip155:1:", "a:b:c", "EIP155:1:x", "cosmos:hub:a:b"]
        {
            assert_eq!(Account::parse(id), Err(AccountError), "{id:?}");
        }
        assert_eq!(Account::parse(&format!("eip155:1:{upper}")), Err(AccountError));
        assert_eq!(Account::parse(&format!("cosmos:hub:{}", "a".repeat(129))), Err(AccountError));
    }

    #[test]
    fn sec_041_another_namespace_is_an_account_id_too() {
        for id in [
            "cosmos:cosmoshub-3:cosmos1t2uflqwqe0fsj0shcfkrvpukewcw40yjj6hdc0",
            "hedera:mainnet:0.0.1234567890-zbhlt",
            "polkadot:b0a8d493285c2df73290dfb7e61f870f:5hmuyxw9xdgbpptgypokw4thfyoe3ryenebr381z9iaegmfy",
        ] {
            assert_eq!(Account::parse(id), Ok(Account::Foreign), "{id}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_an_account_or_refused(id in "[a-z0-9]{0,9}:?.{0,40}:?.{0,50}") {
            let _ = Account::parse(&id);
        }
    }
}
