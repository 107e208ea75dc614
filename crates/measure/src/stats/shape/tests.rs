//! Shapes against known series, and intervals against every combination of their parts' bounds.

use proptest::prelude::*;

use super::*;

fn estimate(low: f64, value: f64, high: f64) -> Estimate {
    Estimate { value, low, high }
}

fn series(points: &[(f64, f64)], error: f64) -> Vec<At> {
    points.iter().map(|&(x, y)| At { x, y: estimate(y - error, y, y + error) }).collect()
}

#[test]
fn a_ratio_reaches_over_all_that_its_parts_may_be() {
    let ratio = estimate(90.0, 100.0, 110.0).over(estimate(180.0, 200.0, 220.0)).unwrap();
    assert_eq!((ratio.value, ratio.low, ratio.high), (0.5, 90.0 / 220.0, 110.0 / 180.0));
    let may_be_zero = estimate(1.0, 2.0, 3.0).over(estimate(0.0, 1.0, 2.0));
    assert_eq!(may_be_zero, Some(estimate(0.5, 2.0, f64::INFINITY)));
    let from_nothing = estimate(1.0, 2.0, 3.0).over(estimate(0.0, 0.0, 2.0));
    assert_eq!(from_nothing, Some(estimate(0.5, f64::INFINITY, f64::INFINITY)));
    assert_eq!(share(0.0, 100).over(share(0.0, 100)), None, "nothing against nothing");
    assert_eq!(estimate(0.0, 0.0, 0.0).over(Estimate::exact(4.0)), Some(Estimate::exact(0.0)));
    assert_eq!(estimate(1.0, 2.0, 3.0).minus(estimate(1.0, 1.0, 4.0)), estimate(-3.0, 1.0, 2.0));
}

#[test]
fn few_runs_span_their_intervals_and_many_their_own_spread() {
    let runs = [estimate(9.0, 10.0, 11.0), estimate(19.0, 20.0, 25.0)];
    assert_eq!(Estimate::of_runs(&runs), Some(estimate(9.0, 15.0, 25.0)));
    assert_eq!(Estimate::of_runs(&runs[..1]), Some(runs[0]));
    assert_eq!(Estimate::of_runs(&[]), None);
    // 25 runs: ranks 8 and 18, regardless of the runs' own intervals.
    let many: Vec<Estimate> = (1..=25).rev().map(|i| estimate(0.0, f64::from(i), 100.0)).collect();
    assert_eq!(Estimate::of_runs(&many), Some(estimate(8.0, 13.0, 18.0)));
}

#[test]
fn flat_series_have_flatness_one() {
    assert_eq!(flatness(&series(&[(8.0, 50.0), (16.0, 50.0)], 0.0)), Some(Estimate::exact(1.0)));
    let flatness_of = flatness(&series(&[(8.0, 100.0), (16.0, 110.0), (32.0, 105.0)], 2.0)).unwrap();
    assert_eq!(flatness_of, estimate(108.0 / 102.0, 1.1, 112.0 / 98.0));
    // Their intervals share a level, so they may all be the same.
    assert_eq!(flatness(&series(&[(8.0, 100.0), (16.0, 103.0)], 2.0)).unwrap().low, 1.0);
    assert_eq!(flatness(&series(&[(8.0, 100.0)], 0.0)), None);
    assert_eq!(flatness(&series(&[(8.0, 1.0), (16.0, 5.0)], 1.0)), None);
}

#[test]
fn a_line_accounts_for_its_share_of_the_variance() {
    let exact = line(&series(&[(0.0, 3.0), (1.0, 5.0), (4.0, 11.0), (9.0, 21.0)], 0.5)).unwrap();
    assert_eq!((exact.start, exact.slope, exact.determination.value), (3.0, 2.0, 1.0));
    assert_eq!(exact.at(2.0), 7.0);
    // Anscombe 1973, American Statistician 27, 17-21, the first of four datasets: R^2 0.667, line
    // 3.00 + 0.500 x.
    let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
    let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
    let anscombe: Vec<_> = x.into_iter().zip(y).collect();
    let found = line(&series(&anscombe, 0.0)).unwrap();
    assert!((found.start - 3.0001).abs() < 1e-4 && (found.slope - 0.5001).abs() < 1e-4, "{found:?}");
    // r = 0.81642 with 8 degrees of freedom: z = 1.1459 +- 1.95996 / sqrt(8), so r from 0.4243 to
    // 0.9507.
    let Estimate { value, low, high } = found.determination;
    assert!((value - 0.66654).abs() < 1e-5, "{found:?}");
    assert!((low.sqrt() - 0.4243).abs() < 1e-3 && (high.sqrt() - 0.9507).abs() < 1e-3, "{found:?}");
    // A falling series has the same share; one that may rise or fall may explain nothing.
    let falling: Vec<_> = anscombe.iter().map(|(x, y)| (*x, -y)).collect();
    let falling = line(&series(&falling, 0.0)).unwrap();
    assert!((falling.determination.low - low).abs() < 1e-12 && falling.slope < 0.0, "{falling:?}");
    let flat = line(&series(&[(1.0, 5.0), (2.0, 6.0), (3.0, 4.0), (4.0, 5.0), (5.0, 6.0)], 0.0)).unwrap();
    assert_eq!(flat.determination.low, 0.0);
    assert_eq!(line(&series(&[(1.0, 5.0), (2.0, 6.0), (3.0, 4.0)], 0.0)), None);
    assert_eq!(line(&series(&[(1.0, 5.0), (2.0, 5.0), (3.0, 5.0), (4.0, 5.0)], 0.0)), None);
}

