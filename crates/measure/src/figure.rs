//! Figures and tables that a plan asks for. They stand in the plan, are stored with the run's
//! record and are drawn by the report from the record alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{Axes, LatencyKind};
use crate::selection::{self, Selection};

/// One table or chart of a report, described by the axes of the points that it shows.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What it is drawn as.
    pub kind: FigureKind,
    /// Heading, e.g. `Table 2: RC Send latency`.
    pub title: String,
    /// The level of a system that it is about, e.g. `Application`: figures of one level stand
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
    /// `throughput.bytes_per_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    /// Unit to print `y` in; by default the unit that the field's name ends in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// The axes whose values tell the series (or the columns of a table) apart; also `experiment`
    /// and `latency`, the kind of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// The axis of `series` whose values have marker shapes of their own in a figure of lines, e.g.
    /// `operation`: sends point up and writes down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<String>,
    /// The kinds of latency that a histogram overlays; by default the headline of the points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<LatencyKind>,
    /// First and last time of a histogram, in ns; by default from the least sample to the largest
    /// 99.9 % quantile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_ns: Option<[u64; 2]>,
    /// Whether a histogram counts on a logarithmic axis.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log_counts: bool,
    /// Only points whose axes have these values, each one or a list of several.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub only: Selection,
    /// Whether each series but the first is shown less the one before it: what a layer adds to the
    /// one below. Of times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub difference: bool,
    /// Whether each series but the first is shown less the first, which is left out: how far each
    /// is above a reference. Of times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub above_first: bool,
    /// Whether each series is shown as a multiple of the one that has these values of its axes and
    /// else the same ones, which is 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relative_to: BTreeMap<String, serde_json::Value>,
    /// What stands at the corners of a surface where it is more than so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<Marked>,
    /// What is compared, of [`FigureKind::Costs`].
    #[serde(default, rename = "row", skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<CostRow>,
    /// Why nothing is measured for it, of [`FigureKind::Published`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Published numbers to stand beside the measured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

impl Figure {
    /// One of a kind and a title, of nothing yet.
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

/// A second quantity of a surface, printed where it is large: missed steps beside latencies (V63 of
/// the evaluations).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Marked {
    /// The quantity as a path into a point: a share, e.g. `pipeline.missed_share`.
    pub y: String,
    /// It is printed where it is more than this share, from 0 to 1.
    pub above: f64,
}

/// Ways to do the same, the modes of a row, of which one is the best: what each other one costs.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CostRow {
    /// What is done, e.g. `Ping-pong of 1 B`.
    pub what: String,
    /// The level of a system that it is done at, e.g. `Application`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Names of the experiments whose points are compared.
    pub experiments: Vec<String>,
    /// Only points whose axes have these values, each one or a list of several.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub only: Selection,
    /// The axes whose values are the modes, e.g. `endpoint`; also `experiment`.
    pub modes: Vec<String>,
    /// The axes for each of whose values the modes are compared apart, e.g. `size_bytes`; also
    /// `experiment`. Points that are the same in these and the modes are repetitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<String>,
    /// The measured quantity as a path into a point, e.g. `latency.p50_ns`.
    pub y: String,
    /// Unit to print `y` in; by default the unit that the field's name ends in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// Which numbers are the better ones; known of times, throughputs and what programs say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// What was published of it, e.g. `1.66 to 3.03 us: x 1.83`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
}

impl CostRow {
    /// Whether a point of this experiment with these axes is compared.
    pub fn picks(&self, experiment: &str, axes: &Axes) -> bool {
        selection::picks(&self.experiments, &self.only, experiment, axes)
    }
}

/// What a figure is drawn as.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Grouped bars, one group for each value of x.
    Bars,
    /// A table of what the slower modes cost against the best one, a group of lines for each
    /// [`CostRow`].
    Costs,
    /// Distributions of the points' latencies, a panel for each series, the kinds overlaid.
    Histogram,
    /// Lines over x, whose axis is logarithmic where it does not rise evenly, with 10 % and 90 %
    /// quantiles as error bars where y is a latency.
    Lines,
    /// Signal and data rates of InfiniBand links, computed from lane rate, width and coding.
    LinkRates,
    /// Published numbers alone, of what is not measured, with the reason.
    Published,
    /// A surface over x and the one axis of the series, seen from the side; one for each
    /// combination of other axes.
    Surface,
    /// Rows over x, a column for each series, published columns beside them.
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

/// Which numbers of a quantity are the better ones.
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

/// Published numbers. A plan names the file; the resolved plan and the record carry the numbers
/// themselves.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// CSV file beside the plan, e.g. `reference/gamess-2016/table2_rc_send_latency_us.csv`.
    pub file: String,
    /// Where the numbers were published, e.g. `Gamess and Ortiz-Zuazaga 2016, Table 2`.
    pub source: String,
    /// Unit of the numbers in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// The numbers, filled in when the plan is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<ReferenceTable>,
}

/// A published table as its CSV file has it: text cells, so that `NA` and trailing zeros survive.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceTable {
    /// Column names; for a table over an axis the first is the axis, e.g. `size_bytes`, `sdr_us`,
    /// `fdr_us`.
    pub columns: Vec<String>,
    /// Rows of cells, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}
