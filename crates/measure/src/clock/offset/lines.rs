//! Straight lines between points: they pass above some points and below others. The arithmetic uses
//! integers only, so nothing is rounded but the results, and those outwards.
//!
//! A line of slope s below all `highs` is lowest under the corner of their lower convex hull that
//! minimises y - s x. Above all `lows`, their upper hull works alike. A slope is feasible if the
//! first leaves room for the second. The room is a concave function of s, so feasible slopes form
//! an interval, and Newton's method from outside finds each bound exactly. Over all feasible lines,
//! the largest value at x is then the lower hull of `highs`, in which the first and the last
//! feasible slope replace the hull's own flatter and steeper edges on the left and right. The
//! smallest value is computed likewise.

use std::cmp::Ordering;

/// A point. Coordinates are below 2^61 in magnitude, so that products of differences stay below
/// 2^127.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Point {
    pub(super) x: i128,
    pub(super) y: i128,
}

/// A rational slope; `run` is positive, and both are below 2^62 in magnitude.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slope {
    rise: i128,
    run: i128,
}

/// Every line that passes on or above all points of one set and on or below all points of another.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// Upside down: the negated points and lines.
    lows: Chain,
    highs: Chain,
    flattest: Slope,
    steepest: Slope,
}

impl Lines {
    /// The lines with slopes in a range; `None` where there are none, or a set is empty.
    pub(super) fn between(
        lows: Vec<Point>,
        highs: Vec<Point>,
        flattest: Slope,
        steepest: Slope,
    ) -> Option<Self> {
        let lows = hull(lows.into_iter().map(|point| Point { y: -point.y, ..point }).collect())?;
        let highs = hull(highs)?;
        let steepest = nearest_feasible(&lows, &highs, steepest, 1)?;
        let flattest = nearest_feasible(&lows, &highs, flattest, -1)?;
        Some(Self {
            lows: Chain::of(&lows, steepest.negated(), flattest.negated()),
            highs: Chain::of(&highs, flattest, steepest),
            flattest,
            steepest,
        })
    }

    /// The smallest value of any of the lines at `x`, rounded down. `x` is below 2^64 in magnitude.
    pub(super) fn least(&self, x: i128) -> i128 {
        -self.lows.ceiling(x)
    }

    /// The largest value of any of the lines at `x`, rounded up. `x` is below 2^64 in magnitude.
    pub(super) fn largest(&self, x: i128) -> i128 {
        self.highs.ceiling(x)
    }

    /// The smallest and the largest slope of the lines.
    pub(super) fn slopes(&self) -> (Slope, Slope) {
        (self.flattest, self.steepest)
    }
}

impl Slope {
    /// The nearest slope that is not below `value`, which is from 2^-31 to 2^31.
    pub(super) fn at_least(value: f64) -> Self {
        let bits = SLOPE_BITS - (value.log2().ceil().max(0.0) as i32);
        Self { rise: (value * 2f64.powi(bits)).ceil() as i128, run: 1 << bits }
    }

    /// The nearest slope that is not above `value`, which is from 2^-31 to 2^31.
    pub(super) fn at_most(value: f64) -> Self {
        let bits = SLOPE_BITS - (value.log2().ceil().max(0.0) as i32);
        Self { rise: (value * 2f64.powi(bits)).floor() as i128, run: 1 << bits }
    }

    /// As a number, to its 53 bits.
    pub(super) fn to_f64(self) -> f64 {
        self.rise as f64 / self.run as f64
    }

    fn negated(self) -> Self {
        Self { rise: -self.rise, run: self.run }
    }

    fn cmp(self, other: Self) -> Ordering {
        (self.rise * other.run).cmp(&(other.rise * self.run))
    }

    /// The slope from `from` to `to`, which is to the right of it.
    fn between(from: Point, to: Point) -> Self {
        Self { rise: to.y - from.y, run: to.x - from.x }
    }
}

/// A convex function of straight pieces: corners from left to right, and the slopes beyond them.
#[derive(Clone, Debug)]
struct Chain {
    corners: Vec<Point>,
    left: Slope,
    right: Slope,
}

