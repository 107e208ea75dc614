//! The number that each kind of finding computes, in the unit of its range, and its text.

use measure::finding::{Finding, FindingKind, RangeUnit};
use measure::stats::shape::{self, Crossover, Estimate};

use super::cell::{self, Asked, Series};

use super::verdict::Verdict;
use crate::environments;
use crate::folded::{Doubts, Measured, digits};
use crate::unit;

/// The number that was computed from the points of a case.
#[derive(Debug)]
pub(super) struct Made {
    /// The number, in the unit of the finding's range.
    pub(super) figure: Estimate,
    /// The number and the numbers that it is computed from, in print.
    pub(super) text: String,
    /// The verdict where the range does not decide it.
    pub(super) outright: Option<Verdict>,
    /// Whether some of these have no interval, so that the number decides nothing.
    pub(super) lacks_interval: bool,
    pub(super) doubts: Doubts,
    /// One of the points.
    pub(super) id: Option<u64>,
}

/// Computes the number of a finding, or says why there is none.
pub(super) fn make(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    match finding.kind {
        FindingKind::Argmin => argmin(finding, points),
        FindingKind::Change => change(finding, points),
        FindingKind::Crossover => crossover(finding, points),
        FindingKind::Falls => falls(finding, points),
        FindingKind::Agree => agree(finding, points),
        FindingKind::Flat => flat(finding, points),
        FindingKind::Linear => linear(finding, points),
        FindingKind::Order => order(finding, points),
        FindingKind::Step => step(finding, points),
        FindingKind::Value => value(finding, points),
    }
}

fn change(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    let of = cell::one(finding, &finding.of, points)?;
    let against = cell::one(finding, &finding.against, points)?;
    let [one, other] =
        [&finding.of, &finding.against].map(|selection| cell::picked(finding, selection, points));
    let partly = environments::compare(&one, &other)?;
    let beside = format!("{} against {}", of.text(), against.text());
    let figure = match finding.holds.unit {
        RangeUnit::Time => Some(of.y.minus(against.y)),
        RangeUnit::Percent | RangeUnit::Plain => of.y.over(against.y).map(|ratio| relative(finding, ratio)),
    };
    let both = [&of, &against].into_iter();
    Ok(match figure {
        Some(figure) => {
            let text = format!("{}: {beside}{partly}", said(finding, figure));
            made_of(both, figure, text, None)
        }
        None => {
            let zero = Some(Verdict::Inconclusive("both are zero"));
            made_of(both, Estimate::exact(f64::NAN), beside, zero)
        }
    })
}

fn value(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    let measured = cell::one(finding, &finding.of, points)?;
    let figure = match finding.holds.unit {
        RangeUnit::Percent => measured.y.map(|share| share * 100.0),
        RangeUnit::Plain | RangeUnit::Time => measured.y,
    };
    let interval = if figure.low == figure.high { String::new() } else { interval(finding, figure) };
    let text = format!("{}{interval}", measured.text());
    Ok(made_of([&measured].into_iter(), figure, text, None))
}

fn agree(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    let named = cell::named(finding, &finding.of, points);
    // The statistic of a series does not depend on the positions of its numbers along x.
    let at = named.numbers();
    let missing = named.gaps();
    let ratio = shape::flatness(&at).ok_or_else(|| named.lack())?;
    let [(first, least), (last, largest)] = named.extremes().ok_or_else(|| named.lack())?;
    let figure = relative(finding, ratio);
    let text = format!(
        "{} between {}: from {} of {first} to {} of {last}{missing}",
        said(finding, figure),
        named.at.len(),
        least.text(),
        largest.text(),
    );
    Ok(made_of(named.at.iter().map(|(_, measured)| measured), figure, text, None))
}

fn flat(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    let series = cell::series(finding, &finding.of, points);
    let ratio = shape::flatness(&series.points()).ok_or_else(|| series.lack(2))?;
    let [least, largest] = series.extremes().ok_or_else(|| series.lack(2))?;
    let figure = relative(finding, ratio);
    let text = format!(
        "{}: from {} at {} to {} at {} ({} x{})",
        said(finding, figure),
        least.1.text(),
        at(finding, least.0),
        largest.1.text(),
        at(finding, largest.0),
        series.at.len(),
        series.least_count()
    );
    Ok(over(&[&series], figure, text, None))
}

