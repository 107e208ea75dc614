//! The data that the page's script draws from: charts, points, histograms.

use std::collections::BTreeMap;

use measure::record::{End, Point};
use serde::Serialize;

use super::chart::Chart;
use crate::SampleSource;
use crate::bins::{self, Bins, Source};

/// Everything that the script needs, as one JSON value.
#[derive(Serialize)]
pub(super) struct Data {
    charts: Vec<Chart>,
    /// The points as recorded, but for their histograms.
    points: Vec<Point>,
    /// Histograms by the id of the point.
    histograms: BTreeMap<u64, Bins>,
    /// Samples that could not be loaded, in words.
    #[serde(skip)]
    pub(super) unreadable: Option<String>,
}

/// Gathers the page's data. Samples of one point are held in memory at a time.
pub(super) fn collect(points: &[Point], charts: Vec<Chart>, samples: &dyn SampleSource) -> Data {
    let mut unreadable = Vec::new();
    let mut histograms = BTreeMap::new();
    for point in points {
        let mut sources = Vec::new();
        for end in &point.ends {
            match source(end, samples) {
                Ok(Some(source)) => sources.push((end.rank, source)),
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
    Data { charts, points: points.iter().map(without_histograms).collect(), histograms, unreadable }
}

/// A bucket knows its largest sample only by its upper edge; the statistics beside it know it exactly.
fn take_exact_maxima(bins: &mut Bins, point: &Point) {
    for binned in bins.ends.iter_mut().filter(|end| end.source == "histogram") {
        let end = point.ends.iter().find(|end| end.rank == binned.rank);
        if let Some(latency) = end.and_then(|end| end.latency.as_ref()) {
            binned.max_ns = latency.max_ns;
        }
    }
}

/// One warning for all samples that could not be loaded.
fn unreadable_text(unreadable: &[String]) -> Option<String> {
    let first = unreadable.first()?;
    let ends = unreadable.len();
    Some(match ends {
        1 => format!("The samples of one end cannot be read, so its histogram is missing: {first}"),
        _ => format!(
            "The samples of {ends} ends cannot be read, so their histograms are missing; the first is {first}"
        ),
    })
}

fn source<'a>(end: &'a End, samples: &dyn SampleSource) -> Result<Option<Source<'a>>, String> {
    let buckets = end.histogram.as_ref().map(|h| Source::Buckets(&h.buckets));
    let Some(path) = &end.samples else { return Ok(buckets) };
    match samples.load(path) {
        Ok(samples) => Ok(Some(Source::Samples(samples))),
        Err(_) if buckets.is_some() => Ok(buckets),
        Err(why) => Err(format!("{path}: {why}")),
    }
}

fn without_histograms(point: &Point) -> Point {
    let mut point = point.clone();
    for end in &mut point.ends {
        end.histogram = None;
    }
    point
}
