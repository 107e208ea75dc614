//! Figures and tables of a plan. They are stored with the run's record, and the report draws them
//! from the record alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::record::{Axes, LatencyKind};
use crate::selection::{self, Selection};
use crate::units::time_ns;

/// One table or chart of a report, described by the axes of the points that it shows.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// How it is drawn.
    pub kind: FigureKind,
    /// Heading, e.g. `Table 2: RC Send latency`.
    pub title: String,
    /// The level of a system that it is about, e.g. `Application`. Figures of one level stand
    /// together under its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// A sentence or two below the heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Names of the experiments whose points are shown. Empty only for [`FigureKind::Costs`],
    /// [`FigureKind::LinkRates`] and [`FigureKind::Published`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<String>,
    /// The axis along x, or down the rows of a table; e.g. `size_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    /// The measured quantity as a path into a point, e.g. `latency.p50_ns` or
    /// `throughput.bytes_per_s`. The axis of lines and bars is logarithmic if the largest number is
    /// more than 20 times the smallest, and that of lines also if the x axis is; never if a number
    /// is 0 or less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    /// Unit to print `y` in; by default the unit that the field's name ends in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// The axes whose values distinguish the series (or the columns of a table); also `experiment`
    /// and `latency`, the kind of latency. More than six measured lines are drawn in several charts
    /// with the same scales, one for each combination of the first of these axes: of as few axes as
    /// leave at most six lines in every chart, or otherwise of as many as leave two lines in some
    /// chart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// The axis of `series` whose values get different marker shapes in a figure of lines, e.g.
    /// `operation`: triangles that point up for sends and down for writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<String>,
    /// The kinds of latency that a histogram overlays; by default the main latency of the points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<LatencyKind>,
    /// First and last time of a histogram, in ns or as durations; by default from the smallest
    /// sample to the largest 99.9th percentile.
    #[serde(default, deserialize_with = "limits_ns", skip_serializing_if = "Option::is_none")]
    pub limits_ns: Option<[u64; 2]>,
    /// Whether the counts of a histogram are on a logarithmic axis.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log_counts: bool,
    /// Only points whose axes have these values, each one or a list of several.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub only: Selection,
    /// Whether each series but the first is shown minus the one before it: what a layer adds to the
    /// one below. Only for times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub difference: bool,
    /// Whether each series but the first is shown minus the first, which is left out: how far each
    /// is above a reference. Only for times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub above_first: bool,
    /// Whether each series is shown as a multiple of the series that has these values of its axes
    /// and otherwise the same ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relative_to: BTreeMap<String, serde_json::Value>,
    /// A second quantity, printed at the corners of a surface where it is above a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<Marked>,
    /// The rows of modes that [`FigureKind::Costs`] compares.
    #[serde(default, rename = "row", skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<CostRow>,
    /// Why a figure [`FigureKind::Published`] has no measured numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Published numbers that are shown beside the measured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

/// Reads two times, each a number of ns or a text such as `10us`.
fn limits_ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[u64; 2]>, D::Error> {
    let [from, to] = <[serde_json::Value; 2]>::deserialize(deserializer)?;
    let both = time_ns(&from).zip(time_ns(&to)).map(|(from, to)| [from, to]);
    both.map(Some).ok_or_else(|| D::Error::custom("expected two times, such as [0, \"10us\"]"))
}

impl Figure {
    /// A figure with a kind and a title and nothing else.
    pub fn new(kind: FigureKind, title: &str) -> Self {
        Self {
            kind,
            title: title.to_owned(),
            level: None,
            caption: None,
            experiments: Vec::new(),
            x: None,
            y: None,
            unit: None,
            series: Vec::new(),
            marker: None,
            kinds: Vec::new(),
            limits_ns: None,
            log_counts: false,
            only: BTreeMap::new(),
            difference: false,
            above_first: false,
            relative_to: BTreeMap::new(),
            marked: None,
            rows: Vec::new(),
            reason: None,
            reference: None,
        }
    }
}

/// A second quantity of a surface, printed where it is large: missed steps beside latencies.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Marked {
    /// The quantity as a path into a point: a share, e.g. `pipeline.missed_share`.
    pub y: String,
    /// The share, from 0 to 1, above which it is printed.
    pub above: f64,
}

