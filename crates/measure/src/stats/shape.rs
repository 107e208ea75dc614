//! Numbers computed from several medians, each with its 95 % interval: ratios, and shapes of a
//! series over x.
//!
//! The interval of such a number reaches from its smallest to its largest value while each median
//! stays inside its own interval: it is wider than a 95 % interval has to be, never narrower.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{MedianInterval, NORMAL_97_5};

/// A number with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Lower bound of its interval.
    pub low: f64,
    /// Upper bound of its interval.
    pub high: f64,
}

/// One number of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// The x.
    pub x: f64,
    /// The number at x.
    pub y: Estimate,
}

/// The step from one x to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The smaller x.
    pub from: f64,
    /// The larger x.
    pub to: f64,
    /// The number at the larger x divided by that at the smaller.
    pub ratio: Estimate,
}

/// The line of least squares through a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Its value at x = 0.
    pub start: f64,
    /// Its rise per unit of x.
    pub slope: f64,
    /// The share of the variance of y that the line explains, R^2: the square of the correlation of
    /// x and y.
    pub determination: Estimate,
}

/// The x at which one series comes to exceed another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossover {
    /// At this x, after being below or equal before.
    At(f64),
    /// It exceeds the other at the first x already.
    FromTheStart,
    /// At no x by more than their errors.
    Never,
}

impl Line {
    /// Its value at an x.
    pub fn at(self, x: f64) -> f64 {
        self.start + self.slope * x
    }
}

impl Estimate {
    /// A number without a known error.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// The number of a point from its repetitions: their median (of an even number, the mean of the
    /// middle two). From 6 repetitions on, its interval is that of a median from order statistics,
    /// so that only the spread from run to run counts. Below 6, it covers the intervals of all
    /// repetitions. `None` without any.
    pub fn of_runs(runs: &[Self]) -> Option<Self> {
        let values = sorted(runs.iter().map(|run| run.value));
        let value = middle(&values)?;
        if let Some(ranks) = MedianInterval::of(values.len() as u64) {
            return Some(Self {
                value,
                low: values[ranks.low as usize - 1],
                high: values[ranks.high as usize - 1],
            });
        }
        let low = runs.iter().map(|run| run.low).fold(f64::INFINITY, f64::min);
        let high = runs.iter().map(|run| run.high).fold(f64::NEG_INFINITY, f64::max);
        Some(Self { value, low, high })
    }

    /// Divides this by another number, both at least zero (as latencies and shares are). The result
    /// is infinite where the other is zero, and `None` where both are.
    pub fn over(self, other: Self) -> Option<Self> {
        let ratio = |above: f64, below: f64| if below > 0.0 { above / below } else { f64::INFINITY };
        (self.value > 0.0 || other.value > 0.0).then(|| Self {
            value: ratio(self.value, other.value),
            low: if other.high > 0.0 { self.low / other.high } else { f64::INFINITY },
            high: ratio(self.high, other.low),
        })
    }

    /// Subtracts another number.
    pub fn minus(self, other: Self) -> Self {
        Self { value: self.value - other.value, low: self.low - other.high, high: self.high - other.low }
    }

    /// Converts it to another unit by a rising function.
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { value: rising(self.value), low: rising(self.low), high: rising(self.high) }
    }

    /// Whether its whole interval is above that of another number.
    pub fn is_surely_above(self, other: Self) -> bool {
        self.low > other.high
    }
}

/// The largest number of a series divided by its smallest: 1 for a flat one. `None` for fewer than
/// two, or where one may be zero.
pub fn flatness(series: &[At]) -> Option<Estimate> {
    if series.len() < 2 || series.iter().any(|at| at.y.low <= 0.0) {
        return None;
    }
    let least = |of: fn(&Estimate) -> f64| series.iter().map(|at| of(&at.y)).fold(f64::INFINITY, f64::min);
    let largest =
        |of: fn(&Estimate) -> f64| series.iter().map(|at| of(&at.y)).fold(f64::NEG_INFINITY, f64::max);
    Some(Estimate {
        value: largest(|y| y.value) / least(|y| y.value),
        // One level may fit all numbers; a ratio of the largest to the smallest is never below 1.
        low: (largest(|y| y.low) / least(|y| y.high)).max(1.0),
        high: largest(|y| y.high) / least(|y| y.low),
    })
}

/// The steps of a series in rising order of x; steps from zero to zero are left out.
pub fn steps(series: &[At]) -> Vec<Step> {
    let step = |pair: &[At]| Some(Step { from: pair[0].x, to: pair[1].x, ratio: pair[1].y.over(pair[0].y)? });
    series.windows(2).filter_map(step).collect()
}

/// The step with the largest ratio; the first of equal ones.
pub fn largest_step(series: &[At]) -> Option<Step> {
    steps(series)
        .into_iter()
        .reduce(|best, step| if step.ratio.value > best.ratio.value { step } else { best })
}