fn linear(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    let series = cell::series(finding, &finding.of, points);
    let known = series.points();
    let (Some((first, one)), Some((last, _)), 4..) = (series.at.first(), series.at.last(), known.len())
    else {
        return Err(series.lack(4));
    };
    let line = shape::line(&known)
        .ok_or_else(|| format!("all {} numbers are {}: a line explains nothing", known.len(), one.text()))?;
    let text = format!(
        "R^2 {:.3}{}: the line from {} at {} to {} at {} ({} x{})",
        line.determination.value,
        interval(finding, line.determination),
        one.in_its_unit(line.at(*first)),
        at(finding, *first),
        one.in_its_unit(line.at(*last)),
        at(finding, *last),
        known.len(),
        series.least_count()
    );
    Ok(over(&[&series], line.determination, text, None))
}

fn argmin(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    let series = cell::series(finding, &finding.of, points);
    let least = match shape::least(&series.points()) {
        Some(least) if series.at.len() > 1 => least,
        _ => return Err(series.lack(2)),
    };
    let number = |x: f64| series.get(x).map(Measured::text).unwrap_or_default();
    let ends = [least.low, least.high].map(|x| at(finding, x));
    let interval = if ends[0] == ends[1] { String::new() } else { format!(" [{}, {}]", ends[0], ends[1]) };
    let beside =
        [series.at.first(), series.at.last()].into_iter().flatten().filter(|(x, _)| *x != least.value);
    let beside: Vec<String> =
        beside.map(|(x, measured)| format!("{} at {}", measured.text(), at(finding, *x))).collect();
    let text = format!(
        "smallest at {}{interval} of {} x: {}; {}",
        at(finding, least.value),
        series.at.len(),
        number(least.value),
        beside.join(", ")
    );
    Ok(over(&[&series], least, text, None))
}

fn step(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    let series = cell::series(finding, &finding.of, points);
    let [from, to] = finding.between.ok_or("the finding names no neighbouring x")?;
    for x in [from, to] {
        if series.get(x).is_none() {
            return Err(format!("at {}: {}", at(finding, x), series.lack_at(x)));
        }
    }
    let step = shape::largest_step(&series.points()).ok_or_else(|| series.lack(2))?;
    let figure = relative(finding, step.ratio);
    let number = |x: f64| series.get(x).map(Measured::text).unwrap_or_default();
    let text = format!(
        "{} from {} to {}: {} to {}",
        said(finding, figure),
        at(finding, step.from),
        at(finding, step.to),
        number(step.from),
        number(step.to)
    );
    let elsewhere = [step.from, step.to] != [from, to];
    let verdict = elsewhere.then_some(Verdict::Contradicted("the largest step is elsewhere"));
    Ok(over(&[&series], figure, text, verdict))
}

fn crossover(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    let of = cell::series(finding, &finding.of, points);
    let against = cell::series(finding, &finding.against, points);
    let both: Vec<f64> = of.at.iter().map(|(x, _)| *x).filter(|x| against.get(*x).is_some()).collect();
    let (Some(first), Some(last)) = (both.first(), both.last()) else {
        return Err(if of.at.is_empty() { of.lack(1) } else { against.lack(1) });
    };
    let beside = |x: f64| {
        let text = |series: &Series| series.get(x).map(Measured::text).unwrap_or_default();
        format!("{} against {}", text(&of), text(&against))
    };
    let (x, text, verdict) = match shape::crossover(&of.points(), &against.points()) {
        Crossover::At(x) => (x, format!("at {}: {}", at(finding, x), beside(x)), None),
        Crossover::FromTheStart => {
            let text = format!("above from the first x on, {}: {}", at(finding, *first), beside(*first));
            (*first, text, Some(Verdict::Contradicted("the series do not cross")))
        }
        Crossover::Never => {
            let limits = format!("from {} to {}", at(finding, *first), at(finding, *last));
            let text = format!("not above by more than the errors {limits}; at the last {}", beside(*last));
            (f64::INFINITY, text, Some(Verdict::Contradicted("the series do not cross")))
        }
    };
    Ok(over(&[&of, &against], Estimate::exact(x), text, verdict))
}

