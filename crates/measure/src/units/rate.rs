//! Rates as people write them.

use super::number;
use crate::{Error, Result};

/// Reads a rate of messages in a second as a whole number: `500`, `10k`, `2.5M`, `1e5`, each with
/// or without `Hz` or `/s` behind it.
///
/// # Errors
/// When the text is no rate, or the rate is not whole or not below 2^64.
pub fn parse_rate(text: &str) -> Result<u64> {
    let wrong = || Error::Rate { text: text.to_owned() };
    let millionths = millionths(text).filter(|rate| rate.is_multiple_of(MILLION)).ok_or_else(wrong)?;
    u64::try_from(millionths / MILLION).map_err(|_| wrong())
}

/// Reads a rate per second that need not be whole: `0.5Hz`, and what [`parse_rate`] reads.
///
/// # Errors
/// When the text is no rate, or the rate has more than six decimals.
pub fn parse_rate_hz(text: &str) -> Result<f64> {
    let wrong = || Error::Rate { text: text.to_owned() };
    Ok(millionths(text).ok_or_else(wrong)? as f64 / MILLION as f64)
}

fn millionths(text: &str) -> Option<u128> {
    let (number, unit) = number::split(text);
    let prefix = unit.strip_suffix("Hz").or_else(|| unit.strip_suffix("/s")).unwrap_or(unit);
    let (_, factor) = PREFIXES.iter().find(|(name, _)| *name == prefix.trim_end())?;
    number::times(number, factor * MILLION)
}

const MILLION: u128 = 1_000_000;
/// Powers of ten, as in every rate.
const PREFIXES: [(&str, u128); 4] = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_whole_numbers_of_messages_thousands_or_millions() {
        for (text, rate) in [
            ("1", 1),
            ("10k", 10_000),
            ("2M", 2_000_000),
            ("50000", 50_000),
            ("1.5k", 1500),
            ("1e5", 100_000),
            ("10kHz", 10_000),
            ("10 kHz", 10_000),
            ("500/s", 500),
            ("2.5 MHz", 2_500_000),
            ("1G", 1_000_000_000),
        ] {
            assert_eq!(parse_rate(text).unwrap(), rate, "{text}");
            assert_eq!(parse_rate_hz(text).unwrap(), rate as f64, "{text}");
        }
        assert_eq!(parse_rate_hz("0.5Hz").unwrap(), 0.5);
        for text in
            ["", "k", "0.5", "-1", "+1", "1K", "1m", "10 khz", "kHz", "NaN", "99999999999999999999", "10kHzz"]
        {
            let error = parse_rate(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("10k"), "{error}");
        }
        assert!(parse_rate_hz("0.0000001").is_err());
    }
}