/// Alternatives for one task, its modes. The best mode is the reference; the others cost more.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CostRow {
    /// The task, e.g. `Ping-pong of 1 B`.
    pub what: String,
    /// The level of a system that it belongs to, e.g. `Application`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Names of the experiments whose points are compared.
    pub experiments: Vec<String>,
    /// Only points whose axes have these values, each one or a list of several.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub only: Selection,
    /// The axes whose values are the modes, e.g. `endpoint`; also `experiment`.
    pub modes: Vec<String>,
    /// The axes for each of whose values the modes are compared separately, e.g. `size_bytes`; also
    /// `experiment`. Points that agree in these axes and in the modes are repetitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<String>,
    /// The measured quantity as a path into a point, e.g. `latency.p50_ns`.
    pub y: String,
    /// Unit to print `y` in; by default the unit that the field's name ends in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// Whether smaller or larger numbers are better; known for times, throughputs and metrics of
    /// applications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// The published numbers, e.g. `1.66 to 3.03 us: x 1.83`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
}

impl CostRow {
    /// Whether a point of this experiment with these axes is compared.
    pub fn picks(&self, experiment: &str, axes: &Axes) -> bool {
        selection::picks(&self.experiments, &self.only, experiment, axes)
    }
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Grouped bars, one group for each value of x.
    Bars,
    /// A table of how much more the slower modes cost than the best one, with a group of lines for
    /// each [`CostRow`].
    Costs,
    /// Distributions of the points' latencies, a panel for each series, the kinds overlaid.
    Histogram,
    /// Lines over x, with the 10th and 90th percentiles as error bars where y is a latency. The x
    /// axis is logarithmic unless its values are evenly spaced.
    Lines,
    /// Signal and data rates of InfiniBand links, computed from lane rate, width and coding.
    LinkRates,
    /// Published numbers alone, where nothing is measured, with the reason.
    Published,
    /// A surface over x and the one axis of the series, in a perspective view; one for each
    /// combination of the other axes.
    Surface,
    /// Rows over x, a column for each series, and columns of published numbers.
    Table,
}

/// A unit to print in. The base is always a power of ten unless the name says otherwise.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// Microseconds.
    #[serde(rename = "us")]
    Us,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Ms,
    /// Seconds.
    #[serde(rename = "s")]
    S,
    /// 10^9 bit/s.
    #[serde(rename = "Gb/s")]
    GbPerS,
    /// 10^6 bit/s.
    #[serde(rename = "Mb/s")]
    MbPerS,
    /// 10^6 B/s.
    #[serde(rename = "MB/s")]
    MBPerS,
    /// 2^20 B/s.
    #[serde(rename = "MiB/s")]
    MiBPerS,
    /// 10^6 messages/s.
    #[serde(rename = "Mmsg/s")]
    MmsgPerS,
}

/// Whether smaller or larger numbers of a quantity are better.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Smaller ones, as of times.
    #[default]
    Less,
    /// Larger ones, as of rates.
    More,
}

impl Better {
    /// Its name in plans and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Less => "less",
            Self::More => "more",
        }
    }
}

/// Published numbers. A plan names the file; the resolved plan and the record hold the numbers
/// themselves.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// CSV file next to the plan, e.g. `reference/gamess-2016/table2_rc_send_latency_us.csv`.
    pub file: String,
    /// Where the numbers were published, e.g. `Gamess and Ortiz-Zuazaga 2016, Table 2`.
    pub source: String,
    /// Whether the numbers are computed from published ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
    /// Unit of the numbers in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// The numbers, filled in when the plan is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<ReferenceTable>,
}

impl Reference {
    /// Where its numbers come from, in one word.
    #[must_use]
    pub fn origin(&self) -> &'static str {
        if self.derived { "derived" } else { "published" }
    }
}

/// A published table as its CSV file has it: text cells, so that `NA` and trailing zeros are kept.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceTable {
    /// Column names; for a table over an axis the first is the axis, e.g. `size_bytes`, `sdr_us`,
    /// `fdr_us`.
    pub columns: Vec<String>,
    /// Rows of cells, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}
