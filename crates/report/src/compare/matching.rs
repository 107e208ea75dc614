//! Which points of the two sides belong together.

use std::collections::{BTreeSet, HashMap};

use measure::record::{Axes, Point, Status};
use measure::text::{axes_text, plain, value};

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
    /// The combinations that the base measured and in which the new side failed, with its error.
    pub(super) failed: Vec<(Pair<'a>, String)>,
    /// What is not compared, in words.
    pub(super) unmatched: Vec<String>,
    /// The axes, and the experiment's name, in which all points of the sides differ.
    pub(super) contrasts: Vec<Difference>,
    ignored: Ignored,
    /// The index of each pair.
    places: HashMap<Key, usize>,
}

/// Matches the points of the sides by their experiment and all axes, except axes in which the sides
/// differ altogether: these are what is compared.
pub(super) fn match_points<'a>(asked: &Asked<'a>) -> Result<Matched<'a>, Error> {
    let sides = asked.sides.map(|side| side.iter().flat_map(|session| session.points).collect::<Vec<_>>());
    let (ignored, contrasts) = contrasts(&sides);
    let mut matched = Matched {
        pairs: Vec::new(),
        failed: Vec::new(),
        unmatched: Vec::new(),
        contrasts,
        ignored,
        places: HashMap::new(),
    };
    let mut varying = Varying::default();
    sides.iter().flatten().for_each(|point| varying.see(point));
    let [base, new] = sides;
    let points = base.into_iter().map(|point| (0, point)).chain(new.into_iter().map(|point| (1, point)));
    let keyed = points.map(|(side, point)| (matched.ignored.key(point), (side, point)));
    for (key, points) in grouped::<Key, (usize, &Point)>(keyed) {
        let of = |side: usize| points.iter().filter(|(of, _)| *of == side).map(|(_, point)| *point).collect();
        let name = |axis: &str| axis == "size_bytes" || varying.has(&points[0].1.experiment, axis);
        let label = axes_text(&key.1, name);
        matched.see(key, &label, [of(0), of(1)], asked.names);
    }
    if matched.pairs.is_empty() && matched.failed.is_empty() {
        return Err(Error::NothingToCompare { names: asked.names.map(str::to_owned) });
    }
    Ok(matched)
}

impl<'a> Matched<'a> {
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

    /// Adds a combination with the points that each side has of it.
    fn see(&mut self, key: Key, label: &str, sides: [Vec<&'a Point>; 2], names: [&str; 2]) {
        let Some(any) = sides.iter().flatten().next() else { return };
        let measured = sides.each_ref().map(|side| {
            let mut measured = side.iter().filter(|point| point.status == Status::Measured);
            measured.next().copied()
        });
        let first = measured[0].unwrap_or(any);
        let pair = Pair { experiment: first.experiment.clone(), point: label.to_owned(), first };
        let troubles = sides.each_ref().map(|side| Trouble::of(side));
        if let ([Some(_), None], [_, Some(trouble)]) = (measured, &troubles)
            && trouble.is_failure
        {
            self.failed.push((pair, trouble.reason.clone()));
            return;
        }
        for side in [0, 1].into_iter().filter(|side| measured[1 - side].is_some()) {
            let name = pair.name();
            self.unmatched.extend(match &troubles[side] {
                Some(Trouble { what, reason, .. }) => {
                    Some(format!("{what} in {}: {name}: {reason}", names[side]))
                }
                None if sides[side].is_empty() => Some(format!("only in {}: {name}", names[1 - side])),
                None => None,
            });
        }
        if measured.iter().all(Option::is_some) {
            self.places.insert(key, self.pairs.len());
            self.pairs.push(pair);
        }
    }
}

/// Why points of a side have no numbers.
struct Trouble {
    /// What became of them, in words.
    what: String,
    /// Why.
    reason: String,
    is_failure: bool,
}

impl Trouble {
    /// The trouble of a side's points of one combination: failures, or else what was not measured.
    fn of(points: &[&Point]) -> Option<Self> {
        let failed = points.iter().filter_map(|point| match &point.status {
            Status::Failed { error } => Some(error),
            _ => None,
        });
        let absent = points.iter().filter_map(|point| match &point.status {
            Status::NotMeasured { reason } => Some(reason),
            _ => None,
        });
        let is_failure = failed.clone().next().is_some();
        let reasons: Vec<&String> = if is_failure { failed.collect() } else { absent.collect() };
        let what = if is_failure { "failed" } else { "not measured" };
        let what = match (reasons.len(), points.len()) {
            (some, all) if some < all => format!("{some} of {all} repetitions {what}"),
            _ => what.to_owned(),
        };
        reasons.first().map(|reason| Self { what, reason: plain(reason), is_failure })
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
/// has no others.
fn contrasts(sides: &[Vec<&Point>; 2]) -> (Ignored, Vec<Difference>) {
    let sides = sides.each_ref().map(|side| {
        let measured: Vec<&Point> =
            side.iter().copied().filter(|point| point.status == Status::Measured).collect();
        if measured.is_empty() { side.clone() } else { measured }
    });
    let mut all = Vec::new();
    let mut ignored = Ignored::default();
    let names = sides.each_ref().map(|side| values(side, |point| Some(point.experiment.clone())));
    let patterns = sides.each_ref().map(|side| values(side, |point| Some(point.pattern.clone())));
    let is_single = names.iter().all(|names| names.len() == 1) && names[0] != names[1];
    if is_single && patterns[0] == patterns[1] {
        all.push(difference("experiment", names));
        ignored.experiment = true;
    }
    let axes = sides.iter().flatten().flat_map(|point| point.axes.keys());
    for axis in axes.collect::<BTreeSet<_>>() {
        let found = sides.each_ref().map(|side| {
            let none = || Some("none".to_owned());
            values(side, |point| point.axes.get(axis).map(value).or_else(none))
        });
        if found.iter().all(|values| values.len() == 1) && found[0] != found[1] {
            all.push(difference(axis, found));
            ignored.axes.insert(axis.clone());
        }
    }
    (ignored, all)
}

fn values(side: &[&Point], of: impl Fn(&Point) -> Option<String>) -> BTreeSet<String> {
    side.iter().filter_map(|point| of(point)).collect()
}

fn difference(what: &str, values: [BTreeSet<String>; 2]) -> Difference {
    let values = values.map(|values| plain(&values.into_iter().next().unwrap_or_default()));
    Difference { what: what.to_owned(), values, matters: true }
}