impl Chain {
    /// The part of a hull whose slopes are in a range, continued with the bounds of that range.
    fn of(hull: &[Point], left: Slope, right: Slope) -> Self {
        let corners = hull[tangent(hull, left)..=tangent(hull, right)].to_vec();
        Self { corners, left, right }
    }

    /// The function at `x`, rounded up.
    fn ceiling(&self, x: i128) -> i128 {
        let after = self.corners.partition_point(|corner| corner.x <= x);
        let (from, slope) = match after.checked_sub(1) {
            None => (self.corners[0], self.left),
            Some(last) if after == self.corners.len() => (self.corners[last], self.right),
            Some(before) => (self.corners[before], Slope::between(self.corners[before], self.corners[after])),
        };
        // Negating before and after rounding down rounds up.
        from.y - (-slope.rise * (x - from.x)).div_euclid(slope.run)
    }
}

/// The lower convex hull from left to right, without points on its edges (Andrew's monotone chain,
/// Information Processing Letters 9(5), 1979); `None` of no points.
fn hull(mut points: Vec<Point>) -> Option<Vec<Point>> {
    points.sort_unstable_by_key(|point| (point.x, point.y));
    points.dedup_by_key(|point| point.x);
    let mut corners: Vec<Point> = Vec::new();
    for point in points {
        while let [.., before, last] = corners[..]
            && Slope::between(before, last).cmp(Slope::between(last, point)).is_ge()
        {
            corners.pop();
        }
        corners.push(point);
    }
    (!corners.is_empty()).then_some(corners)
}

/// Index of the corner of a lower hull that a line of this slope touches from below.
fn tangent(hull: &[Point], slope: Slope) -> usize {
    let mut from = 0;
    let mut to = hull.len() - 1;
    while from < to {
        let middle = from.midpoint(to);
        match Slope::between(hull[middle], hull[middle + 1]).cmp(slope) {
            Ordering::Less => from = middle + 1,
            _ => to = middle,
        }
    }
    from
}

/// The feasible slope that is nearest to `start`, going down from it (`direction` 1) or up (-1);
/// `lows` is upside down.
///
/// The pair of corners with the least room between them at an infeasible slope is a constraint that
/// the result must satisfy. The slope that just satisfies it is the next try. Each pair comes up
/// once, and in practice few do.
fn nearest_feasible(lows: &[Point], highs: &[Point], start: Slope, direction: i128) -> Option<Slope> {
    let mut slope = start;
    loop {
        let high = highs[tangent(highs, slope)];
        let low = lows[tangent(lows, slope.negated())];
        let rise = high.y + low.y;
        let run = high.x - low.x;
        if rise * slope.run >= slope.rise * run {
            return Some(slope);
        }
        if run * direction <= 0 {
            return None;
        }
        slope = Slope { rise: rise * direction, run: run * direction };
    }
}

