//! The header `grpc-timeout`: at most eight digits and a unit.

use std::time::Duration;

/// The most digits that gRPC allows.
const MAX_DIGITS: usize = 8;

/// The header's value is no timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header grpc-timeout is malformed: it is 1 to 8 digits and one of H M S m u n, for example 5S")]
pub struct TimeoutError;

/// Reads the header's value.
pub fn parse(value: &str) -> Result<Duration, TimeoutError> {
    let (&unit, digits) = value.as_bytes().split_last().ok_or(TimeoutError)?;
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return Err(TimeoutError);
    }
    let mut count = 0_u64;
    for digit in digits {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit <= 9).ok_or(TimeoutError)?;
        count = count * 10 + u64::from(digit);
    }
    Ok(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return Err(TimeoutError),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_unit_is_read() {
        let nanos = |value| parse(value).map(|timeout| timeout.as_nanos());
        assert_eq!(nanos("2H"), Ok(7_200_000_000_000));
        assert_eq!(nanos("2M"), Ok(120_000_000_000));
        assert_eq!(nanos("2S"), Ok(2_000_000_000));
        assert_eq!(nanos("2m"), Ok(2_000_000));
        assert_eq!(nanos("2u"), Ok(2_000));
        assert_eq!(nanos("00000002n"), Ok(2));
    }

    #[test]
    fn what_is_no_timeout_is_refused() {
        for value in ["", "S", "5", "123456789S", "5s", "-5S", "5 S", " 5S", "5S ", "1e3m", "５S"] {
            assert_eq!(parse(value), Err(TimeoutError), "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_timeout_or_an_error(value: String) {
            let _ = parse(&value);
        }

        #[test]
        fn what_is_written_is_read(count in 0_u32..100_000_000) {
            prop_assert_eq!(parse(&format!("{count}m")), Ok(Duration::from_millis(count.into())));
        }
    }
}
