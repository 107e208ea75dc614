//! Which points of the two sides belong together.

use std::collections::{BTreeSet, HashMap};

use measure::record::{Axes, Point, Status};
use measure::text::{axes_text, plain, value};
use verdict::regime::fisher;

use super::asked::{Asked, Session};
use super::differences::Difference;
use crate::Error;
use crate::list::grouped;
use crate::varying::Varying;

/// What a point has in common with its partners: its experiment and its axes.
type Key = (String, Axes);

/// A combination of axes that both sides have.
pub(super) struct Pair<'a> {
    /// The experiment of the base.
    pub(super) experiment: String,
    /// The axes that tell it from the other points of its experiment, in print.
    pub(super) point: String,
    /// The first point of the base that was measured.
    pub(super) first: &'a Point,
    /// The number of values that are expected of each side: one for each repetition, and one for
    /// each run that has the experiment without the point.
    pub(super) wanted: [usize; 2],
    /// The runs of the base that have the point, whether it was measured or not.
    pub(super) tried: BTreeSet<usize>,
    /// Why the new side counts as failed: it fails more often than the base.
    pub(super) failure: Option<String>,
}

impl Pair<'_> {
    /// The experiment and the axes in print.
    pub(super) fn name(&self) -> String {
        format!("{} {}", plain(&self.experiment), self.point).trim_end().to_owned()
    }
}

/// The points of both sides that belong together.
pub(super) struct Matched<'a> {
    /// The combinations that both sides measured, in the order of the base's points.
    pub(super) pairs: Vec<Pair<'a>>,
    /// The combinations that the base alone measured.
    pub(super) absent: Vec<Absent<'a>>,
    /// What is not compared, in words.
    pub(super) unmatched: Vec<String>,
    /// The axes, and the experiment's name, in which all points of the sides differ.
    pub(super) contrasts: Vec<Difference>,
    ignored: Ignored,
    /// The index of each pair.
    places: HashMap<Key, usize>,
}

/// A combination that the base alone measured.
pub(super) struct Absent<'a> {
    pub(super) pair: Pair<'a>,
    /// Why the new side has no value.
    pub(super) why: String,
    /// Whether the new side failed, and not only lacks the point.
    has_failed: bool,
}

/// A point, and the index of the run that has it.
#[derive(Clone, Copy)]
struct Of<'a> {
    run: usize,
    point: &'a Point,
}

/// Matches the points of the sides by their experiment and all axes, except axes in which the sides
/// differ altogether: these are what is compared.
pub(super) fn match_points<'a>(asked: &Asked<'a>) -> Result<Matched<'a>, Error> {
    let sides = asked.sides.map(|side| {
        let of_run =
            |(run, session): (usize, &Session<'a>)| session.points.iter().map(move |point| Of { run, point });
        side.iter().enumerate().flat_map(of_run).collect::<Vec<_>>()
    });
    let (ignored, contrasts) = contrasts(&sides);
    let mut matched = Matched {
        pairs: Vec::new(),
        absent: Vec::new(),
        unmatched: Vec::new(),
        contrasts,
        ignored,
        places: HashMap::new(),
    };
    let mut varying = Varying::default();
    sides.iter().flatten().for_each(|of| varying.see(of.point));
    let runs = sides.each_ref().map(|side| {
        let mut runs: HashMap<String, BTreeSet<usize>> = HashMap::new();
        for of in side {
            runs.entry(matched.ignored.key(of.point).0).or_default().insert(of.run);
        }
        runs
    });
    let [base, new] = sides;
    let points = base.into_iter().map(|of| (0, of)).chain(new.into_iter().map(|of| (1, of)));
    let keyed = points.map(|(side, of)| (matched.ignored.key(of.point), (side, of)));
    for (key, points) in grouped::<Key, (usize, Of<'_>)>(keyed) {
        let of = |side: usize| points.iter().filter(|(of, _)| *of == side).map(|(_, of)| *of).collect();
        let name = |axis: &str| axis == "size_bytes" || varying.has(&points[0].1.point.experiment, axis);
        let label = axes_text(&key.1, name);
        let runs = runs.each_ref().map(|runs| runs.get(&key.0).map_or(0, BTreeSet::len));
        matched.see(key, &label, [of(0), of(1)], runs, asked);
    }
    if matched.pairs.is_empty() && !matched.has_failures() {
        return Err(Error::NothingToCompare { names: asked.names.map(str::to_owned) });
    }
    Ok(matched)
}