/// With slopes up to 2^31 and coordinates as [`Point`] has them, all products fit.
const SLOPE_BITS: i32 = 61;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(coordinates: &[(i128, i128)]) -> Vec<Point> {
        coordinates.iter().map(|&(x, y)| Point { x, y }).collect()
    }

    fn slope(rise: i128, run: i128) -> Slope {
        Slope { rise, run }
    }

    /// Smallest and largest value at `x`, found by trying every corner of the feasible set. At each
    /// corner two constraints are exact, so its slope is that between two points or a bound of the
    /// range.
    fn brute_force(lows: &[Point], highs: &[Point], range: (Slope, Slope), x: i128) -> Option<(i128, i128)> {
        let all: Vec<Point> = lows.iter().chain(highs).copied().collect();
        let pairs = all.iter().flat_map(|&from| all.iter().map(move |&to| (from, to)));
        let slopes = pairs.filter(|(from, to)| from.x < to.x).map(|(from, to)| Slope::between(from, to));
        let allowed = |slope: &Slope| slope.cmp(range.0).is_ge() && slope.cmp(range.1).is_le();
        let values = slopes.chain([range.0, range.1]).filter(allowed).filter_map(|slope| {
            // Times `run`: the value at x of the line of this slope through a point.
            let value = |point: &Point| point.y * slope.run + slope.rise * (x - point.x);
            let least = lows.iter().map(value).max()?;
            let largest = highs.iter().map(value).min()?;
            (least <= largest).then(|| (least.div_euclid(slope.run), -(-largest).div_euclid(slope.run)))
        });
        values.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    fn coordinates(count: usize) -> impl Strategy<Value = Vec<(i128, i128)>> {
        prop::collection::vec((-60i128..60, -90i128..90), 1..count)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn it_is_what_trying_every_corner_gives(
            lows in coordinates(9),
            highs in coordinates(9),
            // Half of the cases have room for lines, more or less of it.
            room in 0i128..250,
            range in ((-9i128..9, 1i128..5), (-9i128..9, 1i128..5)),
            at in prop::collection::vec(-200i128..200, 8),
        ) {
            let lows = points(&lows);
            let mut highs = points(&highs);
            highs.iter_mut().for_each(|point| point.y += room);
            let ((rise, run), (other_rise, other_run)) = range;
            let one = slope(rise, run);
            let other = slope(other_rise, other_run);
            let range = if one.cmp(other).is_le() { (one, other) } else { (other, one) };
            let lines = Lines::between(lows.clone(), highs.clone(), range.0, range.1);
            for x in at {
                let found = lines.as_ref().map(|lines| (lines.least(x), lines.largest(x)));
                prop_assert_eq!(found, brute_force(&lows, &highs, range, x), "at {}", x);
            }
        }
    }

    #[test]
    fn there_are_lines_where_there_is_room() {
        let flat = || (slope(-1, 1), slope(1, 1));
        assert_eq!(brute_force(&points(&[(0, 0)]), &points(&[(0, 2)]), flat(), 10), Some((-10, 12)));
        assert_eq!(brute_force(&points(&[(0, 0)]), &points(&[(0, -1)]), flat(), 10), None);
        let none = |lows: &[(i128, i128)], highs: &[(i128, i128)]| {
            Lines::between(points(lows), points(highs), flat().0, flat().1).is_none()
        };
        assert!(none(&[(0, 0)], &[(0, -1)]) && !none(&[(0, 0)], &[(0, 0)]));
        assert!(none(&[(-1, 0), (0, 0)], &[(0, -1), (1, 9)]) && none(&[(0, 0), (1, 0)], &[(-1, 9), (0, -1)]));
        assert!(none(&[], &[(0, 0)]) && none(&[(0, 0)], &[]));
    }

    #[test]
    fn nothing_overflows_at_the_ends_of_the_range() {
        let far = (1i128 << 61) - 1;
        let lows = points(&[(-far, -far), (far, far - 1)]);
        let highs = points(&[(-far, 1 - far), (far, far)]);
        let lines = Lines::between(lows, highs, Slope::at_most(0.5), Slope::at_least(2.0)).unwrap();
        assert_eq!((lines.least(far), lines.largest(far)), (far - 1, far));
        let beyond = i128::from(u64::MAX);
        // Steepest y = x; flattest loses 2 from -far to far, so 8 and a little below beyond, at 8
        // far.
        assert_eq!((lines.least(beyond), lines.largest(beyond)), (beyond - 9, beyond));
        let single = |slope| Lines::between(points(&[(0, 0)]), points(&[(0, 0)]), slope, slope).unwrap();
        for value in [2f64.powi(-31), 1.0, 3.7, 2f64.powi(31)] {
            assert!(
                single(Slope::at_least(value)).largest(beyond) as f64 >= value * beyond as f64 * 0.999_999
            );
        }
    }

    #[test]
    fn slopes_are_rounded_outwards() {
        for value in [1e-9, 0.3, 0.999_9, 1.0, 1.000_1, 2.0, 3.3, 1e9] {
            let least = Slope::at_most(value);
            let most = Slope::at_least(value);
            assert!(least.cmp(most).is_le());
            assert!(least.to_f64() <= value && most.to_f64() >= value);
            assert!(most.to_f64() - least.to_f64() <= value * 1e-8, "{least:?} {most:?}");
            assert!(most.rise <= 1 << 62 && most.run <= 1 << 62);
        }
    }
}
