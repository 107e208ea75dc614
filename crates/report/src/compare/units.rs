//! The units of a comparison, and their numbers.
//!
//! Where sides were measured by turns or in a mixed order, a run is a unit, and its number is the
//! median over its repetitions: repetitions of one run resemble each other. Of sides that were
//! measured one after the other, each repetition is a unit, and the floor of sessions covers what
//! they have in common.

use std::collections::{BTreeMap, BTreeSet};

use measure::presentation::Patterns;
use measure::record::Point;
use verdict::compare::{Cell, Question};
use verdict::session::is_mixed;

use super::asked::{Asked, Order, Session};
use super::matching::{Matched, Pair};
use super::number::{Number, middle_mean};
use crate::Error;
use crate::list::grouped;
use crate::series_table::median;

/// The fewest runs of a side that are compared as units: fewer cannot decide anything.
const RUNS_LEAST: usize = 5;
/// The step of times in a record, in ns.
const RECORDED_NS: f64 = 1.0;

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
    /// The number of missing values of the new side, and of expected ones. If some are missing, the
    /// others may be the better ones.
    pub(super) lacking: [usize; 2],
    /// Why the new side counts as failed: it fails more often than the base.
    pub(super) failure: Option<String>,
}

/// Returns how the runs of the sides were measured.
pub(super) fn order(asked: &Asked<'_>) -> Order {
    if asked.by_turns {
        return Order::Turns;
    }
    let has_enough = asked.sides.iter().all(|side| side.len() >= RUNS_LEAST);
    if has_enough && is_mixed(&stretches(asked.sides)) { Order::Mixed } else { Order::Sessions }
}

