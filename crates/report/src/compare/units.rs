//! The units of a comparison, and their numbers.
//!
//! Where sides were measured by turns or in a mixed order, a run is a unit, and its number is the
//! median over its repetitions: repetitions of one run resemble each other. Of sides that were
//! measured one after the other, each repetition is a unit, and the floor of sessions covers what
//! they have in common.

use std::collections::BTreeMap;

use measure::record::Point;
use measure::stats::spread;
use verdict::compare::{Cell, Question};
use verdict::session::{LEAST, is_mixed};

use super::asked::{Asked, Order, Session};
use super::matching::{Matched, Pair};
use super::number::{Number, middle_mean};
use crate::Error;
use crate::list::grouped;

/// The fewest runs of a side that are compared as units: fewer cannot decide anything.
const RUNS_LEAST: usize = 5;

/// A question with what is printed of it.
pub(super) struct Asking {
    pub(super) experiment: String,
    pub(super) point: String,
    pub(super) quantity: String,
    pub(super) help: String,
    /// The sign that turns the logarithms of the question into those of the number.
    pub(super) sign: f64,
    pub(super) medians: Option<[f64; 2]>,
    pub(super) numbers: Question,
}

/// Returns how the runs of the sides were measured.
pub(super) fn order(asked: &Asked<'_>) -> Order {
    if asked.by_turns {
        return Order::Turns;
    }
    // A start has no fraction of a second: runs of one second count as alternating.
    let starts = |side: usize| {
        let starts = by_time(asked.sides[side]).into_iter().enumerate();
        starts.map(move |(at, session)| (session.run.started.as_str(), at, side == 1))
    };
    let mut starts: Vec<(&str, usize, bool)> = starts(0).chain(starts(1)).collect();
    starts.sort_unstable();
    let has_enough = asked.sides.iter().all(|side| side.len() >= RUNS_LEAST);
    match has_enough && is_mixed(&starts.iter().map(|(.., is_new)| *is_new).collect::<Vec<_>>()) {
        true => Order::Mixed,
        false => Order::Sessions,
    }
}

/// Whether a question has a history from which its floor follows.
pub(super) fn has_floor(question: &Question) -> bool {
    question.history.len() > LEAST
}

/// Returns the questions of all combinations that both sides have.
pub(super) fn questions(asked: &Asked<'_>, matched: &Matched, order: Order) -> Result<Vec<Asking>, Error> {
    let mut all = Vec::new();
    for pair in &matched.pairs {
        let first = asked.sides[0].iter().find_map(|session| matched.points(session, pair).first().copied());
        let Some(first) = first else { continue };
        for path in Number::paths(asked.quantities, first) {
            let number = Number::named(path, asked.patterns)?;
            all.extend(question(asked, matched, pair, &number, order));
        }
    }
    Ok(if asked.by_experiment { by_experiment(all) } else { all })
}

fn question<'a>(
    asked: &Asked<'a>,
    matched: &Matched,
    pair: &Pair,
    number: &Number<'_>,
    order: Order,
) -> Option<Asking> {
    let of = |session: &'a Session<'a>| -> Vec<(&'a Point, f64)> {
        let points = matched.points(session, pair);
        points.into_iter().filter_map(|point| Some((point, number.of(point, asked.patterns)?))).collect()
    };
    let sides = asked.sides.map(|side| side.iter().map(|one| (one, of(one))).collect::<Vec<_>>());
    let history: Vec<_> = by_time(asked.history).into_iter().map(|one| (one, of(one))).collect();
    let (sides, history, step) = steps(sides, history, number.is_median());
    let numbers = sides
        .each_ref()
        .map(|side| -> Vec<f64> { side.iter().flat_map(|one| &one.1).map(|of| of.1).collect() });
    let medians = match numbers.each_ref().map(|side| spread(side).map(|spread| spread.median)) {
        [Some(base), Some(new)] => Some([base, new]),
        _ => return None,
    };
    let y = |number: f64, sign: f64| sign * number.ln();
    let cells = sides.each_ref().map(|side| units(side, order, |of| y(of, number.sign)));
    let median = |(_, points): &Numbers<'_>| Some(y(middle(points)?, number.sign));
    let mut past: Vec<f64> = history.iter().filter_map(median).collect();
    past.extend(sides[0].iter().filter_map(median));
    Some(Asking {
        experiment: pair.experiment.clone(),
        point: pair.point.clone(),
        quantity: number.path.to_owned(),
        help: number.help.clone(),
        sign: number.sign,
        medians,
        numbers: Question {
            sides: cells,
            step: step.map_or(0.0, |step| (step / medians.map_or(step, |[base, _]| base)).ln_1p()),
            history: if order == Order::Sessions { past } else { Vec::new() },
        },
    })
}

/// A session with the numbers of its points of one combination.
type Numbers<'a> = (&'a Session<'a>, Vec<(&'a Point, f64)>);
/// The sessions of both sides.
type Sides<'a> = [Vec<Numbers<'a>>; 2];

