//! The distributions of a point, and the places of their samples.

use measure::record::{End, Histogram, Latency, Point, Timed};
use measure::samples::Counted;

use crate::SampleSource;
use crate::bins::Source;
use crate::timeline::Timeline;

/// A distribution in a record.
pub(super) struct Stored<'a> {
    /// Path of the raw samples.
    pub(super) samples: Option<&'a String>,
    pub(super) histogram: Option<&'a Histogram>,
    /// Its statistics.
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

/// The distributions of a point, of its kinds of latency or of its ranks, with their names and
/// statistics.
pub(super) fn distributions(point: &Point) -> impl Iterator<Item = (String, Option<&Latency>, Stored<'_>)> {
    let kinds = point
        .kinds
        .iter()
        .map(|timed| (timed.latency.kind.name().to_owned(), Some(&timed.latency), Stored::from(timed)));
    let ends =
        point.ends.iter().map(|end| (format!("rank {}", end.rank), end.latency.as_ref(), Stored::from(end)));
    kinds.chain(ends)
}

/// The samples, with their timeline of at most `windows` windows, or otherwise the buckets; `None`
/// where neither was kept.
pub(super) fn source(
    stored: &Stored<'_>,
    samples: &dyn SampleSource,
    windows: usize,
) -> Result<Option<Source>, String> {
    let buckets = || stored.histogram.map(|histogram| Source::of_buckets(&histogram.buckets));
    let Some(path) = stored.samples else { return Ok(buckets()) };
    let loaded = samples.load(path).and_then(|samples| {
        let counted = Counted::new(&samples);
        let contradiction = stored.latency.and_then(|latency| contradiction(&counted, latency));
        let timeline = Timeline::of(&samples, windows);
        contradiction.map_or_else(|| Ok(Source::of_samples(counted).following(timeline)), Err)
    });
    loaded.map(Some).or_else(|why| buckets().map(Some).ok_or_else(|| format!("{path}: {why}")))
}

/// How samples contradict their recorded statistics, if they do: the file then belongs to another
/// point, or was cut.
fn contradiction(samples: &Counted, latency: &Latency) -> Option<String> {
    let found = [
        ("samples", samples.total(), latency.count),
        ("as the smallest in ns", samples.min().unwrap_or_default(), latency.min_ns),
        ("as the largest in ns", samples.max().unwrap_or_default(), latency.max_ns),
    ];
    let (what, found, recorded) = found.into_iter().find(|(_, found, recorded)| found != recorded)?;
    Some(format!(
        "the file has {found} {what} and the record says {recorded}, so it is not the file of this point; \
         restore it from a copy"
    ))
}
