//! How the samples of a point change over time: the median and the largest sample of windows of
//! consecutive messages, the largest samples of all, and a shift of the level.

use std::cmp::Reverse;

use measure::samples::{SERIES_BLOCKS, blocks};
use measure::step::step;
use serde::Serialize;

/// Of a window with more samples, the median is that of this many, evenly spread over the window.
const OF_MEDIAN_MAX: usize = 1001;
/// The same for the levels of which a shift is sought: it lasts for several of them.
const OF_LEVEL_MAX: usize = 101;

/// The samples that are marked: more would cover the lines.
const PEAKS_MAX: usize = 5;

/// Windows of equal length, up to one sample, in the order of the messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Timeline {
    /// The median of each window, in ns.
    medians: Vec<u64>,
    /// The largest sample of each window, in ns.
    largest: Vec<u64>,
    /// The largest samples, at most one of each window: the number of the sample, from 0, and its
    /// size in ns.
    peaks: Vec<(usize, u64)>,
    /// The shares of the samples between which the level was another one, by the rule of
    /// [`measure::step`]; up to 1 if it stayed.
    shift: Option<(f64, f64)>,
}

impl Timeline {
    /// Divides samples into at most `windows` windows; `None` if there is nothing to divide.
    pub(crate) fn of(samples: &[u64], windows: usize) -> Option<Self> {
        if windows.min(samples.len()) < 2 {
            return None;
        }
        let windows: Vec<&[u64]> = blocks(samples, windows).collect();
        let medians: Vec<u64> = windows.iter().map(|window| median(window, OF_MEDIAN_MAX)).collect();
        // The blocks from which the record says that a point is unstable.
        let blocks = blocks(samples, SERIES_BLOCKS);
        let levels: Vec<f64> = blocks.map(|block| median(block, OF_LEVEL_MAX) as f64).collect();
        let shift = step(&levels).map(|step| (step.at_share, step.back_at_share.unwrap_or(1.0)));
        let largest: Vec<u64> =
            windows.iter().map(|window| window.iter().copied().max().unwrap_or_default()).collect();
        Some(Self { peaks: peaks(&windows, &largest), medians, largest, shift })
    }
}

/// The largest samples, the largest first; each window has one.
fn peaks(windows: &[&[u64]], largest: &[u64]) -> Vec<(usize, u64)> {
    let mut order: Vec<usize> = (0..windows.len()).collect();
    order.sort_by_key(|window| Reverse(largest[*window]));
    let place = |window: usize| {
        let before: usize = windows[..window].iter().map(|window| window.len()).sum();
        before + windows[window].iter().position(|ns| *ns == largest[window]).unwrap_or_default()
    };
    order.into_iter().take(PEAKS_MAX).map(|window| (place(window), largest[window])).collect()
}

/// The lower median of at most `most` samples of a window, evenly spread. No window is empty.
fn median(window: &[u64], most: usize) -> u64 {
    let every = window.len().div_ceil(most);
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
        assert_eq!(timeline.peaks, [(7321, 9000), (5000, 300), (6000, 300), (8000, 300), (9000, 300)]);
    }

    #[test]
    fn a_shift_of_the_level_is_known_with_its_end() {
        let shift = |high: std::ops::Range<usize>| {
            let samples: Vec<u64> = (0..4000)
                .map(|message| if high.contains(&message) { 300 } else { 100 + message as u64 % 7 })
                .collect();
            Timeline::of(&samples, 40).unwrap().shift
        };
        assert_eq!(shift(1000..2000), Some((0.25, 0.5)));
        assert_eq!(shift(1000..4000), Some((0.25, 1.0)));
        assert_eq!(shift(0..0), None);
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
