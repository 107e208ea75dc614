//! Sizes and durations as people write them in plans and flags.
//!
//! Suffixes of sizes are powers of 1024 with or without `iB`, as in nccl-tests and perftest's habits; decimal sizes
//! have no place in a program about buffers. Errors are the reason only: the caller knows where the text stood.

/// Bytes from `4`, `64B`, `64K`, `64KiB`, `8MiB`, `1GiB`.
pub(crate) fn size_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let shift = match suffix.trim() {
        "" | "B" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        _ => return Err(format!("{text:?} is not a size: give bytes such as 64, 64KiB, 8MiB or 1GiB")),
    };
    let number: u64 =
        number.parse().map_err(|_| format!("{text:?} is not a size: it must begin with a whole number"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text:?} is more than 2^64 bytes"))
}

/// Sizes from one size or from a range such as `4..8MiB`, which is every power of two from the first to the last.
pub(crate) fn size_range(text: &str) -> Result<Vec<u64>, String> {
    let Some((first, last)) = text.split_once("..") else {
        return Ok(vec![size_bytes(text)?]);
    };
    let (first, last) = (size_bytes(first)?, size_bytes(last)?);
    if !first.is_power_of_two() || !last.is_power_of_two() {
        return Err(format!(
            "{text:?} is a range of powers of two, so both of its ends must be powers of two"
        ));
    }
    if first > last {
        return Err(format!("{text:?} is empty: its first size is above its last"));
    }
    Ok((first.trailing_zeros()..=last.trailing_zeros()).map(|shift| 1 << shift).collect())
}

/// Seconds from `5s`, `500ms`, `20us`, `100ns`, `2min`, `1h`. The sign is the caller's to judge.
pub(crate) fn duration_s(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let reason =
        || format!("{text:?} is not a duration: give a number and a unit such as 5s, 500ms, 2min or 1h");
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(reason)?;
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(reason()),
    };
    let number: f64 = number.trim().parse().map_err(|_| reason())?;
    if number.is_finite() { Ok(number * scale) } else { Err(reason()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_binary_suffixes() {
        for (text, bytes) in
            [("4", 4), ("64B", 64), ("64K", 65536), ("64KiB", 65536), ("8MiB", 8 << 20), ("1g", 1 << 30)]
        {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "KiB", "-4", "4 kB", "4MB", "99999999999999999999", "99999999999G"] {
            assert!(size_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_double() {
        assert_eq!(size_range("4..32"), Ok(vec![4, 8, 16, 32]));
        assert_eq!(size_range("4..8MiB").unwrap().len(), 22);
        assert_eq!(size_range("64KiB"), Ok(vec![65536]));
        for text in ["3..8", "4..9", "8..4", "0..4", "..", "4..", "4..8..16"] {
            assert!(size_range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration_s("5s"), Ok(5.0));
        assert_eq!(duration_s("0.5 s"), Ok(0.5));
        assert_eq!(duration_s("2min"), Ok(120.0));
        assert_eq!(duration_s("-1h"), Ok(-3600.0));
        for text in ["", "5", "s", "5 parsecs", "infs", "nans"] {
            assert!(duration_s(text).is_err(), "{text}");
        }
    }
}