fn order(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    if finding.x.is_none() {
        let row: Vec<Measured> = finding
            .order
            .iter()
            .map(|selection| cell::one(finding, selection, points))
            .collect::<Result<_, _>>()?;
        let numbers: Vec<String> = row.iter().map(Measured::text).collect();
        let share = shape::ordered(&[row.iter().map(|measured| measured.y).collect()]);
        let figure = share.ok_or("there is no row")?.map(|share| share * 100.0);
        return Ok(made_of(row.iter(), figure, numbers.join(", then "), None));
    }
    let all: Vec<Series> =
        finding.order.iter().map(|selection| cell::series(finding, selection, points)).collect();
    let row = |x: f64| all.iter().map(|series| series.get(x).map(|m| m.y)).collect::<Option<Vec<_>>>();
    let xs: Vec<f64> = all.first().map(|s| s.at.iter().map(|(x, _)| *x).collect()).unwrap_or_default();
    let rows: Vec<(f64, Vec<Estimate>)> = xs.into_iter().filter_map(|x| Some((x, row(x)?))).collect();
    let values: Vec<Vec<Estimate>> = rows.iter().map(|(_, row)| row.clone()).collect();
    let share = shape::ordered(&values).ok_or_else(|| {
        let empty = all.iter().find(|series| series.at.is_empty());
        empty.map_or_else(|| "no x has a number of every series".to_owned(), |series| series.lack(1))
    })?;
    let figure = share.map(|share| share * 100.0);
    let broken = |row: &[Estimate]| row.windows(2).any(|pair| pair[0].value >= pair[1].value);
    let not_at: Vec<String> =
        rows.iter().filter(|(_, row)| broken(row)).map(|(x, _)| at(finding, *x)).collect();
    let not_at = match &not_at[..] {
        [] => String::new(),
        [.., last] if not_at.len() > X_MAX => {
            format!(", not at {} ... {last}", not_at[..X_MAX - 1].join(", "))
        }
        _ => format!(", not at {}", not_at.join(", ")),
    };
    let least = all.first().map(Series::least_count).unwrap_or_default();
    let text = format!("{} of {} x{not_at}{least}", said(finding, figure), rows.len());
    Ok(over(&all.iter().collect::<Vec<_>>(), figure, text, None))
}

fn falls(finding: &Finding, points: Asked<'_>) -> Result<Made, String> {
    let series = cell::series(finding, &finding.of, points);
    let border = finding.at.ok_or("the finding names no x")?;
    let ratio = shape::fall(&series.points(), border).ok_or_else(|| {
        let side = if series.at.iter().any(|(x, _)| *x < border) { "from" } else { "below" };
        let more = if side == "from" { " on" } else { "" };
        let gaps = series.gaps();
        format!("this run has no x {side} {}{more}{gaps}", at(finding, border))
    })?;
    let figure = relative(finding, ratio);
    let side = |after: bool| {
        let here: Vec<&(f64, Measured)> = series.at.iter().filter(|(x, _)| (*x >= border) == after).collect();
        let edge = if after { here.first() } else { here.last() };
        let edge = edge.map(|(x, measured)| format!("{} at {}", measured.text(), at(finding, *x)));
        format!("{} x with {}", here.len(), edge.unwrap_or_default())
    };
    let text = format!("{}: {} on, {} before", said(finding, figure), side(true), side(false));
    Ok(over(&[&series], figure, text, None))
}

/// The number that was computed from whole series.
fn over(series: &[&Series], figure: Estimate, text: String, outright: Option<Verdict>) -> Made {
    let cells = series.iter().flat_map(|series| &series.at).map(|(_, measured)| measured);
    let gaps: Vec<String> = series.iter().map(|series| series.gaps()).collect();
    made_of(cells, figure, format!("{text}{}", gaps.concat()), outright)
}