impl<'a> Matched<'a> {
    /// Whether the new side failed in all of its repetitions of a combination.
    pub(super) fn has_failures(&self) -> bool {
        self.absent.iter().any(|absent| absent.has_failed)
    }

    /// The measured points of a session that belong to each pair, in the order in which they were
    /// measured.
    pub(super) fn points(&self, session: &Session<'a>) -> Vec<Vec<&'a Point>> {
        let mut all = vec![Vec::new(); self.pairs.len()];
        for point in session.points.iter().filter(|point| point.status == Status::Measured) {
            if let Some(at) = self.places.get(&self.ignored.key(point)) {
                all[*at].push(point);
            }
        }
        all
    }

    /// Adds a combination with its points on each side. `runs` are the numbers of runs that have
    /// its experiment.
    fn see(&mut self, key: Key, label: &str, sides: [Vec<Of<'a>>; 2], runs: [usize; 2], asked: &Asked<'_>) {
        let Some(any) = sides.iter().flatten().next() else { return };
        let measured = sides.each_ref().map(|side| {
            let mut measured = side.iter().filter(|of| of.point.status == Status::Measured);
            measured.next().map(|of| of.point)
        });
        let first = measured[0].unwrap_or(any.point);
        let troubles = sides.each_ref().map(|side| Trouble::of(side));
        let tried = sides.each_ref().map(|side| side.iter().map(|of| of.run).collect::<BTreeSet<usize>>());
        let wanted = [0, 1].map(|side| sides[side].len() + runs[side].saturating_sub(tried[side].len()));
        let failure = fails_more(&troubles, wanted);
        let [tried, _] = tried;
        let experiment = first.experiment.clone();
        let pair = Pair { experiment, point: label.to_owned(), first, wanted, tried, failure };
        if measured[0].is_some() && measured[1].is_none() {
            let why = match (&pair.failure, &troubles[1]) {
                (Some(failure), _) => failure.clone(),
                (None, Some(Trouble { what, reason, .. })) => {
                    plain(&format!("{what} in {}: {reason}", asked.names[1]))
                }
                (None, None) => plain(&format!("only in {}", asked.names[0])),
            };
            let has_failed = troubles[1].as_ref().is_some_and(|trouble| trouble.failures > 0);
            self.absent.push(Absent { pair, why, has_failed });
            return;
        }
        for side in [0, 1].into_iter().filter(|side| measured[1 - side].is_some()) {
            let name = pair.name();
            self.unmatched.extend(match &troubles[side] {
                Some(Trouble { what, reason, .. }) => {
                    Some(format!("{what} in {}: {name}: {reason}", asked.names[side]))
                }
                None if sides[side].is_empty() => Some(format!("only in {}: {name}", asked.names[1 - side])),
                None => None,
            });
        }
        if measured.iter().all(Option::is_some) {
            self.places.insert(key, self.pairs.len());
            self.pairs.push(pair);
        }
    }
}

/// Counts of failures that are less probable than this differ, if both sides have failures.
const ALPHA: f64 = 0.05;

/// Returns a sentence if the new side fails more often than the base. `wanted` are the numbers of
/// values that are expected of each side. If the base never fails, one failure is enough.
fn fails_more(troubles: &[Option<Trouble>; 2], wanted: [usize; 2]) -> Option<String> {
    let failures = troubles.each_ref().map(|trouble| trouble.as_ref().map_or(0, |trouble| trouble.failures));
    let new = troubles[1].as_ref().filter(|trouble| trouble.failures > 0)?;
    let counts =
        [0, 1].map(|side| [failures[side], wanted[side].saturating_sub(failures[side])].map(|n| n as u64));
    let is_larger = failures[1] * wanted[0] > failures[0] * wanted[1];
    let fails_more = failures[0] == 0 || (is_larger && fisher(counts) < ALPHA);
    let of_base = match failures[0] {
        0 => String::new(),
        failures => format!(" (base: {failures} of {})", wanted[0]),
    };
    let reason = &new.reason;
    fails_more.then(|| match new.is_of_some || !of_base.is_empty() {
        true => format!("{} of {} repetitions failed{of_base}: {reason}", failures[1], wanted[1]),
        false => reason.clone(),
    })
}

/// Why points of a side have no numbers.
struct Trouble {
    /// What became of them, in words.
    what: String,
    /// Why.
    reason: String,
    /// The number of failed points.
    failures: usize,
    /// Whether other points of the side have numbers.
    is_of_some: bool,
}

impl Trouble {
    /// The trouble of a side's points of one combination: failures, or else what was not measured.
    fn of(points: &[Of<'_>]) -> Option<Self> {
        let failed = points.iter().filter_map(|of| match &of.point.status {
            Status::Failed { error } => Some(error),
            _ => None,
        });
        let absent = points.iter().filter_map(|of| match &of.point.status {
            Status::NotMeasured { reason } => Some(reason),
            _ => None,
        });
        let failures = failed.clone().count();
        let reasons: Vec<&String> = if failures > 0 { failed.collect() } else { absent.collect() };
        let what = if failures > 0 { "failed" } else { "not measured" };
        let is_of_some = reasons.len() < points.len();
        let what = match is_of_some {
            true => format!("{} of {} repetitions {what}", reasons.len(), points.len()),
            false => what.to_owned(),
        };
        reasons.first().map(|reason| Self { what, reason: plain(reason), failures, is_of_some })
    }
}

/// In what all points of the sides differ.
#[derive(Debug, Default)]
struct Ignored {
    axes: BTreeSet<String>,
    experiment: bool,
}

impl Ignored {
    fn key(&self, point: &Point) -> Key {
        let axes = point.axes.iter().filter(|(axis, _)| !self.axes.contains(*axis));
        let experiment = if self.experiment { String::new() } else { point.experiment.clone() };
        (experiment, axes.map(|(axis, value)| (axis.clone(), value.clone())).collect())
    }
}

/// Returns in what the sides differ altogether. Points without numbers decide it only where a side
/// has no others; but a value that any point of both sides has is no difference of the sides.
fn contrasts(sides: &[Vec<Of<'_>>; 2]) -> (Ignored, Vec<Difference>) {
    let all = sides.each_ref().map(|side| side.iter().map(|of| of.point).collect::<Vec<_>>());
    let measured = all.each_ref().map(|side| {
        let measured: Vec<&Point> =
            side.iter().copied().filter(|point| point.status == Status::Measured).collect();
        if measured.is_empty() { side.clone() } else { measured }
    });
    let mut found = Vec::new();
    let mut ignored = Ignored::default();
    let values = |of: &dyn Fn(&Point) -> String| {
        let of_side = |side: &Vec<&Point>| side.iter().map(|point| of(point)).collect::<BTreeSet<String>>();
        let [base, new] = all.each_ref().map(of_side);
        let single = measured.each_ref().map(of_side);
        (single.iter().all(|values| values.len() == 1) && base.is_disjoint(&new)).then_some(single)
    };
    let patterns =
        measured.each_ref().map(|side| side.iter().map(|point| &point.pattern).collect::<BTreeSet<_>>());
    if let Some(names) = values(&|point| point.experiment.clone()).filter(|_| patterns[0] == patterns[1]) {
        found.push(difference("experiment", names));
        ignored.experiment = true;
    }
    let axes = measured.iter().flatten().flat_map(|point| point.axes.keys());
    for axis in axes.collect::<BTreeSet<_>>() {
        let of = |point: &Point| point.axes.get(axis).map_or_else(|| "none".to_owned(), value);
        if let Some(values) = values(&of) {
            found.push(difference(axis, values));
            ignored.axes.insert(axis.clone());
        }
    }
    (ignored, found)
}

fn difference(what: &str, values: [BTreeSet<String>; 2]) -> Difference {
    let values = values.map(|values| plain(&values.into_iter().next().unwrap_or_default()));
    Difference { what: what.to_owned(), values, matters: true }
}
