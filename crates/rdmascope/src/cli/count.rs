//! Counts that options give, within bounds.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};

use measure::units;

/// Returns a parser for counts such as 16 or 10k, from the least to the most of `bounds`.
pub(crate) fn count<T>(bounds: impl RangeBounds<T> + Clone) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: Clone + Display + PartialOrd + TryFrom<u64>,
{
    move |text| {
        let number = units::parse_count(text).map_err(|error| error.to_string())?;
        let fitting = T::try_from(number).ok().filter(|number| bounds.contains(number));
        fitting.ok_or_else(|| match (bounds.start_bound(), bounds.end_bound()) {
            (Bound::Included(least), Bound::Included(most)) => {
                format!("give a number from {least} to {most}")
            }
            (Bound::Included(least), _) => format!("give a number of at least {least}"),
            _ => "give another number".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_bounds() {
        assert_eq!(count(1_u64..)("10k"), Ok(10_000));
        assert_eq!(count(1_u32..)("0").unwrap_err(), "give a number of at least 1");
        assert_eq!(count(1..=3_u32)("3"), Ok(3));
        for outside in ["0", "4", "5G"] {
            assert_eq!(count(1..=3_u32)(outside).unwrap_err(), "give a number from 1 to 3", "{outside}");
        }
        let wrong = count(1..=3_u32)("two").unwrap_err();
        assert_eq!(wrong, "cannot read \"two\" as a count: write a whole number such as 1000, 10k or 1e6");
    }
}