/// Whether each run is of the new side, in the order of time. The order of runs that started at
/// once (records of other versions have whole seconds) is the one that alternates least.
fn stretches(sides: [&[Session<'_>]; 2]) -> Vec<bool> {
    let starts = |side: usize| sides[side].iter().map(move |session| (session.start(), side == 1));
    let mut starts: Vec<(&str, bool)> = starts(0).chain(starts(1)).collect();
    starts.sort_unstable();
    let mut all: Vec<bool> = Vec::new();
    for at_once in starts.chunk_by(|a, b| a.0 == b.0) {
        let last = all.last().copied().unwrap_or_default();
        let of = |is_new: bool| at_once.iter().map(|(_, is_new)| *is_new).filter(move |of| *of == is_new);
        all.extend(of(last).chain(of(!last)));
    }
    all
}

/// The questions of a comparison.
#[derive(Default)]
pub(super) struct Questions {
    pub(super) all: Vec<Asking>,
    /// Numbers that the base does not have, in words.
    pub(super) lacking: Vec<String>,
    /// The quantities that the base alone has.
    pub(super) absent: Vec<Lacking>,
}

/// A quantity of a combination that the base alone has.
pub(super) struct Lacking {
    /// The index of the combination.
    pub(super) at: usize,
    pub(super) path: String,
    pub(super) why: String,
}

/// Returns the questions of all combinations that both sides have. `history` are its runs, in the
/// order of their start.
pub(super) fn questions<'a>(
    asked: &Asked<'a>,
    matched: &Matched<'a>,
    history: &[Session<'a>],
    order: Order,
) -> Result<Questions, Error> {
    let of = |sessions: &[Session<'a>]| -> Vec<Points<'a>> {
        sessions.iter().map(|session| (*session, matched.points(session))).collect()
    };
    let tables = Tables { sides: asked.sides.map(of), history: of(history), order, patterns: asked.patterns };
    let mut questions = Questions::default();
    for (at, pair) in matched.pairs.iter().enumerate() {
        for path in Number::paths(asked.quantities, pair.first) {
            let points = tables.sides.iter().flatten().flat_map(|(_, pairs)| &pairs[at]).copied();
            let number = Number::named(path, points, asked.patterns)?;
            match tables.question(at, pair, &number) {
                Ok(asking) => questions.all.push(asking),
                Err(0) => {
                    let base = asked.names[0];
                    questions.lacking.push(format!("no {path} above 0 in {base}: {}", pair.name()));
                }
                Err(_) => {
                    let why = format!("no {path} above 0 in {}", asked.names[1]);
                    questions.absent.push(Lacking { at, path: path.to_owned(), why });
                }
            }
        }
    }
    if asked.by_experiment {
        questions.all = by_experiment(questions.all);
    }
    Ok(questions)
}

/// A session with its points of each pair.
type Points<'a> = (Session<'a>, Vec<Vec<&'a Point>>);
/// A session with the numbers of its points of one pair.
type Numbers<'a> = (Session<'a>, Vec<(&'a Point, f64)>);

/// The points of all sessions.
struct Tables<'a> {
    sides: [Vec<Points<'a>>; 2],
    history: Vec<Points<'a>>,
    order: Order,
    patterns: Patterns,
}

impl<'a> Tables<'a> {
    /// The question of a pair; the index of the side that has no number otherwise.
    fn question(&self, at: usize, pair: &Pair<'a>, number: &Number<'_>) -> Result<Asking, usize> {
        let of = |(session, pairs): &Points<'a>| -> Numbers<'a> {
            let numbers =
                pairs[at].iter().filter_map(|point| Some((*point, number.of(point, self.patterns)?)));
            (*session, numbers.collect())
        };
        let mut sides = self.sides.each_ref().map(|side| side.iter().map(of).collect::<Vec<_>>());
        let mut history: Vec<Numbers<'a>> = self.history.iter().map(of).collect();
        let step = if number.is_time { step(&sides, number) } else { None };
        if step.is_some() && number.is_median() {
            replace(&mut sides, &mut history);
        }
        let medians = sides.each_ref().map(|side| middle(side.iter().flat_map(|(_, points)| points)));
        let [base, new] = match medians {
            [Some(base), Some(new)] => [base, new],
            [None, _] => return Err(0),
            [_, None] => return Err(1),
        };
        let y = |of: f64| number.sign * of.ln();
        let mut cells = sides.each_ref().map(|side| units(side, self.order, y));
        let lacking = [0, 1].map(|side| {
            let found: usize = sides[side].iter().map(|(_, points)| points.len()).sum();
            pair.wanted[side].saturating_sub(found)
        });
        fill(&mut cells, self.order, &pair.tried, lacking[0]);
        // A difference of one step is not larger than a step, however it is rounded.
        let step = step.map_or(0.0, |step| (step / base.min(new)).ln_1p() * (1.0 + 1e-9));
        Ok(Asking {
            experiment: pair.experiment.clone(),
            point: pair.point.clone(),
            quantity: number.path.to_owned(),
            help: number.help.clone(),
            sign: number.sign,
            medians: Some([base, new]),
            lacking: [lacking[1], pair.wanted[1]],
            failure: pair.failure.clone(),
            numbers: Question { sides: cells, step, history: past(&history, &sides[0], y) },
        })
    }
}

/// The median of each earlier session, and that of the base's; empty without earlier ones.
fn past(history: &[Numbers<'_>], base: &[Numbers<'_>], y: impl Fn(f64) -> f64) -> Vec<f64> {
    if history.is_empty() {
        return Vec::new();
    }
    let sessions = history.chunks(base.len().max(1)).chain([base]);
    let median = |session: &[Numbers<'_>]| middle(session.iter().flat_map(|(_, points)| points));
    sessions.filter_map(median).map(y).collect()
}

/// The step of the clock, in ns, if times sit on steps: if fewer than half of them differ.
fn step(sides: &[Vec<Numbers<'_>>; 2], number: &Number<'_>) -> Option<f64> {
    let all =
        || sides.iter().flatten().flat_map(|(session, points)| points.iter().map(move |one| (session, one)));
    let mut values: Vec<f64> = all().map(|(_, (_, number))| *number).collect();
    let count = values.len();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    if 2 * values.len() >= count {
        return None;
    }
    let samples =
        || all().filter_map(|(session, (point, _))| middle_mean(session, point)?.step_ns).reduce(f64::max);
    let of_samples = if number.is_of_latency() { samples() } else { None };
    // The times themselves show a step, too: at the tail of a histogram, a larger one.
    let of_times = values.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min);
    let step = match number.is_median() {
        true => of_samples.or(of_times),
        false => of_samples.into_iter().chain(of_times).reduce(f64::max),
    };
    Some(step.unwrap_or(RECORDED_NS))
}

/// Replaces medians by the mean of the middle half of the samples, if the records have the samples
/// of all.
fn replace<'a>(sides: &mut [Vec<Numbers<'a>>; 2], history: &mut Vec<Numbers<'a>>) {
    let replaced = |numbers: &Vec<Numbers<'_>>| -> Option<Vec<Vec<f64>>> {
        let of = |(session, points): &Numbers<'_>| {
            points.iter().map(|(point, _)| Some(middle_mean(session, point)?.mean_ns)).collect()
        };
        numbers.iter().map(of).collect()
    };
    let all: Option<Vec<_>> = sides.iter().chain([&*history]).map(replaced).collect();
    let numbers = sides.iter_mut().chain([history]).flatten().flat_map(|(_, points)| points);
    for ((_, number), mean) in numbers.zip(all.into_iter().flatten().flatten().flatten()) {
        *number = mean;
    }
}

/// The most units of a session. If a session has more repetitions, as a large fleet has pairs, the
/// median of several successive repetitions is a unit.
const UNITS_MAX: usize = 1_000;

/// The units of a side.
fn units(side: &[Numbers<'_>], order: Order, y: impl Fn(f64) -> f64) -> BTreeMap<u32, Cell> {
    let placement =
        |point: &Point| point.calibration.as_ref().map(|found| found.before_ns.max(found.after_ns));
    let cell = |numbers: &[(&Point, f64)]| {
        let placement_ns = numbers.iter().filter_map(|(point, _)| placement(point)).reduce(f64::max);
        Some(Cell { y: y(middle(numbers.iter())?), placement_ns })
    };
    match order {
        Order::Sessions => {
            let all: Vec<(&Point, f64)> = side.iter().flat_map(|(_, points)| points).copied().collect();
            let size = all.len().div_ceil(UNITS_MAX).max(1);
            (0..).zip(all.chunks(size).filter_map(cell)).collect()
        }
        Order::Turns | Order::Mixed => {
            let cells = (0..).zip(side).map(|(unit, (_, points))| Some((unit, cell(points)?)));
            cells.flatten().collect()
        }
    }
}

/// Gives each unit of the base without a value the worst value of both sides: without these units,
/// the base would look better than it is. `tried` are its runs that have the point, and `lacking`
/// is the number of its repetitions without a value.
fn fill(cells: &mut [BTreeMap<u32, Cell>; 2], order: Order, tried: &BTreeSet<usize>, lacking: usize) {
    let Some(worst) = cells.iter().flat_map(BTreeMap::values).map(|cell| cell.y).reduce(f64::min) else {
        return;
    };
    let unit = |run: &usize| u32::try_from(*run).unwrap_or(u32::MAX);
    let units: Vec<u32> = match order {
        Order::Turns | Order::Mixed => tried.iter().map(unit).collect(),
        Order::Sessions => {
            let next = cells[0].len();
            (next..next + lacking.min(UNITS_MAX)).map(|at| unit(&at)).collect()
        }
    };
    for unit in units {
        cells[0].entry(unit).or_insert(Cell { y: worst, placement_ns: None });
    }
}

/// The median of some numbers.
fn middle<'p, 'a: 'p>(points: impl Iterator<Item = &'p (&'a Point, f64)>) -> Option<f64> {
    median(points.map(|(_, number)| *number).collect())
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
        let level = median(one.numbers.sides[0].values().map(|cell| cell.y).collect())?;
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
            let placement_ns = cells.iter().filter_map(|cell| cell.placement_ns).reduce(f64::max);
            Some(Cell { y: median(cells.iter().map(|cell| cell.y).collect())?, placement_ns })
        };
        whole.filter_map(|(unit, cells)| Some((unit, cell(cells)?))).collect()
    });
    let sessions = group.iter().map(|one| one.numbers.history.len()).min().unwrap_or(0);
    let of_session = |at: usize| median(group.iter().map(|one| one.numbers.history[at]).collect());
    let is_whole = group.iter().all(|one| one.numbers.history.len() == sessions);
    let history = if is_whole { (0..sessions).filter_map(of_session).collect() } else { Vec::new() };
    let step = group.iter().map(|one| one.numbers.step).fold(0.0, f64::max);
    let count = group.len();
    let lacking = [0, 1].map(|at| group.iter().map(|one| one.lacking[at]).sum());
    let failure = group.iter().find_map(|one| one.failure.clone());
    let first = group.swap_remove(0);
    let point = format!("{count} points");
    Some(Asking {
        point,
        medians: None,
        lacking,
        failure,
        numbers: Question { sides, step, history },
        ..first
    })
}