/// The line through a series. The interval of its R^2 is that of the correlation by Fisher's
/// transformation (Fisher 1921, Metron 1, 3-32), which is right if the numbers scatter normally
/// about the line. `None` for fewer than four numbers, for which there is no interval, and where
/// all x or all y are the same.
pub fn line(series: &[At]) -> Option<Line> {
    let n = series.len() as f64;
    let mean = |of: fn(&At) -> f64| series.iter().map(of).sum::<f64>() / n;
    let x = mean(|at| at.x);
    let y = mean(|at| at.y.value);
    let sum = |of: fn(f64, f64) -> f64| series.iter().map(|at| of(at.x - x, at.y.value - y)).sum::<f64>();
    let xx = sum(|x, _| x * x);
    let xy = sum(|x, y| x * y);
    let yy = sum(|_, y| y * y);
    if n < LINE_MIN || xx <= 0.0 || yy <= 0.0 {
        return None;
    }
    let correlation = (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0);
    let half = NORMAL_97_5 / (n - 3.0).sqrt();
    let ends = [-half, half].map(|half| (correlation.atanh() + half).tanh());
    let [a, b] = ends.map(|end| end * end);
    let determination = Estimate {
        value: correlation * correlation,
        low: if ends[0] * ends[1] < 0.0 { 0.0 } else { a.min(b) },
        high: a.max(b),
    };
    let slope = xy / xx;
    Some(Line { start: y - slope * x, slope, determination })
}

/// The x at which a series is smallest; the first of equal ones. The interval covers all x at which
/// it may be: those whose number is not surely above that of another. `None` without any.
pub fn least(series: &[At]) -> Option<Estimate> {
    let least = series.iter().reduce(|least, at| if at.y.value < least.y.value { at } else { least })?;
    let may_be = |at: &&At| series.iter().all(|other| !at.y.is_surely_above(other.y));
    let xs = || series.iter().filter(may_be).map(|at| at.x);
    Some(Estimate { value: least.x, low: xs().fold(least.x, f64::min), high: xs().fold(least.x, f64::max) })
}

/// The first x at which one series exceeds another by more than their errors. Only the x of both
/// series count.
pub fn crossover(of: &[At], against: &[At]) -> Crossover {
    let mut was_below = false;
    for at in of {
        let Some(other) = against.iter().find(|other| other.x == at.x) else { continue };
        if at.y.is_surely_above(other.y) {
            return if was_below { Crossover::At(at.x) } else { Crossover::FromTheStart };
        }
        was_below = true;
    }
    Crossover::Never
}

/// The share of the rows whose numbers rise from first to last. The interval reaches from the share
/// of rows that surely rise to the share of rows that surely fall nowhere. `None` without a row.
pub fn ordered(rows: &[Vec<Estimate>]) -> Option<Estimate> {
    let share = |holds: fn(Estimate, Estimate) -> bool| {
        let rising = rows.iter().filter(|row| row.windows(2).all(|pair| holds(pair[0], pair[1])));
        rising.count() as f64 / rows.len() as f64
    };
    (!rows.is_empty()).then(|| Estimate {
        value: share(|a, b| a.value < b.value),
        low: share(|a, b| b.is_surely_above(a)),
        high: share(|a, b| !a.is_surely_above(b)),
    })
}

/// The median of the numbers from an x on, divided by the median of the numbers before it; `None`
/// where one side has no numbers.
pub fn fall(series: &[At], at: f64) -> Option<Estimate> {
    let side = |after: bool| {
        let here: Vec<Estimate> =
            series.iter().filter(|known| (known.x >= at) == after).map(|known| known.y).collect();
        let of = |part: fn(&Estimate) -> f64| middle(&sorted(here.iter().map(part)));
        Some(Estimate { value: of(|y| y.value)?, low: of(|y| y.low)?, high: of(|y| y.high)? })
    };
    side(true)?.over(side(false)?)
}

/// 95 % interval of a share that was seen in `count` messages (Wilson 1927, Journal of the American
/// Statistical Association 22, 209-212). It holds for independent messages, as that of a median,
/// hence within this run only.
pub fn share(seen: f64, count: u64) -> Estimate {
    if count == 0 {
        return Estimate { value: seen, low: 0.0, high: 1.0 };
    }
    let n = count as f64;
    let z2 = NORMAL_97_5 * NORMAL_97_5;
    let centre = (seen + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = NORMAL_97_5 / (1.0 + z2 / n) * (seen * (1.0 - seen) / n + z2 / (4.0 * n * n)).sqrt();
    Estimate { value: seen, low: (centre - half).clamp(0.0, seen), high: (centre + half).clamp(seen, 1.0) }
}

/// A share of the messages of several runs together, each with its number of messages. The interval
/// covers that of [`share`], and the interval of the runs' mean by their spread (Student's t),
/// since runs may differ by more than chance. `None` without a message.
pub fn share_of_runs(runs: &[(f64, u64)]) -> Option<Estimate> {
    let (seen, count) = together(runs);
    let together = (count > 0).then(|| share(seen, count))?;
    let n = runs.len() as f64;
    let Ok(student) = StudentsT::new(0.0, 1.0, n - 1.0) else { return Some(together) };
    let mean = runs.iter().map(|(seen, _)| seen).sum::<f64>() / n;
    let squares: f64 = runs.iter().map(|(seen, _)| (seen - mean).powi(2)).sum();
    let half = student.inverse_cdf(0.975) * (squares / (n - 1.0) / n).sqrt();
    let low = together.value - half;
    let high = together.value + half;
    Some(Estimate { low: low.max(0.0).min(together.low), high: high.min(1.0).max(together.high), ..together })
}

/// A share of the messages of several runs, and their number; zero without a message.
pub fn together(runs: &[(f64, u64)]) -> (f64, u64) {
    let count: u64 = runs.iter().map(|(_, count)| *count).sum();
    let seen: f64 = runs.iter().map(|(seen, count)| seen * *count as f64).sum();
    (seen / count.max(1) as f64, count)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The middle of sorted values; the mean of the middle two of an even number.
fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[sorted.len() / 2 - 1], upper) })
}

/// With fewer points Fisher's interval has no degree of freedom.
const LINE_MIN: f64 = 4.0;

#[cfg(test)]
mod tests;
