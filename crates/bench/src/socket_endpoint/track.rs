//! Counts the numbered messages that arrive twice, or after one that was sent later (reordered, RFC
//! 4737).

/// How many numbers below the highest are remembered: an older datagram counts as reordered, and
/// not as duplicate.
const WINDOW: u32 = 4096;
/// The bits of a number, which wraps.
const BITS: u32 = 29;

/// The numbers of one sender that were seen.
#[derive(Debug)]
pub(super) struct Track {
    highest: Option<u32>,
    /// A bit for each of the last numbers, in a ring.
    seen: Box<[u64]>,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
}

impl Default for Track {
    fn default() -> Self {
        let seen = vec![0; (WINDOW / u64::BITS) as usize].into_boxed_slice();
        Self { highest: None, seen, duplicates: 0, reordered: 0 }
    }
}

impl Track {
    /// Restarts the counts: earlier messages do not count.
    pub(super) fn recount(&mut self) {
        (self.duplicates, self.reordered) = (0, 0);
    }

    /// Notes a number.
    #[inline]
    pub(super) fn see(&mut self, number: u32) {
        let Some(highest) = self.highest else {
            self.highest = Some(number);
            self.set(number);
            return;
        };
        let ahead = number.wrapping_sub(highest) & ((1 << BITS) - 1);
        if ahead > 0 && ahead < 1 << (BITS - 1) {
            if ahead >= WINDOW {
                self.seen.fill(0);
            } else {
                (1..ahead).for_each(|step| self.clear(highest.wrapping_add(step)));
            }
            self.highest = Some(number);
            self.set(number);
            return;
        }
        let behind = highest.wrapping_sub(number) & ((1 << BITS) - 1);
        if behind < WINDOW && self.is_set(number) {
            self.duplicates += 1;
            return;
        }
        self.reordered += 1;
        if behind < WINDOW {
            self.set(number);
        }
    }

    fn place(number: u32) -> (usize, u64) {
        let place = number % WINDOW;
        ((place / u64::BITS) as usize, 1 << (place % u64::BITS))
    }

    fn is_set(&self, number: u32) -> bool {
        let (word, bit) = Self::place(number);
        self.seen[word] & bit != 0
    }

    fn set(&mut self, number: u32) {
        let (word, bit) = Self::place(number);
        self.seen[word] |= bit;
    }

    fn clear(&mut self, number: u32) {
        let (word, bit) = Self::place(number);
        self.seen[word] &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn tracked(numbers: &[u32]) -> (u64, u64) {
        let mut track = Track::default();
        numbers.iter().for_each(|number| track.see(*number));
        (track.duplicates, track.reordered)
    }

    #[test]
    fn duplicates_and_late_ones_are_told_apart() {
        assert_eq!(tracked(&[0, 1, 2, 3]), (0, 0));
        assert_eq!(tracked(&[0, 2, 1, 3, 3, 1]), (2, 1));
        assert_eq!(tracked(&[5, 5, 9, 7, 8, 7]), (2, 2));
        let top = (1 << BITS) - 1;
        assert_eq!(tracked(&[top - 1, top, 0, 1, top]), (1, 0));
        assert_eq!(tracked(&[0, 100_000, 1]), (0, 1));
    }

    proptest! {
        /// Compares with a set of all numbers, for numbers within the window.
        #[test]
        fn it_counts_as_a_set_of_all_would(steps in prop::collection::vec((0_u32..40, 0_u32..30), 1..400)) {
            let mut all = BTreeSet::new();
            let mut highest = None;
            let mut now = 0;
            let mut duplicates = 0;
            let mut reordered = 0;
            let mut numbers = Vec::new();
            for (ahead, behind) in steps {
                now += ahead;
                let number = now - behind.min(now);
                numbers.push(number);
                if !all.insert(number) {
                    duplicates += 1;
                } else if highest.is_some_and(|highest| number < highest) {
                    reordered += 1;
                }
                highest = highest.max(Some(number));
            }
            prop_assert_eq!(tracked(&numbers), (duplicates, reordered));
        }
    }
}
