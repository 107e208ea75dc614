//! Which points of the two sides belong together.

use std::collections::{BTreeMap, BTreeSet};

use measure::record::{Axes, Point, Status};
use measure::text::{axes_text, plain, value};

use super::asked::{Asked, Session};
use super::differences::Difference;
use crate::Error;
use crate::repeated::varies;

/// What a point has in common with its partners: its experiment and its axes.
type Key = (String, Axes);

/// A combination of axes that both sides have.
pub(super) struct Pair {
    /// The experiment of the base.
    pub(super) experiment: String,
    /// The axes that tell it from the other points of its experiment, in print.
    pub(super) point: String,
    /// Its key in [`Matched::key`].
    key: Key,
}

/// The points of both sides that belong together.
pub(super) struct Matched {
    /// The combinations, in the order of the base's points.
    pub(super) pairs: Vec<Pair>,
    /// Combinations without a partner, in words.
    pub(super) unmatched: Vec<String>,
    /// The axes, and the experiment's name, in which all points of the sides differ.
    pub(super) contrasts: Vec<Difference>,
    /// The names of the axes of `contrasts`.
    ignored: BTreeSet<String>,
    /// Whether the experiments' names are ignored.
    ignores_experiment: bool,
}

/// Matches the points of the sides by their experiment and all axes, except axes in which the sides
/// differ altogether: these are what is compared.
pub(super) fn match_points(asked: &Asked<'_>) -> Result<Matched, Error> {
    let [base, new] = asked.sides.map(|side| measured(side));
    let mut contrasts = Vec::new();
    let names = [&base, &new].map(|side| values(side, |point| Some(point.experiment.clone())));
    let patterns = [&base, &new].map(|side| values(side, |point| Some(point.pattern.clone())));
    let is_single = names.iter().all(|names| names.len() == 1) && names[0] != names[1];
    let ignores_experiment = is_single && patterns[0] == patterns[1];
    if ignores_experiment {
        contrasts.push(difference("experiment", names));
    }
    let axes = base.iter().chain(&new).flat_map(|point| point.axes.keys());
    let mut ignored = BTreeSet::new();
    for axis in axes.collect::<BTreeSet<_>>() {
        let found = [&base, &new].map(|side| {
            let none = || Some("none".to_owned());
            values(side, |point| point.axes.get(axis).map(value).or_else(none))
        });
        if found.iter().all(|values| values.len() == 1) && found[0] != found[1] {
            contrasts.push(difference(axis, found));
            ignored.insert(axis.clone());
        }
    }
    let mut matched =
        Matched { pairs: Vec::new(), unmatched: Vec::new(), contrasts, ignored, ignores_experiment };
    matched.pair(&base, &new, asked.names);
    if matched.pairs.is_empty() {
        return Err(Error::NothingToCompare { names: asked.names.map(str::to_owned) });
    }
    Ok(matched)
}

impl Matched {
    /// The points of a session that belong to a combination, in the order in which they were
    /// measured.
    pub(super) fn points<'a>(&self, session: &Session<'a>, pair: &Pair) -> Vec<&'a Point> {
        let is_it = |point: &&Point| point.status == Status::Measured && self.key(point) == pair.key;
        session.points.iter().filter(is_it).collect()
    }

    fn key(&self, point: &Point) -> Key {
        let axes = point.axes.iter().filter(|(axis, _)| !self.ignored.contains(*axis));
        let experiment = if self.ignores_experiment { String::new() } else { point.experiment.clone() };
        (experiment, axes.map(|(axis, value)| (axis.clone(), value.clone())).collect())
    }

    fn pair(&mut self, base: &[&Point], new: &[&Point], names: [&str; 2]) {
        let keys = |points: &[&Point]| {
            let mut known = Vec::new();
            for point in points {
                let key = self.key(point);
                if !known.iter().any(|(other, _)| *other == key) {
                    known.push((key, point.experiment.clone()));
                }
            }
            known
        };
        let sides = [keys(base), keys(new)];
        let has = |side: &[(Key, String)], key: &Key| side.iter().any(|(other, _)| other == key);
        let mut by_experiment: BTreeMap<&str, Vec<&Axes>> = BTreeMap::new();
        for ((_, axes), experiment) in sides.iter().flatten() {
            by_experiment.entry(experiment).or_default().push(axes);
        }
        let label = |(_, axes): &Key, experiment: &str| {
            let all = &by_experiment[experiment];
            axes_text(axes, |axis| varies(all, axis))
        };
        let lone = |side: usize| -> Vec<String> {
            let without = sides[side].iter().filter(|(key, _)| !has(&sides[1 - side], key));
            let line = |(key, experiment): &(Key, String)| {
                let point = label(key, experiment);
                format!("only in {}: {} {point}", names[side], plain(experiment)).trim_end().to_owned()
            };
            without.map(line).collect()
        };
        self.unmatched = [lone(0), lone(1)].concat();
        let both = sides[0].iter().filter(|(key, _)| has(&sides[1], key));
        self.pairs = both
            .map(|(key, experiment)| Pair {
                experiment: experiment.clone(),
                point: label(key, experiment),
                key: key.clone(),
            })
            .collect();
    }
}

/// The points of a side that have numbers.
fn measured<'a>(side: &[Session<'a>]) -> Vec<&'a Point> {
    let points = side.iter().flat_map(|session| session.points);
    points.filter(|point| point.status == Status::Measured).collect()
}

fn values(side: &[&Point], of: impl Fn(&Point) -> Option<String>) -> BTreeSet<String> {
    side.iter().filter_map(|point| of(point)).collect()
}

fn difference(what: &str, values: [BTreeSet<String>; 2]) -> Difference {
    let values = values.map(|values| plain(&values.into_iter().next().unwrap_or_default()));
    Difference { what: what.to_owned(), values, matters: true }
}
