//! The data of a table or a chart: series of cells, published columns, and link limits.

use measure::record::LatencyKind;
use serde_json::Value;

use crate::link_limit::LinkLimit;
use crate::unit::Scale;

/// The data of a table or a chart.
#[derive(Debug)]
pub(crate) struct SeriesTable {
    /// Name of the axis of the rows.
    pub(crate) x: String,
    /// Path of the measured number.
    pub(crate) y: String,
    /// Unit that numbers are printed in; numbers in cells are already in this unit.
    pub(crate) scale: Scale,
    /// Values of x, numbers in rising order.
    pub(crate) xs: Vec<Value>,
    /// Measured columns.
    pub(crate) series: Vec<Series>,
    /// Published columns.
    pub(crate) published: Vec<Published>,
    /// Kinds of the latencies that the cells hold.
    pub(crate) kinds: Vec<LatencyKind>,
    /// The description of the numbers.
    pub(crate) what: String,
}

/// One measured column or line.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The values that distinguish it, in print.
    pub(crate) label: String,
    /// The axes that distinguish it, with their values.
    pub(crate) key: Vec<(String, Value)>,
    /// The same, in lower case, to find the matching published column.
    pub(crate) words: Vec<String>,
    /// One cell for each x.
    pub(crate) cells: Vec<Cell>,
}

/// All repetitions of one combination of axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// The plan has no such point, or the run ended before it.
    Absent,
    /// Every repetition failed.
    Failed(String),
    /// It cannot be measured here.
    NotMeasured(String),
    /// It was measured.
    Value(Number),
}

/// A measured number, in the unit of the series table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    /// Median of the repetitions' numbers (of an even number, the mean of the middle two).
    pub(crate) median: f64,
    /// Smallest and largest of the repetitions' numbers: the run-to-run spread.
    pub(crate) runs: [f64; 2],
    /// The number of repetitions with a number, or of launches.
    pub(crate) repetitions: usize,
    /// Whether launches are counted.
    pub(crate) are_launches: bool,
    /// 10th and 90th percentile, each the median over the repetitions: the within-run spread.
    pub(crate) quantiles: Option<[f64; 2]>,
    /// The largest error of the number from comparing two clocks.
    pub(crate) bound: Option<f64>,
    /// Samples of all repetitions, for an extreme, which grows with their number.
    pub(crate) samples: Option<u64>,
    /// The point whose number is nearest to the median.
    pub(crate) id: u64,
    /// The link limit, for a throughput on a known link.
    pub(crate) at_limit: Option<Box<AtLimit>>,
    /// Why it is uncertain: unstable or failed repetitions.
    pub(crate) doubts: Vec<String>,
}

impl SeriesTable {
    /// Whether any cell holds a number.
    pub(crate) fn has_numbers(&self) -> bool {
        self.series.iter().any(Series::has_numbers)
    }

    /// All measured numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &Number> {
        self.series.iter().flat_map(|s| &s.cells).filter_map(Cell::number)
    }
}

impl Series {
    /// Whether any cell holds a number.
    pub(crate) fn has_numbers(&self) -> bool {
        self.cells.iter().any(|cell| cell.number().is_some())
    }

    /// Whether nothing of it could be measured: it is then a footnote instead of a column.
    pub(crate) fn is_not_measured(&self) -> bool {
        self.cells.iter().all(|c| matches!(c, Cell::Absent | Cell::NotMeasured(_)))
    }
}

impl Cell {
    /// The number, if it was measured.
    pub(crate) fn number(&self) -> Option<&Number> {
        if let Self::Value(number) = self { Some(number) } else { None }
    }

    pub(super) fn number_mut(&mut self) -> Option<&mut Number> {
        if let Self::Value(number) = self { Some(number) } else { None }
    }
}

/// The largest possible value of a number, in the unit of the series table, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AtLimit {
    pub(crate) number: f64,
    pub(crate) limit: LinkLimit,
}

/// One published column, its cells as they were printed.
#[derive(Debug)]
pub(crate) struct Published {
    /// The column in print, e.g. `FDR`.
    pub(crate) label: String,
    /// `published`, or `derived` from published numbers.
    pub(crate) origin: &'static str,
    /// The unit of its numbers; absent when nothing states it.
    pub(crate) scale: Option<Scale>,
    /// One cell for each x of the series table, as text, so that `NA` and trailing zeros are kept.
    pub(crate) cells: Vec<Option<String>>,
    /// The measured series that it belongs to.
    pub(crate) twin: Option<usize>,
}

impl Published {
    /// The cell as a number in another unit of the same kind.
    pub(crate) fn number(&self, row: usize, scale: Scale) -> Option<f64> {
        let number: f64 = self.cells.get(row)?.as_ref()?.trim().parse().ok()?;
        Some(scale.apply(number * self.scale?.one))
    }
}
