//! Shares.

use crate::{Error, Result};

/// Reads a share as people write it, `2.5 %` or `2.5%`, above 0 and below 100: 0.025.
pub fn parse_percent(text: &str) -> Result<f64> {
    let wrong = || Error::Percent { text: text.to_owned() };
    let number = text.trim().strip_suffix('%').ok_or_else(wrong)?.trim();
    let percent: f64 = number.parse().map_err(|_| wrong())?;
    Some(percent / 100.0).filter(|share| *share > 0.0 && *share < 1.0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read() {
        assert_eq!(parse_percent("2.5 %").unwrap(), 0.025);
        assert_eq!(parse_percent(" 5%").unwrap(), 0.05);
        for wrong in ["", "5", "%", "0 %", "-1 %", "100 %", "NaN %", "inf %", "5 % %", "x%"] {
            let error = parse_percent(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("cannot read {wrong:?} as a share: write one such as 2.5%"));
        }
    }
}
