//! Statistics of several runs.

/// The median; for an even number of values, the mean of the middle two. Sorts the values. `None`
/// if there are none.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let lower = values.get(values.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*lower, values[values.len() / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_two_share_an_even_number() {
        assert_eq!(median(&mut [3.0, 1.0, 8.0]), Some(3.0));
        assert_eq!(median(&mut [8.0, 1.0, 4.0, 3.0]), Some(3.5));
        assert_eq!(median(&mut []), None);
    }
}
