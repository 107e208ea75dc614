//! Rates as people write them.

use crate::{Error, Result};

/// Reads a rate of messages in a second: a whole number, or one with `k` (10^3) or `M` (10^6)
/// behind, e.g. `10k`.
///
/// # Errors
/// When it is none, or not below 2^64.
pub fn parse_rate(text: &str) -> Result<u64> {
    let wrong = || Error::Rate { text: text.to_owned() };
    let (number, factor) = match text.strip_suffix(['k', 'M']) {
        Some(number) if text.ends_with('k') => (number, 1_000),
        Some(number) => (number, 1_000_000),
        None => (text, 1),
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| digits).ok_or_else(wrong)?;
    number.checked_mul(factor).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_whole_numbers_of_messages_thousands_or_millions() {
        for (text, rate) in [("1", 1), ("10k", 10_000), ("2M", 2_000_000), ("50000", 50_000)] {
            assert_eq!(parse_rate(text).unwrap(), rate);
        }
        for text in
            ["", "k", "1.5k", "-1", "+1", "1K", "1m", "10 k", "99999999999999999999", "99999999999999999M"]
        {
            let error = parse_rate(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("10k"), "{error}");
        }
    }
}
