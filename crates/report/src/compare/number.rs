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

/// The path of a median latency.
const MEDIAN: &str = "latency.p50_ns";

/// A number by its path, with what is better.
pub(super) struct Number<'a> {
    pub(super) path: &'a str,
    pub(super) help: String,
    /// The sign of the logarithm that makes larger better: -1 of times.
    pub(super) sign: f64,
}

impl<'a> Number<'a> {
    /// Finds the number of a path.
    ///
    /// # Errors
    ///
    /// If there is none, or neither larger nor smaller is better.
    pub(super) fn named(path: &'a str, patterns: Patterns) -> Result<Self, Error> {
        let Some(found) = patterns.find(path) else {
            let known = patterns.examples(path).join(", ");
            return Err(Error::NoSuchQuantity { path: path.to_owned(), known });
        };
        let sign = match found.unit().better() {
            Some(Better::More) => 1.0,
            Some(Better::Less) => -1.0,
            None => {
                return Err(Error::NoBetter { path: path.to_owned(), quantity: found.unit().name() });
            }
        };
        Ok(Self { path, help: found.help(), sign })
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

    /// Whether it is a median that can sit on a step of the clock.
    pub(super) fn is_median(&self) -> bool {
        self.path == MEDIAN
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
