//! Units of print. Records hold nanoseconds, bytes and rates per second; a printed number names the
//! base of its unit.

use measure::figure::Unit;
use measure::presentation::Patterns;
use measure::units::Dimension;

use crate::error::Error;
pub(crate) use measure::text::{digits, grouped, size, time};

/// The conversion of a raw number of a record to a printed one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// The unit as it is printed, e.g. `us`; empty for a plain number.
    pub(crate) label: &'static str,
    /// Raw size of one unit: ns, B/s or messages/s.
    pub(crate) one: f64,
}

impl Scale {
    /// The scale of plain numbers.
    pub(crate) const PLAIN: Self = Self { label: "", one: 1.0 };

    /// The scale for the number at `path` of a point, in `unit` or otherwise in the base of
    /// records.
    pub(crate) fn of(unit: Option<Unit>, path: &str, patterns: Patterns) -> Result<Self, Error> {
        let dimension = patterns.find(path).map_or(Dimension::Number, |found| found.unit());
        match unit {
            None => Ok(base_of(dimension)),
            Some(unit) if unit.dimension() == dimension => Ok(of_unit(unit)),
            Some(unit) => Err(Error::UnitMismatch {
                path: path.to_owned(),
                unit,
                quantity: dimension.name(),
                hint: dimension.hint(),
            }),
        }
    }

    /// The scale of a published column: the stated unit, or otherwise the suffix of the column's
    /// name.
    pub(crate) fn of_column(unit: Option<Unit>, column: &str) -> Option<Self> {
        let suffix = column.rsplit('_').next().unwrap_or_default();
        unit.map(of_unit).or(match suffix {
            "ns" => Some(of_unit(Unit::Ns)),
            "us" => Some(of_unit(Unit::Us)),
            "gbps" => Some(of_unit(Unit::GbPerS)),
            "mbps" => Some(of_unit(Unit::MbPerS)),
            "percent" => Some(base_of(Dimension::Share)),
            _ => None,
        })
    }

    /// Converts a raw number to this unit.
    pub(crate) fn apply(self, raw: f64) -> f64 {
        raw / self.one
    }
}

/// The meaning of a unit with its base, for a glossary or a header.
pub(crate) fn base(label: &str) -> &'static str {
    match label {
        "Gb/s" => "1 Gb/s = 10^9 bit/s",
        "Mb/s" => "1 Mb/s = 10^6 bit/s",
        "MB/s" => "1 MB/s = 10^6 B/s",
        "MiB/s" => "1 MiB/s = 2^20 B/s",
        "Mmsg/s" => "1 Mmsg/s = 10^6 messages/s",
        _ => "",
    }
}

/// A round step of a scale that is not below a number: 1, 2 or 5 times a power of ten.
pub(crate) fn step(least: f64) -> f64 {
    if least <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let part = [1.0, 2.0, 5.0].into_iter().find(|part| part * power >= least);
    part.unwrap_or(10.0) * power
}

fn of_unit(unit: Unit) -> Scale {
    Scale { label: unit.symbol(), one: unit.one() }
}

/// The base of records, as it is printed.
fn base_of(dimension: Dimension) -> Scale {
    let (label, one) = match dimension {
        Dimension::Bandwidth => ("B/s", 1.0),
        Dimension::MessageRate => ("messages/s", 1.0),
        Dimension::Number => ("", 1.0),
        Dimension::Share => ("%", 0.01),
        Dimension::Time => ("ns", 1.0),
    };
    Scale { label, one }
}

#[cfg(test)]
mod tests {
    use bench::PATTERNS;

    use super::*;

    #[test]
    fn every_unit_has_its_base() {
        let gb = Scale::of(Some(Unit::GbPerS), "throughput.bytes_per_s", PATTERNS).unwrap();
        assert_eq!(gb.apply(6_272_500_000.0), 50.18);
        let mb = Scale::of(Some(Unit::MBPerS), "throughput.bytes_per_s", PATTERNS).unwrap();
        assert_eq!(mb.apply(1_048_576.0), 1.048_576);
        let mib = Scale::of(Some(Unit::MiBPerS), "throughput.bytes_per_s", PATTERNS).unwrap();
        assert_eq!(mib.apply(1_048_576.0), 1.0);
        for path in ["latency.p50_ns", "cost.ns"] {
            assert_eq!(Scale::of(None, path, PATTERNS).unwrap().label, "ns");
        }
    }

    #[test]
    fn a_unit_of_another_kind_is_refused_in_a_sentence() {
        let error = Scale::of(Some(Unit::GbPerS), "latency.p50_ns", PATTERNS).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot print latency.p50_ns in Gb/s: it is a time; use ns, us, ms or s"
        );
    }

    #[test]
    fn a_published_column_names_its_unit() {
        assert_eq!(Scale::of_column(None, "fdr_us").unwrap().label, "us");
        assert_eq!(Scale::of_column(None, "netperf_mbps").unwrap().apply(125_000.0), 1.0);
        assert_eq!(Scale::of_column(None, "tsc_percent").unwrap().one, 0.01);
        assert_eq!(Scale::of_column(None, "lanes"), None);
    }
}
