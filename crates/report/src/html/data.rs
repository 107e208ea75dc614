//! The data that the page's script draws from: charts, points, histograms.

use std::collections::BTreeMap;

use measure::record::{Device, End, Histogram, Latency, Point, Timed};
use serde::Serialize;

use super::chart::Chart;
use super::histogram::Panel;
use crate::SampleSource;
use crate::best::Best;
use crate::bins::{self, Bins, Source};
use crate::one_way;

/// What the script draws.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Drawing {
    /// Lines or bars.
    Chart(Chart),
    /// A panel of a figure of distributions.
    Panel(Panel),
}

/// Everything that the script needs, as one JSON value.
#[derive(Serialize)]
pub(super) struct Data {
    charts: Vec<Drawing>,
    /// The points as recorded, but for their histograms.
    points: Vec<Point>,
    /// Histograms by the id of the point.
    histograms: BTreeMap<u64, Bins>,
    /// What else is known of points that were timed one way, in sentences, by their id.
    notes: BTreeMap<u64, Vec<String>>,
    /// Throughputs in percent of what their link carries at best, by the id of the point; of those whose link is known.
    of_link: BTreeMap<u64, f64>,
    /// Samples that could not be loaded, in words.
    #[serde(skip)]
    pub(super) unreadable: Option<String>,
}

/// Gathers the page's data. Samples of one point are held in memory at a time.
pub(super) fn collect(
    points: &[Point],
    devices: &[Device],
    charts: Vec<Drawing>,
    samples: &dyn SampleSource,
) -> Data {
    let mut unreadable = Vec::new();
    let mut histograms = BTreeMap::new();
    for point in points {
        let mut sources = Vec::new();
        for (name, _, stored) in distributions(point) {
            match source(&stored, samples) {
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
    let share = |point: &Point| Some((point.id, 100.0 * Best::of(point, devices)?.share(point)?));
    let of_link = points.iter().filter_map(share).collect();
    let points = points.iter().map(without_histograms).collect();
    Data { charts, points, histograms, notes, of_link, unreadable }
}

fn notes(point: &Point) -> Option<Vec<String>> {
    let known = point.one_way.as_ref()?;
    Some(one_way::notes(point).into_iter().chain(known.gaps.iter().map(one_way::gaps)).collect())
}

/// A bucket knows its largest sample only by its upper edge; the statistics beside it know it exactly.
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

/// What a record keeps of a distribution.
pub(super) struct Stored<'a> {
    /// Path of the raw samples.
    pub(super) samples: Option<&'a String>,
    pub(super) histogram: Option<&'a Histogram>,
    /// What the record says of it.
    latency: Option<&'a Latency>,
}

impl<'a> From<&'a Timed> for Stored<'a> {
    fn from(timed: &'a Timed) -> Self {
        Self {
            samples: timed.samples.as_ref(),
            histogram: timed.histogram.as_ref(),
            latency: Some(&timed.latency),
        }
    }
}

impl<'a> From<&'a End> for Stored<'a> {
    fn from(end: &'a End) -> Self {
        Self {
            samples: end.samples.as_ref(),
            histogram: end.histogram.as_ref(),
            latency: end.latency.as_ref(),
        }
    }
}

/// The distributions of a point: of its kinds of latency, or of what each end timed; with their names and statistics.
pub(super) fn distributions(point: &Point) -> impl Iterator<Item = (String, Option<&Latency>, Stored<'_>)> {
    let kinds = point
        .kinds
        .iter()
        .map(|timed| (timed.latency.kind.name().to_owned(), Some(&timed.latency), Stored::from(timed)));
    let ends =
        point.ends.iter().map(|end| (format!("rank {}", end.rank), end.latency.as_ref(), Stored::from(end)));
    kinds.chain(ends)
}

/// The samples, or else the buckets; none where neither was kept.
pub(super) fn source<'a>(
    stored: &Stored<'a>,
    samples: &dyn SampleSource,
) -> Result<Option<Source<'a>>, String> {
    let buckets = stored.histogram.map(|histogram| Source::Buckets(&histogram.buckets));
    let Some(path) = stored.samples else { return Ok(buckets) };
    let loaded = samples.load(path).and_then(|samples| {
        let contradiction = stored.latency.and_then(|latency| contradiction(&samples, latency));
        contradiction.map_or(Ok(samples), Err)
    });
    match loaded {
        Ok(samples) => Ok(Some(Source::Samples(samples))),
        Err(_) if buckets.is_some() => Ok(buckets),
        Err(why) => Err(format!("{path}: {why}")),
    }
}

/// How samples contradict the statistics that were made of them, if so: the file is then another point's, or was cut.
fn contradiction(samples: &[u64], latency: &Latency) -> Option<String> {
    let extreme = |found: Option<&u64>| found.copied().unwrap_or_default();
    let found = [
        ("samples", samples.len() as u64, latency.count),
        ("as the smallest in ns", extreme(samples.iter().min()), latency.min_ns),
        ("as the largest in ns", extreme(samples.iter().max()), latency.max_ns),
    ];
    let (what, found, recorded) = found.into_iter().find(|(_, found, recorded)| found != recorded)?;
    Some(format!(
        "the file has {found} {what} and the record says {recorded}, so it is not what was measured; \
         restore it from a copy"
    ))
}

fn without_histograms(point: &Point) -> Point {
    let mut point = point.clone();
    point.ends.iter_mut().for_each(|end| end.histogram = None);
    point.kinds.iter_mut().for_each(|timed| timed.histogram = None);
    point
}