#[test]
fn the_least_of_a_series_is_anywhere_that_is_not_surely_above_it() {
    let known = [(1.0, 20.0), (5.0, 12.0), (9.0, 10.0), (10.0, 9.5), (12.0, 11.0), (15.0, 14.0)];
    assert_eq!(least(&series(&known, 0.0)), Some(Estimate::exact(10.0)));
    assert_eq!(least(&series(&known, 0.8)), Some(estimate(9.0, 10.0, 12.0)));
    assert_eq!(least(&series(&known, 20.0)), Some(estimate(1.0, 10.0, 15.0)));
    // The smallest one reaches far up, but the third is surely above the second.
    let wide = [
        At { x: 1.0, y: estimate(1.0, 9.0, 30.0) },
        At { x: 2.0, y: estimate(10.0, 11.0, 12.0) },
        At { x: 3.0, y: estimate(13.0, 14.0, 15.0) },
    ];
    assert_eq!(least(&wide), Some(estimate(1.0, 1.0, 2.0)));
    assert_eq!(least(&[]), None);
}

#[test]
fn the_largest_step_is_found_by_its_ratio() {
    let known = series(&[(64.0, 900.0), (128.0, 910.0), (256.0, 1265.0), (512.0, 1400.0)], 0.0);
    let step = largest_step(&known).unwrap();
    assert_eq!((step.from, step.to, step.ratio.value), (128.0, 256.0, 1265.0 / 910.0));
    assert_eq!(steps(&known).len(), 3);
    // A falling series has a largest step too: the smallest fall; the first of equal ones.
    let falling = largest_step(&series(&[(1.0, 8.0), (2.0, 4.0), (3.0, 2.0)], 0.0)).unwrap();
    assert_eq!((falling.from, falling.ratio.value), (1.0, 0.5));
    assert_eq!(largest_step(&known[..1]), None);
}

#[test]
fn a_crossover_is_beyond_the_errors() {
    let regular = series(&[(64.0, 100.0), (128.0, 100.0), (256.0, 100.0), (512.0, 120.0)], 2.0);
    let inline = series(&[(64.0, 70.0), (128.0, 103.0), (256.0, 105.0)], 2.0);
    assert_eq!(crossover(&inline, &regular), Crossover::At(256.0), "103 is within the errors of 100");
    assert_eq!(crossover(&regular, &inline), Crossover::FromTheStart);
    assert_eq!(crossover(&inline[..2], &regular), Crossover::Never);
    assert_eq!(crossover(&inline, &[]), Crossover::Never);
    // An x of only one series does not count as being below.
    assert_eq!(crossover(&inline, &regular[2..]), Crossover::FromTheStart);
}

#[test]
fn an_order_counts_rows_that_rise() {
    let row = |values: [f64; 3]| values.map(|value| estimate(value - 1.0, value, value + 1.0)).to_vec();
    let rows = [
        row([10.0, 20.0, 30.0]), // surely in order
        row([10.0, 11.0, 30.0]), // in order, within the errors
        row([11.0, 10.0, 30.0]), // not in order, within the errors
        row([30.0, 20.0, 10.0]), // surely not in order
        row([10.0, 10.0, 30.0]), // equal numbers are not in order
    ];
    assert_eq!(ordered(&rows), Some(estimate(0.2, 0.4, 0.8)));
    assert_eq!(ordered(&[]), None);
}

#[test]
fn a_fall_compares_the_medians_of_both_sides() {
    let spread = series(&[(1.0, 30.0), (2.0, 50.0), (3.0, 40.0), (4.0, 10.0), (5.0, 30.0)], 0.0);
    assert_eq!(fall(&spread, 4.0), Some(Estimate::exact(0.5)));
    assert_eq!(fall(&spread, 1.0), None);
    assert_eq!(fall(&spread, 6.0), None);
    let with_errors = fall(&series(&[(1.0, 40.0), (4.0, 20.0)], 10.0), 4.0);
    assert_eq!(with_errors, Some(estimate(0.2, 0.5, 1.0)));
}