/// Replaces medians that sit on steps of the clock by the mean of the middle half of the samples,
/// where the records have the samples of all; and returns the largest step.
fn steps<'a>(
    sides: Sides<'a>,
    history: Vec<Numbers<'a>>,
    is_median: bool,
) -> (Sides<'a>, Vec<Numbers<'a>>, Option<f64>) {
    let all =
        || sides.iter().flatten().flat_map(|(session, points)| points.iter().map(move |one| (session, one)));
    let mut values: Vec<u64> = all().map(|(_, (_, number))| number.to_bits()).collect();
    let count = values.len();
    values.sort_unstable();
    values.dedup();
    if !is_median || 2 * values.len() >= count {
        return (sides, history, None);
    }
    let step =
        all().filter_map(|(session, (point, _))| middle_mean(session, point)?.step_ns).reduce(f64::max);
    // Without any distribution, the medians themselves show the step.
    let numbers = values.iter().map(|bits| f64::from_bits(*bits)).collect::<Vec<_>>();
    let step = step.or_else(|| numbers.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min));
    let replaced = |numbers: &[Numbers<'a>]| -> Option<Vec<Numbers<'a>>> {
        let of = |(session, points): &Numbers<'a>| {
            let means = points.iter().map(|(point, _)| Some((*point, middle_mean(session, point)?.mean_ns)));
            Some((*session, means.collect::<Option<Vec<_>>>()?))
        };
        numbers.iter().map(of).collect()
    };
    match (replaced(&sides[0]), replaced(&sides[1]), replaced(&history)) {
        (Some(base), Some(new), Some(history)) => ([base, new], history, step),
        _ => (sides, history, step),
    }
}

/// The units of a side.
fn units(side: &[Numbers<'_>], order: Order, y: impl Fn(f64) -> f64) -> BTreeMap<u32, Cell> {
    let placement =
        |point: &Point| point.calibration.as_ref().map(|found| found.before_ns.max(found.after_ns));
    match order {
        Order::Sessions => {
            let points = side.iter().flat_map(|(_, points)| points);
            let cell =
                |(point, number): &(&Point, f64)| Cell { y: y(*number), placement_ns: placement(point) };
            (0..).zip(points.map(cell)).collect()
        }
        Order::Turns | Order::Mixed => {
            let cell = |(_, points): &Numbers<'_>| {
                let placement_ns = points.iter().filter_map(|(point, _)| placement(point)).reduce(f64::max);
                Some(Cell { y: y(middle(points)?), placement_ns })
            };
            let cells = (0..).zip(side).map(|(unit, one)| Some((unit, cell(one)?)));
            cells.flatten().collect()
        }
    }
}

/// The median over the repetitions of a run.
fn middle(points: &[(&Point, f64)]) -> Option<f64> {
    let numbers: Vec<f64> = points.iter().map(|(_, number)| *number).collect();
    spread(&numbers).map(|spread| spread.median)
}

/// Sessions in the order of their start.
fn by_time<'a>(sessions: &'a [Session<'a>]) -> Vec<&'a Session<'a>> {
    let mut sorted: Vec<&Session<'_>> = sessions.iter().collect();
    sorted.sort_by_key(|session| &session.run.started);
    sorted
}

/// Makes one question of the points of each experiment and quantity: the median over the points of
/// each unit's ratio to the base.
fn by_experiment(all: Vec<Asking>) -> Vec<Asking> {
    let keyed = all.into_iter().map(|one| ((one.experiment.clone(), one.quantity.clone()), one));
    grouped(keyed).into_iter().filter_map(|(_, group)| as_one(group)).collect()
}

fn as_one(mut group: Vec<Asking>) -> Option<Asking> {
    if group.len() == 1 {
        return group.pop();
    }
    for one in &mut group {
        let base: Vec<f64> = one.numbers.sides[0].values().map(|cell| cell.y).collect();
        let level = spread(&base)?.median;
        one.numbers.sides.iter_mut().flat_map(BTreeMap::values_mut).for_each(|cell| cell.y -= level);
        let last = one.numbers.history.last().copied().unwrap_or_default();
        one.numbers.history.iter_mut().for_each(|y| *y -= last);
    }
    let sides = [0, 1].map(|side| {
        let mut units: BTreeMap<u32, Vec<Cell>> = BTreeMap::new();
        for (unit, cell) in group.iter().flat_map(|one| &one.numbers.sides[side]) {
            units.entry(*unit).or_default().push(*cell);
        }
        let whole = units.into_iter().filter(|(_, cells)| cells.len() == group.len());
        let cell = |cells: Vec<Cell>| {
            let y: Vec<f64> = cells.iter().map(|cell| cell.y).collect();
            let placement_ns = cells.iter().filter_map(|cell| cell.placement_ns).reduce(f64::max);
            Some(Cell { y: spread(&y)?.median, placement_ns })
        };
        whole.filter_map(|(unit, cells)| Some((unit, cell(cells)?))).collect()
    });
    let sessions = group.iter().map(|one| one.numbers.history.len()).min().unwrap_or(0);
    let of_session = |at: usize| {
        let values: Vec<f64> = group.iter().map(|one| one.numbers.history[at]).collect();
        spread(&values).map(|spread| spread.median)
    };
    let is_whole = group.iter().all(|one| one.numbers.history.len() == sessions);
    let history = if is_whole { (0..sessions).filter_map(of_session).collect() } else { Vec::new() };
    let step = group.iter().map(|one| one.numbers.step).fold(0.0, f64::max);
    let count = group.len();
    let first = group.swap_remove(0);
    let point = format!("{count} points");
    Some(Asking { point, medians: None, numbers: Question { sides, step, history }, ..first })
}
