//! Decimal numbers with an optional exponent, read exactly.

/// Splits a text behind its number: `10 kHz` into `10` and `kHz`, `1e5/s` into `1e5` and `/s`.
pub(super) fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let mut end = text.find(|c: char| !is_digit(c)).unwrap_or(text.len());
    // An exponent, and not a unit that begins with its letter.
    if let Some(exponent) = text[end..].strip_prefix(['e', 'E']).filter(|_| end > 0) {
        let digits = exponent.trim_start_matches(['+', '-']);
        let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if count > 0 && exponent.len() - digits.len() <= 1 {
            end = text.len() - digits.len() + count;
        }
    }
    (&text[..end], text[end..].trim_start())
}

/// A decimal number times a whole one; `None` where it is no number, no whole one, or too large.
pub(super) fn times(number: &str, factor: u128) -> Option<u128> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !whole.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let decimals = decimals.trim_end_matches('0');
    let all: u128 = format!("{whole}{decimals}").parse().ok()?;
    let tens = exponent.checked_sub(i32::try_from(decimals.len()).ok()?)?;
    let scale = 10_u128.checked_pow(tens.unsigned_abs())?;
    let product = all.checked_mul(factor)?;
    if tens >= 0 {
        return product.checked_mul(scale);
    }
    product.is_multiple_of(scale).then(|| product / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_their_units_begin() {
        for (text, number, unit) in [
            ("10", "10", ""),
            (" 10 kHz ", "10", "kHz"),
            ("1e5/s", "1e5", "/s"),
            ("1E-3s", "1E-3", "s"),
            ("5e", "5", "e"),
            ("5e+-3", "5", "e+-3"),
            ("1.5s", "1.5", "s"),
            ("e5", "", "e5"),
            ("", "", ""),
        ] {
            assert_eq!(split(text), (number, unit), "{text:?}");
        }
    }

    #[test]
    fn products_are_exact() {
        for (number, factor, product) in [
            ("1.5", 10, Some(15)),
            ("1e5", 1, Some(100_000)),
            ("1.25e2", 1, Some(125)),
            ("25e-1", 10, Some(25)),
            ("0", 7, Some(0)),
            ("1.00", 1, Some(1)),
            ("1.5", 1, None),
            ("", 1, None),
            (".5", 10, None),
            ("1.2.3", 10, None),
            ("1e39", 1, None),
            ("1e99999999999", 1, None),
            ("1e-400", 1, None),
        ] {
            assert_eq!(times(number, factor), product, "{number} times {factor}");
        }
    }
}
