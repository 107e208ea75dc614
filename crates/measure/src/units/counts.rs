//! Counts, and ranges of them.

use super::number;
use crate::{Error, Result};

/// Reads a whole number: `1000`, `10k`, `2M`, `1e6`. The letters are powers of ten, as those of
/// rates.
///
/// # Errors
/// When the text is no count, or the count is not below 2^64.
pub fn parse_count(text: &str) -> Result<u64> {
    let read = || {
        let (number, unit) = number::split(text);
        let (_, factor) = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)]
            .into_iter()
            .find(|(name, _)| *name == unit)?;
        u64::try_from(number::times(number, factor)?).ok()
    };
    read().ok_or_else(|| Error::Count { text: text.to_owned() })
}

/// Reads a count below 2^32 as [`parse_count`] does, or a range such as `1..16`, which stands for
/// every number from its first to its last. Returns `None` for any other text, and for a range of
/// more than [`COUNTS_MAX`].
pub fn parse_counts(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| u32::try_from(parse_count(text).ok()?).ok();
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let low = number(low)?;
    let high = number(high)?;
    (low <= high && high - low < COUNTS_MAX).then(|| (low..=high).collect())
}

/// Longer ranges are taken for typing errors.
pub const COUNTS_MAX: u32 = 65536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_numbers_thousands_or_millions() {
        for (text, count) in [("0", 0), ("1000", 1000), ("10k", 10_000), ("1.5k", 1500), ("1e6", 1_000_000)] {
            assert_eq!(parse_count(text).unwrap(), count, "{text}");
        }
        for text in ["", "-1", "1.5", "10K", "ten", "1 k k", "18446744073709551616", "1e-1", "0x10"] {
            let error = parse_count(text).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("cannot read {text:?} as a count: write a whole number such as 1000, 10k or 1e6")
            );
        }
    }

    #[test]
    fn a_range_is_every_number_of_it() {
        assert_eq!(parse_counts("15"), Some(vec![15]));
        assert_eq!(parse_counts(" 2 .. 4 "), Some(vec![2, 3, 4]));
        assert_eq!(parse_counts("2k"), Some(vec![2000]));
        assert_eq!(parse_counts("999..1k"), Some(vec![999, 1000]));
        assert_eq!(parse_counts("0..65535").map(|all| all.len()), Some(65536));
        for text in ["", "..", "4..2", "1..", "-1", "a", "1...3", "0..65536", "5G"] {
            assert_eq!(parse_counts(text), None, "{text}");
        }
    }
}
