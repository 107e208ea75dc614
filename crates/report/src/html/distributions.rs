//! The distributions of a point, and where their samples are.

use measure::record::{End, Histogram, Latency, Point, Timed};

use crate::SampleSource;
use crate::bins::Source;

/// What a record keeps of a distribution.
pub(super) struct Stored<'a> {
    /// Path of the raw samples.
    pub(super) samples: Option<&'a String>,
    pub(super) histogram: Option<&'a Histogram>,
}

impl<'a> From<&'a Timed> for Stored<'a> {
    fn from(timed: &'a Timed) -> Self {
        Self { samples: timed.samples.as_ref(), histogram: timed.histogram.as_ref() }
    }
}

impl<'a> From<&'a End> for Stored<'a> {
    fn from(end: &'a End) -> Self {
        Self { samples: end.samples.as_ref(), histogram: end.histogram.as_ref() }
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
    match samples.load(path) {
        Ok(samples) => Ok(Some(Source::Samples(samples))),
        Err(_) if buckets.is_some() => Ok(buckets),
        Err(why) => Err(format!("{path}: {why}")),
    }
}
