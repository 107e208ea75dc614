//! The data for the page's script: charts, points, histograms.

use std::collections::BTreeMap;

use measure::record::Point;
use measure::table::words;
use serde::Serialize;

use super::chart::Chart;
use super::distributions::{distributions, source};
use super::points;
use crate::bins::{self, Bins};
use crate::link_limit::LinkLimit;
use crate::{Points, SampleSource};

/// Everything that the script needs, as one JSON value.
#[derive(Serialize)]
pub(super) struct Data {
    charts: Vec<Chart>,
    /// The points as recorded, without their histograms.
    points: Vec<Point>,
    /// The columns of the table of all points.
    columns: Vec<points::Column>,
    /// Histograms by the id of the point.
    histograms: BTreeMap<u64, Bins>,
    /// Further facts about one-way latencies, in sentences, by the id of the point.
    notes: BTreeMap<u64, Vec<String>>,
    /// Throughputs in percent of the link limit, by the id of the point, for points with a known
    /// link.
    of_link: BTreeMap<u64, f64>,
    /// Samples that could not be loaded, in words.
    #[serde(skip)]
    pub(super) unreadable: Option<String>,
}

/// Gathers the page's data, with the samples of one point in memory at a time.
pub(super) fn collect(run: Points<'_>, charts: Vec<Chart>, samples: &dyn SampleSource) -> Data {
    let points = run.points;
    let windows = windows(points.iter().map(|point| distributions(point).count()).sum());
    let mut unreadable = Vec::new();
    let mut histograms = BTreeMap::new();
    for point in points {
        let mut sources = Vec::new();
        for (name, _, stored) in distributions(point) {
            match source(&stored, samples, windows) {
                Ok(Some(source)) => sources.push((name, source)),
                Ok(None) => {}
                Err(why) => unreadable.push(why),
            }
        }
        if let Some(mut bins) = bins::bin(&sources) {
            take_exact_maxima(&mut bins, point);
            histograms.insert(point.id, bins);
        }
    }
    let unreadable = unreadable_text(&unreadable);
    let notes = points.iter().filter_map(|point| Some((point.id, notes(point)?))).collect();
    let share = |point: &Point| Some(100.0 * LinkLimit::of(point, run.devices, run.patterns)?.share(point)?);
    let of_link = points.iter().filter_map(|point| Some((point.id, share(point)?))).collect();
    let columns = points::columns(points, share);
    let points = points.iter().map(without_histograms).collect();
    Data { charts, points, columns, histograms, notes, of_link, unreadable }
}

/// The number of windows of each timeline on a page with so many distributions: fewer where there
/// are many, none where they would say little.
fn windows(distributions: usize) -> usize {
    let windows = (WINDOWS_MAX / distributions.max(1)).min(WINDOWS_EACH_MAX);
    if windows < WINDOWS_EACH_MIN { 0 } else { windows }
}

/// The most windows of a page, which bounds its size: each takes about 5 bytes.
const WINDOWS_MAX: usize = 24_000;
/// The most windows of one distribution, and the fewest that are worth drawing.
const WINDOWS_EACH_MAX: usize = 120;
const WINDOWS_EACH_MIN: usize = 8;

fn notes(point: &Point) -> Option<Vec<String>> {
    let known = point.one_way.as_ref()?;
    Some(words::notes(point).into_iter().chain(known.gaps.iter().map(words::gaps)).collect())
}

/// Replaces the maxima of buckets, which are only known by their upper edges, by the exact ones of
/// the statistics.
fn take_exact_maxima(bins: &mut Bins, point: &Point) {
    for binned in bins.ends.iter_mut().filter(|end| end.source == "histogram") {
        let known = distributions(point).find(|(name, ..)| *name == binned.name);
        if let Some((_, Some(latency), _)) = known {
            binned.max_ns = latency.max_ns;
        }
    }
}

/// One warning for all samples that could not be loaded.
fn unreadable_text(unreadable: &[String]) -> Option<String> {
    let first = unreadable.first()?;
    let ends = unreadable.len();
    Some(match ends {
        1 => format!("One file of samples cannot be read, so its histogram is missing: {first}"),
        _ => format!(
            "{ends} files of samples cannot be read, so their histograms are missing; the first is {first}"
        ),
    })
}

fn without_histograms(point: &Point) -> Point {
    let mut point = point.clone();
    point.ends.iter_mut().for_each(|end| end.histogram = None);
    point.kinds.iter_mut().for_each(|timed| timed.histogram = None);
    point
}