#[test]
fn shares_have_wilsons_interval() {
    // 5 of 10, to three decimals as in Newcombe 1998, Statistics in Medicine 17, 857-872, formula
    // 3.
    let half = share(0.5, 10);
    assert!((half.low - 0.2366).abs() < 5e-5 && (half.high - 0.7634).abs() < 5e-5, "{half:?}");
    // 0 of 20: from 0 to 16.11 % in the same paper.
    let none = share(0.0, 20);
    assert!(none.low == 0.0 && (none.high - 0.1611).abs() < 5e-5, "{none:?}");
    assert_eq!(share(1.0, 20).high, 1.0);
    assert_eq!(share(0.5, 0), estimate(0.0, 0.5, 1.0));
}

#[test]
fn shares_of_runs_are_those_of_all_messages() {
    assert_eq!(share_of_runs(&[(0.25, 8)]), Some(share(0.25, 8)));
    // Equal runs are as certain as all their messages; unequal ones count by their messages.
    assert_eq!(share_of_runs(&[(0.5, 100), (0.5, 100)]), Some(share(0.5, 200)));
    assert_eq!(share_of_runs(&[(0.0, 300), (0.4, 100)]).unwrap().value, 0.1);
    // Runs of many messages that differ: t of 2 degrees of freedom is 4.3027, the standard error
    // 0.1 / sqrt(3).
    let apart = share_of_runs(&[(0.4, 1 << 40), (0.5, 1 << 40), (0.6, 1 << 40)]).unwrap();
    assert!((apart.high - 0.5 - 4.302_653 * 0.1 / 3f64.sqrt()).abs() < 1e-6, "{apart:?}");
    assert!((apart.low + apart.high - 1.0).abs() < 1e-9 && apart.low > 0.0, "{apart:?}");
    assert_eq!(share_of_runs(&[]), None);
}

/// Estimates around values that are well above zero.
fn estimates(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Estimate>> {
    let one = (10.0..1000.0f64, 0.0..9.0f64, 0.0..9.0f64)
        .prop_map(|(value, below, above)| estimate(value - below, value, value + above));
    prop::collection::vec(one, count)
}

/// Every combination of each number at a bound of its interval.
fn corners(of: &[Estimate]) -> impl Iterator<Item = Vec<At>> + '_ {
    (0..1u32 << of.len()).map(move |bits| {
        let at = |(i, y): (usize, &Estimate)| At {
            x: i as f64,
            y: Estimate::exact(if bits >> i & 1 == 1 { y.high } else { y.low }),
        };
        of.iter().enumerate().map(at).collect()
    })
}

fn as_series(of: &[Estimate]) -> Vec<At> {
    of.iter().enumerate().map(|(i, y)| At { x: i as f64, y: *y }).collect()
}

proptest! {
    #[test]
    fn intervals_hold_whatever_their_parts_are(of in estimates(2..7)) {
        let flat = flatness(&as_series(&of)).unwrap();
        prop_assert!(flat.low <= flat.value && flat.value <= flat.high);
        let step = steps(&as_series(&of));
        let fallen = fall(&as_series(&of), 1.0).unwrap();
        for corner in corners(&of) {
            let ratio = flatness(&corner).unwrap().value;
            prop_assert!(ratio >= flat.low - 1e-9 && ratio <= flat.high + 1e-9);
            for (known, bounds) in steps(&corner).iter().zip(&step) {
                prop_assert!(known.ratio.value >= bounds.ratio.low - 1e-9);
                prop_assert!(known.ratio.value <= bounds.ratio.high + 1e-9);
            }
            let ratio = fall(&corner, 1.0).unwrap().value;
            prop_assert!(ratio >= fallen.low - 1e-9 && ratio <= fallen.high + 1e-9);
        }
    }

    #[test]
    fn the_largest_step_is_the_largest_of_all(of in estimates(2..20)) {
        let series = as_series(&of);
        let brute = of.windows(2).map(|pair| pair[1].value / pair[0].value).fold(f64::MIN, f64::max);
        prop_assert_eq!(largest_step(&series).unwrap().ratio.value, brute);
    }

    #[test]
    fn a_crossover_is_the_first_that_is_surely_above(of in estimates(1..12), against in estimates(1..12)) {
        let first = of.iter().zip(&against).position(|(a, b)| a.low > b.high);
        let expected = match first {
            None => Crossover::Never,
            Some(0) => Crossover::FromTheStart,
            Some(x) => Crossover::At(x as f64),
        };
        prop_assert_eq!(crossover(&as_series(&of), &as_series(&against)), expected);
    }
}
