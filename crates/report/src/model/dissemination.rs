//! Rounds of a dissemination in n ways.

/// The possible ranks and ways of barriers; a record may hold any number.
pub(super) const RANKS: std::ops::RangeInclusive<u64> = 1..=0xffff_ffff;
pub(super) const WAYS: std::ops::RangeInclusive<u64> = 1..=0xffff_ffff;

/// The rounds of a barrier of [`RANKS`] in [`WAYS`]: the number of ranks that each rank writes to.
pub(super) fn rounds(ranks: u64, ways: u64) -> impl Iterator<Item = u64> {
    let known = std::iter::successors(Some(1u64), move |known| known.checked_mul(ways + 1));
    known.take_while(move |known| *known < ranks).map(move |known| ways.min((ranks - 1) / known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_leave_out_what_is_known() {
        assert_eq!(rounds(8, 1).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(rounds(8, 2).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(rounds(8, 4).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(rounds(1, 4).count(), 0);
    }
}
