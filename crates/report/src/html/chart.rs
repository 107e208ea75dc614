//! Charts as data: what is drawn, not how. The page's script turns them into plotly's terms in the page's colours.

use measure::figure::{Figure, FigureKind};
use serde::Serialize;
use serde_json::Value;

use crate::grid::{Grid, Number, Published, Series};
use crate::{unit, value};

/// One chart of the page.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    /// The id of the element that it is drawn in.
    id: String,
    /// `lines` or `bars`.
    kind: &'static str,
    x_title: String,
    /// `log`, `linear` or `category`.
    x_type: &'static str,
    /// Where x has ticks, and their labels.
    ticks: Vec<(Value, String)>,
    y_title: String,
    /// What the error bars are.
    errors: Errors,
    series: Vec<Drawn>,
}

/// What error bars reach over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Errors {
    /// 10 % to 90 % of the samples.
    Quantiles,
    /// The smallest to the largest of the repetitions.
    Repetitions,
    /// There are none.
    None,
}

/// One line or set of bars.
#[derive(Debug, Default, Serialize)]
struct Drawn {
    name: String,
    published: bool,
    /// Index of its colour: published numbers have that of the series that they correspond to.
    colour: usize,
    x: Vec<Value>,
    y: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    hover: Vec<String>,
    /// Points to open the histogram of; none for published numbers.
    ids: Vec<u64>,
    doubtful: Vec<bool>,
}

impl Chart {
    /// The chart of a figure.
    pub(super) fn new(id: String, figure: &Figure, grid: &Grid) -> Self {
        let bars = figure.kind == FigureKind::Bars;
        let errors = errors(grid);
        let measured = grid.series.iter().enumerate().filter(|(_, s)| s.has_numbers());
        let mut colours: Vec<usize> = measured.clone().map(|(index, _)| index).collect();
        let mut series: Vec<Drawn> =
            measured.enumerate().map(|(colour, (_, s))| drawn(grid, s, colour, errors, bars)).collect();
        for published in &grid.published {
            let known = published.twin.and_then(|twin| colours.iter().position(|index| *index == twin));
            let colour = known.unwrap_or_else(|| {
                colours.push(usize::MAX);
                colours.len() - 1
            });
            series.extend(drawn_published(grid, published, colour, bars));
        }
        Self {
            id,
            kind: if bars { "bars" } else { "lines" },
            x_title: if grid.x.ends_with("_bytes") {
                grid.x.trim_end_matches("_bytes").to_owned()
            } else {
                x_title(&grid.x)
            },
            x_type: x_type(grid, bars),
            ticks: grid.xs.iter().map(|x| (place(grid, x, bars), x_label(&grid.x, x))).collect(),
            y_title: y_title(grid),
            errors,
            series,
        }
    }

    /// Whether there is anything to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// What the error bars are, for the note below the chart.
    pub(super) fn errors(&self) -> Errors {
        self.errors
    }
}

/// What y is, with its unit: `median latency, rtt_half [us]`.
pub(super) fn y_title(grid: &Grid) -> String {
    let what = match grid.y.as_str() {
        "latency.p50_ns" => "median latency".to_owned(),
        "latency.mean_ns" => "mean latency".to_owned(),
        "latency.max_ns" => "largest latency".to_owned(),
        "latency.min_ns" => "smallest latency".to_owned(),
        "latency.p99_ns" => "99 % quantile of the latency".to_owned(),
        "latency.p999_ns" => "99.9 % quantile of the latency".to_owned(),
        "throughput.bytes_per_s" => "throughput of one direction".to_owned(),
        "throughput.messages_per_s" => "message rate of one direction".to_owned(),
        "throughput_total.bytes_per_s" => "throughput, both directions together".to_owned(),
        "throughput_total.messages_per_s" => "message rate, both directions together".to_owned(),
        path => path.to_owned(),
    };
    let kinds: Vec<_> = grid.kinds.iter().map(|kind| kind.name()).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(", {}", kinds.join(" and ")) };
    let unit = if grid.scale.label.is_empty() { String::new() } else { format!(" [{}]", grid.scale.label) };
    format!("{what}{kinds}{unit}")
}

