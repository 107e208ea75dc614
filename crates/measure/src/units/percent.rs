//! Shares.

use crate::{Error, Result};

/// Reads a share in percent, `2.5 %`, `2.5%` or `2.5`, above 0 and below 100: 0.025.
pub fn parse_percent(text: &str) -> Result<f64> {
    let wrong = || Error::Percent { text: text.to_owned() };
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let percent: f64 = number.parse().map_err(|_| wrong())?;
    Some(percent / 100.0).filter(|share| *share > 0.0 && *share < 1.0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read() {
        for (text, share) in [("2.5 %", 0.025), (" 5%", 0.05), ("5", 0.05)] {
            assert_eq!(parse_percent(text).unwrap(), share, "{text}");
        }
        for wrong in ["", "%", "0 %", "-1 %", "100 %", "NaN %", "inf %", "5 % %", "x%"] {
            let error = parse_percent(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("cannot read {wrong:?} as a share: write one such as 2.5%"));
        }
    }
}