/// The number that was computed from several numbers, each with its doubts.
fn made_of<'a>(
    mut cells: impl Iterator<Item = &'a Measured> + Clone,
    figure: Estimate,
    text: String,
    outright: Option<Verdict>,
) -> Made {
    Made {
        figure,
        text,
        outright,
        lacks_interval: cells.clone().any(|measured| measured.lacks_interval),
        doubts: cells.clone().map(|measured| measured.doubts.clone()).fold(Doubts::default(), Doubts::and),
        id: cells.next().map(|measured| measured.id),
    }
}

/// A ratio in the unit of the finding's range: minus one and in percent, or as it is.
fn relative(finding: &Finding, ratio: Estimate) -> Estimate {
    match finding.holds.unit {
        RangeUnit::Percent => ratio.map(|ratio| (ratio - 1.0) * 100.0),
        RangeUnit::Plain | RangeUnit::Time => ratio,
    }
}

/// The number with its interval: `-64.8 % [-65.0, -64.6]`.
fn said(finding: &Finding, figure: Estimate) -> String {
    let number = match (finding.holds.unit, finding.kind) {
        (RangeUnit::Percent, FindingKind::Order) => format!("{:.0} %", figure.value),
        (RangeUnit::Percent, _) => format!("{} %", signed(figure.value, percent_digits(figure))),
        (RangeUnit::Plain, _) => format!("x {:.*}", digits(figure.value), figure.value),
        (RangeUnit::Time, _) => format!("{:+.*} ns", ns_digits(figure), figure.value),
    };
    format!("{number}{}", interval(finding, figure))
}

fn interval(finding: &Finding, figure: Estimate) -> String {
    let low = figure.low;
    let high = figure.high;
    let percent = digits(if figure.value == 0.0 { high } else { figure.value });
    let relative = |end: f64| signed(end, percent_digits(figure));
    let ns = ns_digits(figure);
    match (finding.holds.unit, finding.kind) {
        _ if low == high => String::new(),
        (RangeUnit::Percent, FindingKind::Order) => format!(" [{low:.0}, {high:.0}]"),
        (RangeUnit::Percent, FindingKind::Value) => format!(" [{low:.percent$}, {high:.percent$} %]"),
        (RangeUnit::Time, FindingKind::Value) => format!(" [{low:.ns$}, {high:.ns$} ns]"),
        (RangeUnit::Time, _) => format!(" [{low:+.ns$}, {high:+.ns$}]"),
        (RangeUnit::Percent, _) => format!(" [{}, {}]", relative(low), relative(high)),
        (RangeUnit::Plain, _) => format!(" [{low:.*}, {high:.*}]", digits(low), digits(high)),
    }
}

/// The decimals of a time in ns: none for whole numbers, else no more than the largest bound of the
/// interval deserves.
fn ns_digits(figure: Estimate) -> usize {
    let ends = [figure.value, figure.low, figure.high];
    if ends.iter().all(|end| end.fract() == 0.0) { 0 } else { percent_digits(figure) }
}

/// The decimals of a change in percent: no more than the widest bound of its interval deserves.
fn percent_digits(figure: Estimate) -> usize {
    let ends = [figure.value, figure.low, figure.high].into_iter().map(f64::abs);
    digits(ends.filter(|end| end.is_finite()).fold(0.0, f64::max))
}

/// A change in percent, large ones grouped: `-0.9`, `+12,345`.
fn signed(change: f64, digits: usize) -> String {
    if change.is_finite() && change.abs() >= GROUPED_FROM {
        let sign = if change < 0.0 { '-' } else { '+' };
        return format!("{sign}{}", unit::grouped(change.abs().round() as u64));
    }
    format!("{change:+.digits$}")
}

/// A value of x in print.
fn at(finding: &Finding, x: f64) -> String {
    if finding.x.as_deref().is_some_and(|axis| axis.ends_with("_bytes")) && x >= 0.0 {
        return unit::size(x as u64);
    }
    x.to_string()
}

/// Numbers of five digits are hard to read ungrouped.
const GROUPED_FROM: f64 = 10_000.0;
/// More values of x are abridged.
const X_MAX: usize = 6;
