//! The number of a point that is compared.

use measure::figure::Better;
use measure::presentation::Patterns;
use measure::record::Point;
use measure::stats::{MiddleMean, Share, quantile};
use measure::text::time;
use measure::units::Dimension;

use super::asked::Session;
use crate::Error;
use crate::repeated::path;
use crate::series_table::carriers;

/// The path of a median latency.
const MEDIAN: &str = "latency.p50_ns";
/// The start of the paths of numbers that [`middle_mean`] is of the same samples as.
const LATENCY: &str = "latency.";
/// Paths that an error lists.
const KNOWN_MAX: usize = 6;

/// A number by its path, with what is better.
pub(super) struct Number<'a> {
    pub(super) path: &'a str,
    pub(super) help: String,
    /// The sign of the logarithm that makes larger better: -1 of times.
    pub(super) sign: f64,
    pub(super) is_time: bool,
}

impl<'a> Number<'a> {
    /// Finds the number of a path. Of a number that a program reports, the points say which is
    /// better.
    ///
    /// # Errors
    ///
    /// If there is none, or neither larger nor smaller is better.
    pub(super) fn named<'p>(
        path: &'a str,
        points: impl Iterator<Item = &'p Point> + Clone,
        patterns: Patterns,
    ) -> Result<Self, Error> {
        let Some(found) = patterns.find(path) else {
            let known = patterns.examples(path).join(", ");
            return Err(Error::NoSuchQuantity { path: path.to_owned(), known });
        };
        let of_points = points.clone().find_map(|point| patterns.find_at(point, path)?.counted(point));
        let better = of_points.map(|counted| counted.better).or(found.unit().better());
        if better.is_none() && found.quantity.counted.is_none() {
            return Err(Error::NoBetter { path: path.to_owned(), quantity: found.unit().name() });
        }
        // Without any point that says what is better there is no number either.
        let sign = if better == Some(Better::Less) { -1.0 } else { 1.0 };
        let help = found.help().replace("{}", carriers(points));
        Ok(Self { path, help, sign, is_time: found.unit() == Dimension::Time })
    }

    /// The paths of some numbers of a point that can be compared.
    pub(super) fn known(point: &Point, patterns: Patterns) -> Vec<String> {
        let is_known = |path: &String| {
            let of = |number: Number<'_>| number.of(point, patterns).is_some();
            Number::named(path, std::iter::once(point), patterns).is_ok_and(of)
        };
        patterns.paths(point).into_iter().filter(is_known).take(KNOWN_MAX).collect()
    }

    /// The paths to compare of a point: those that were asked for, or its main number.
    pub(super) fn paths<'p>(asked: &'p [String], point: &Point) -> Vec<&'p str> {
        match asked {
            [] => vec![path(point)],
            asked => asked.iter().map(String::as_str).collect(),
        }
    }

    /// The number of a point as the record has it; `None` where it has none above 0.
    pub(super) fn of(&self, point: &Point, patterns: Patterns) -> Option<f64> {
        let found = patterns.find_at(point, self.path)?;
        found.number(point).filter(|number| number.is_finite() && *number > 0.0)
    }

    /// Prints a number of this path.
    pub(super) fn printed(path: &str, number: f64, patterns: Patterns) -> String {
        match patterns.find(path).map(|found| found.unit()) {
            Some(Dimension::Time) => time(number),
            Some(Dimension::Bandwidth) => format!("{:.3} Gb/s", number * 8.0 / 1e9),
            Some(Dimension::MessageRate) => format!("{:.3} M/s", number / 1e6),
            _ => format!("{number:.4}"),
        }
    }

    /// Whether it is the median that [`middle_mean`] takes the place of.
    pub(super) fn is_median(&self) -> bool {
        self.path == MEDIAN
    }

    /// Whether it is a number of the samples that [`middle_mean`] is of.
    pub(super) fn is_of_latency(&self) -> bool {
        self.path.starts_with(LATENCY)
    }
}

/// The mean of the middle half of the samples that a point's median is of; `None` where the record
/// does not have their distribution.
pub(super) fn middle_mean(session: &Session<'_>, point: &Point) -> Option<MiddleMean> {
    let latency = point.latency.as_ref()?;
    let is_it = |median: u64, count: u64| median == latency.p50_ns && count == latency.count;
    let of_ranks = point
        .ends
        .iter()
        .filter(|end| end.latency.as_ref().is_some_and(|latency| is_it(latency.p50_ns, latency.count)));
    let ranks = of_ranks.map(|end| (end.samples.as_deref(), end.histogram.as_ref()));
    let kinds = point.kinds.iter().filter(|timed| is_it(timed.latency.p50_ns, timed.latency.count));
    let kinds = kinds.map(|timed| (timed.samples.as_deref(), timed.histogram.as_ref()));
    ranks.chain(kinds).find_map(|(samples, histogram)| match (samples, histogram) {
        (Some(file), _) => {
            let mut samples = session.samples.load(file).ok()?;
            samples.sort_unstable();
            // A file of other samples would give another number under the same name.
            (quantile(&samples, Share::P50)? == latency.p50_ns).then(|| MiddleMean::of(&samples))?
        }
        (None, Some(histogram)) => MiddleMean::of_histogram(histogram),
        (None, None) => None,
    })
}
