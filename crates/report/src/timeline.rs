//! How the samples of a point change over time: the median and the largest sample of windows of
//! consecutive messages.

use measure::samples::blocks;
use serde::Serialize;

/// Of a window with more samples, the median is that of this many, evenly spread over the window.
const OF_MEDIAN_MAX: usize = 1001;

/// Windows of equal length, up to one sample, in the order of the messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Timeline {
    /// The median of each window, in ns.
    medians: Vec<u64>,
    /// The largest sample of each window, in ns.
    largest: Vec<u64>,
}

impl Timeline {
    /// Divides samples into at most `windows` windows; `None` if there is nothing to divide.
    pub(crate) fn of(samples: &[u64], windows: usize) -> Option<Self> {
        if windows.min(samples.len()) < 2 {
            return None;
        }
        let largest = |window: &[u64]| window.iter().copied().max().unwrap_or_default();
        Some(Self {
            medians: blocks(samples, windows).map(median).collect(),
            largest: blocks(samples, windows).map(largest).collect(),
        })
    }
}

/// The lower median of some samples of a window, evenly spread. No window is empty.
fn median(window: &[u64]) -> u64 {
    let every = window.len().div_ceil(OF_MEDIAN_MAX);
    let mut some: Vec<u64> = window.iter().copied().step_by(every).collect();
    let middle = (some.len() - 1) / 2;
    *some.select_nth_unstable(middle).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_has_its_own_level_and_its_worst_message() {
        let mut samples: Vec<u64> =
            (0..10_000).map(|message| if message < 5000 { 100 } else { 300 }).collect();
        samples[7321] = 9000;
        let timeline = Timeline::of(&samples, 10).unwrap();
        assert_eq!(timeline.medians, [[100; 5], [300; 5]].concat());
        assert_eq!(timeline.largest, [100, 100, 100, 100, 100, 300, 300, 9000, 300, 300]);
    }

    #[test]
    fn no_window_is_empty_and_a_single_one_is_no_course() {
        let timeline = Timeline::of(&[5, 4, 3], 100).unwrap();
        assert_eq!((timeline.medians.len(), &timeline.largest[..]), (3, &[5, 4, 3][..]));
        for (samples, windows) in [(&[][..], 100), (&[1], 100), (&[1, 2, 3], 0), (&[1, 2, 3], 1)] {
            assert_eq!(Timeline::of(samples, windows), None);
        }
    }

    #[test]
    fn the_median_of_many_is_near_that_of_all() {
        let samples: Vec<u64> = (0..1_000_000u64).map(|message| message * 7919 % 1_000_003).collect();
        let median = Timeline::of(&samples, 2).unwrap().medians[0];
        assert!((450_000..550_000).contains(&median), "{median}");
    }
}
