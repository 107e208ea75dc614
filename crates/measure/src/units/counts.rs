//! Counts, and ranges of them.

/// Reads a whole number such as `15`, or a range such as `1..16`, which is every number from its
/// first to its last; none where the text is neither, or a range of more than [`COUNTS_MAX`].
pub fn parse_counts(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let low = number(low)?;
    let high = number(high)?;
    (low <= high && high - low < COUNTS_MAX).then(|| (low..=high).collect())
}

/// Longer ranges are a slip of the pen.
pub const COUNTS_MAX: u32 = 65536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_every_number_of_it() {
        assert_eq!(parse_counts("15"), Some(vec![15]));
        assert_eq!(parse_counts(" 2 .. 4 "), Some(vec![2, 3, 4]));
        assert_eq!(parse_counts("0..65535").map(|all| all.len()), Some(65536));
        for text in ["", "..", "4..2", "1..", "-1", "a", "1...3", "0..65536"] {
            assert_eq!(parse_counts(text), None, "{text}");
        }
    }
}