/// The axis in words, with its unit.
pub(super) fn x_title(x: &str) -> String {
    match x.rsplit_once('_') {
        Some((what, "bytes")) => format!("{what} [B]"),
        Some((what, unit @ ("ns" | "hz"))) => format!("{what} [{unit}]").replace("[hz]", "[Hz]"),
        _ => x.replace('_', " "),
    }
}

/// A value of x as a label.
fn x_label(x: &str, at: &Value) -> String {
    match at.as_u64() {
        Some(bytes) if x.ends_with("_bytes") => unit::size(bytes),
        _ => value::text(at),
    }
}

fn x_type(grid: &Grid, bars: bool) -> &'static str {
    let numbers: Option<Vec<f64>> = grid.xs.iter().map(Value::as_f64).collect();
    match numbers {
        Some(numbers) if !bars && numbers.iter().all(|x| *x > 0.0) => "log",
        Some(_) if !bars => "linear",
        _ => "category",
    }
}

/// Where a value of x is on its axis: a number where the axis is one, else its label.
fn place(grid: &Grid, at: &Value, bars: bool) -> Value {
    if x_type(grid, bars) == "category" { x_label(&grid.x, at).into() } else { at.clone() }
}

fn errors(grid: &Grid) -> Errors {
    let mut numbers = grid.numbers();
    if numbers.any(|n| n.quantiles.is_some()) {
        Errors::Quantiles
    } else if grid.numbers().any(|n| n.repetitions > 1) {
        Errors::Repetitions
    } else {
        Errors::None
    }
}

fn drawn(grid: &Grid, series: &Series, colour: usize, errors: Errors, bars: bool) -> Drawn {
    let mut drawn = Drawn { name: series.label.clone(), colour, ..Drawn::default() };
    for (x, cell) in grid.xs.iter().zip(&series.cells) {
        let Some(number) = cell.number() else { continue };
        let [low, high] = match errors {
            Errors::Quantiles => number.quantiles.unwrap_or([number.median; 2]),
            Errors::Repetitions => number.runs,
            Errors::None => [number.median; 2],
        };
        drawn.x.push(place(grid, x, bars));
        drawn.y.push(number.median);
        drawn.low.push(low);
        drawn.high.push(high);
        drawn.hover.push(hover(grid, series, x, number));
        drawn.ids.push(number.id);
        drawn.doubtful.push(!number.doubts.is_empty());
    }
    drawn
}

fn drawn_published(grid: &Grid, published: &Published, colour: usize, bars: bool) -> Option<Drawn> {
    let name = format!("{} (published)", published.label);
    let mut drawn = Drawn { name: name.clone(), published: true, colour, ..Drawn::default() };
    for (row, x) in grid.xs.iter().enumerate() {
        let Some(number) = published.number(row, grid.scale) else { continue };
        drawn.x.push(place(grid, x, bars));
        drawn.y.push(number);
        drawn.hover.push(format!("{name}\n{}: {number} {}", x_label(&grid.x, x), grid.scale.label));
    }
    (!drawn.x.is_empty()).then_some(drawn)
}

fn hover(grid: &Grid, series: &Series, x: &Value, number: &Number) -> String {
    let unit = grid.scale.label;
    let mut text = format!("{}\n{}: {:.3} {unit}", series.label, x_label(&grid.x, x), number.median);
    if let Some(bound) = number.bound {
        text += &format!(" ± {bound:.3} {unit} (two clocks)");
    }
    if let Some([low, high]) = number.quantiles {
        text += &format!("\n10 % to 90 % within a run: {low:.3} to {high:.3} {unit}");
    }
    if number.repetitions > 1 {
        let [low, high] = number.runs;
        text += &format!("\nmedian of {} repetitions: {low:.3} to {high:.3} {unit}", number.repetitions);
    }
    for doubt in &number.doubts {
        text += &format!("\n! {doubt}");
    }
    text
}
