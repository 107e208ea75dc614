//! Charts as data: what is drawn, not how. The page's script converts them to plotly's format, with
//! the page's colours.

use measure::figure::{Figure, FigureKind};
use measure::record::LatencyKind;
use serde::Serialize;
use serde_json::Value;

use crate::list::distinct;
use crate::series_table::{Number, Series, SeriesTable};
use crate::{unit, value};

/// One chart of the page.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    /// The id of the element that it is drawn in.
    pub(super) id: String,
    /// What distinguishes it from the other charts of its figure, if there are several.
    #[serde(skip)]
    pub(crate) label: String,
    /// `lines`, `bars`, `histogram` (outlines of bins) or `surface` (drawn without a script).
    pub(crate) kind: &'static str,
    pub(crate) x_title: String,
    /// `log`, `linear` or `category`.
    pub(crate) x_type: &'static str,
    /// The ticks of x, and their labels.
    pub(crate) ticks: Vec<(Value, String)>,
    pub(crate) y_title: String,
    /// `log` or `linear`.
    pub(crate) y_type: &'static str,
    /// The smallest and the largest number of y, with error bars, of all charts of the figure.
    pub(crate) y_ends: [f64; 2],
    /// The name of the numbers that are printed at the marks, if there are any.
    pub(crate) marks_title: Option<String>,
    /// The meaning of the error bars.
    errors: Errors,
    pub(crate) series: Vec<Drawn>,
}

/// The range of error bars.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Errors {
    /// 10th to 90th percentile of the samples.
    Quantiles,
    /// The smallest to the largest of the repetitions.
    Repetitions,
    /// No error bars.
    None,
}

/// A line or a set of bars.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Drawn {
    pub(crate) name: String,
    /// The word for numbers that were not measured here: `published`, or `derived` from such.
    pub(crate) published: Option<&'static str>,
    /// Whether it is the link limit.
    pub(crate) at_best: bool,
    /// Index of its colour: published numbers have that of the series that they belong to, and link
    /// limits that of the first series with that link.
    pub(crate) colour: usize,
    pub(crate) x: Vec<Value>,
    pub(crate) y: Vec<f64>,
    pub(crate) low: Vec<f64>,
    pub(crate) high: Vec<f64>,
    hover: Vec<String>,
    /// The points whose histograms can be opened; empty for published numbers.
    ids: Vec<u64>,
    pub(crate) doubtful: Vec<bool>,
    /// The shape of its markers, where the figure has an axis for shapes.
    pub(crate) symbol: Option<&'static str>,
    /// The numbers that are printed at its marks.
    pub(crate) marks: Vec<Option<f64>>,
    /// The axes that distinguish it, with their values; empty for what belongs to several series.
    #[serde(skip)]
    pub(super) key: Key,
    /// The number of later lines that nearly cover it, and behind which it is wider.
    pub(crate) under: usize,
}

impl Drawn {
    /// Where its numbers come from.
    pub(crate) fn kind(&self) -> &'static str {
        match (self.published, self.at_best) {
            (Some(origin), _) => origin,
            (_, true) => "link limit",
            _ => "measured",
        }
    }

    /// Whether its numbers were measured here.
    pub(crate) fn is_measured(&self) -> bool {
        self.published.is_none() && !self.at_best
    }
}

impl Chart {
    /// The chart of a figure.
    pub(crate) fn new(id: String, figure: &Figure, series_table: &SeriesTable) -> Self {
        let bars = figure.kind == FigureKind::Bars;
        let errors = errors(series_table);
        let x = &series_table.x;
        let x_type = x_type(series_table, bars);
        let tick = |at: &Value| {
            let label = x_label(x, at);
            let place = if x_type == "category" { label.clone().into() } else { at.clone() };
            (place, label)
        };
        let ticks: Vec<(Value, String)> = series_table.xs.iter().map(tick).collect();
        let mut colours = Colours { marker: figure.marker.as_deref(), known: Vec::new() };
        let measured = series_table.series.iter().filter(|s| s.has_numbers());
        let mut series: Vec<Drawn> = measured
            .map(|s| {
                let symbol = figure.marker.as_deref().and_then(|axis| symbol(series_table, s, axis));
                Drawn { symbol, key: s.key.clone(), ..drawn(series_table, &ticks, s, colours.of(s), errors) }
            })
            .collect();
        for published in &series_table.published {
            let twin =
                published.twin.and_then(|twin| series_table.series.get(twin)).filter(|s| s.has_numbers());
            let colour = match twin {
                Some(twin) => colours.of(twin),
                None => colours.another(),
            };
            let name = format!("{} ({})", published.label, published.origin);
            let key = twin.map_or_else(Key::new, |twin| twin.key.clone());
            let empty = Drawn { name, published: Some(published.origin), colour, key, ..Drawn::default() };
            let numbers = (0..ticks.len()).map(|row| published.number(row, series_table.scale));
            let drawn = beside(series_table, &ticks, empty, numbers, |number| number.to_string());
            series.extend((!drawn.x.is_empty()).then_some(drawn));
        }
        for line in series_table.link_lines() {
            let colour = colours.of(line.first);
            let empty = Drawn { name: line.name(), at_best: true, colour, ..Drawn::default() };
            let numbers = line.numbers.iter().copied();
            series.push(beside(series_table, &ticks, empty, numbers, |number| format!("{number:.3}")));
        }
        for numbers in series.iter_mut().flat_map(|series| [&mut series.y, &mut series.low, &mut series.high])
        {
            numbers.iter_mut().for_each(|number| *number = rounded(*number));
        }
        let y_type = y_type(&series, bars, x_type);
        Self {
            id,
            label: String::new(),
            kind: match figure.kind {
                FigureKind::Bars => "bars",
                FigureKind::Surface => "surface",
                _ => "lines",
            },
            x_title: x.strip_suffix("_bytes").map_or_else(|| x_title(x), str::to_owned),
            x_type,
            ticks,
            y_title: y_title(series_table),
            y_type,
            y_ends: y_ends(&series, y_type),
            marks_title: None,
            errors,
            series,
        }
    }

    /// A histogram: outlines over the edges of the same bins, in a unit of time.
    pub(super) fn histogram(
        id: String,
        label: String,
        (edges, unit): (&[f64], &str),
        log_counts: bool,
        outlines: Vec<(String, usize, Vec<u64>)>,
    ) -> Self {
        let ends = [edges.first(), edges.last()].map(|end| end.copied().unwrap_or_default());
        let step = unit::step((ends[1] - ends[0]) / 6.0);
        let ticks = ((ends[0] / step).ceil() as u64..=(ends[1] / step) as u64).map(|tick| {
            let place = rounded(tick as f64 * step);
            (place.into(), place.to_string())
        });
        let outline = |(name, colour, counts): (String, usize, Vec<u64>)| Drawn {
            name,
            colour,
            x: edges.iter().map(|edge| rounded(*edge).into()).collect(),
            // The last edge is the end of the last bin.
            y: counts.iter().chain([&0]).map(|count| *count as f64).collect(),
            ..Drawn::default()
        };
        let series: Vec<Drawn> = outlines.into_iter().map(outline).collect();
        let y_type = if log_counts { "log" } else { "linear" };
        let most = y_ends(&series, y_type)[1];
        Self {
            id,
            label,
            kind: "histogram",
            x_title: format!("latency [{unit}]"),
            x_type: "linear",
            ticks: ticks.collect(),
            y_title: "samples per bin".to_owned(),
            y_type,
            // One sample has to be seen on a logarithmic axis.
            y_ends: if log_counts { [0.5, most.max(1.0)] } else { [0.0, most] },
            marks_title: None,
            errors: Errors::None,
            series,
        }
    }

    /// The series that a condition on their axes selects, as a chart of its own.
    pub(super) fn part(&self, id: String, label: String, has: impl Fn(&[(String, Value)]) -> bool) -> Self {
        let series = self.series.iter().filter(|series| series.key.is_empty() || has(&series.key));
        Self { id, label, series: series.cloned().collect(), ..self.clone() }
    }

    /// Sets the numbers that are printed at the marks, from the same points.
    pub(super) fn set_marks(&mut self, marks: &SeriesTable) {
        self.marks_title = Some(y_title(marks));
        for drawn in &mut self.series {
            let twin = marks.series.iter().find(|twin| twin.key == drawn.key);
            let number = |x: &Value| {
                let row = self.ticks.iter().position(|(place, _)| place == x)?;
                Some(rounded(twin?.cells.get(row)?.number()?.median))
            };
            drawn.marks = drawn.x.iter().map(number).collect();
        }
    }

    /// Whether there is anything to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Whether it has bars instead of lines.
    pub(crate) fn is_bars(&self) -> bool {
        self.kind == "bars"
    }

    /// The meaning of the error bars, for the note below the chart.
    pub(super) fn errors(&self) -> Errors {
        self.errors
    }
}

/// Assigns a colour to each series; series that differ only in the shape of their markers share
/// one.
struct Colours<'a> {
    marker: Option<&'a str>,
    known: Vec<Option<Key>>,
}

/// Axes with their values.
pub(super) type Key = Vec<(String, Value)>;

impl Colours<'_> {
    fn of(&mut self, series: &Series) -> usize {
        let but_marker = series.key.iter().filter(|(axis, _)| Some(axis.as_str()) != self.marker);
        let key = Some(but_marker.cloned().collect::<Key>());
        self.known.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.known.push(key);
            self.known.len() - 1
        })
    }

    fn another(&mut self) -> usize {
        self.known.push(None);
        self.known.len() - 1
    }
}

/// The shape of a series' markers: triangles that point up for sends and down for writes, as in
/// Potter 2018; for other values, shapes in the order in which they appear.
fn symbol(series_table: &SeriesTable, series: &Series, axis: &str) -> Option<&'static str> {
    let value = |s: &Series| s.key.iter().find(|(name, _)| name == axis).map(|(_, value)| value::text(value));
    let own = value(series)?;
    match own.as_str() {
        word if word.starts_with("send") => return Some("triangle-up"),
        word if word.starts_with("write") => return Some("triangle-down"),
        _ => {}
    }
    let values = distinct(series_table.series.iter().filter_map(value));
    let index = values.iter().position(|known| *known == own)?;
    Some(SYMBOLS[index % SYMBOLS.len()])
}

/// Shapes of plotly that each have an open form.
const SYMBOLS: [&str; 6] = ["circle", "square", "diamond", "cross", "x", "star"];

/// The quantity of y with its unit: `median latency, half a round trip [us]`.
pub(super) fn y_title(series_table: &SeriesTable) -> String {
    let unit = if series_table.scale.label.is_empty() {
        String::new()
    } else {
        format!(" [{}]", series_table.scale.label)
    };
    y_name(series_table) + &unit
}

/// The quantity of y. The meaning of a kind of latency stands for its name if there is room.
pub(super) fn y_name(series_table: &SeriesTable) -> String {
    let word = |kind: &LatencyKind| {
        let meaning = kind.meaning().split(',').next().unwrap_or_default();
        if meaning.len() <= MEANING_MAX { meaning.to_owned() } else { kind.name().replace('_', " ") }
    };
    let kinds: Vec<String> = series_table.kinds.iter().map(word).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(", {}", kinds.join(" and ")) };
    format!("{}{kinds}", series_table.what)
}

/// The longest meaning of a kind of latency, in characters: the title of an axis has no more room.
const MEANING_MAX: usize = 24;

/// The axis in words, with its unit.
pub(super) fn x_title(x: &str) -> String {
    match x.rsplit_once('_') {
        Some((what, "bytes")) => format!("{what} [B]"),
        Some((what, unit @ ("ns" | "hz"))) => format!("{what} [{unit}]").replace("[hz]", "[Hz]"),
        _ => x.replace('_', " "),
    }
}

/// A value of x as a label.
pub(super) fn x_label(x: &str, at: &Value) -> String {
    match at.as_u64() {
        Some(bytes) if x.ends_with("_bytes") => unit::size(bytes),
        _ => value::text(at),
    }
}

fn x_type(series_table: &SeriesTable, bars: bool) -> &'static str {
    let numbers: Option<Vec<f64>> = series_table.xs.iter().map(Value::as_f64).collect();
    match numbers {
        Some(numbers) if !bars && numbers.iter().all(|x| *x > 0.0) && !are_even(&numbers) => "log",
        Some(_) if !bars => "linear",
        _ => "category",
    }
}

/// The scale of y. It is logarithmic if numbers are so different that the small ones could not be
/// seen, and for lines over a logarithmic x; never if a number is 0.
fn y_type(series: &[Drawn], bars: bool, x_type: &str) -> &'static str {
    let numbers = || series.iter().flat_map(|series| series.y.iter().copied());
    let least = numbers().fold(f64::INFINITY, f64::min);
    let largest = numbers().fold(0.0, f64::max);
    let is_log = largest > SPREAD * least || !bars && x_type == "log";
    if is_log && least > 0.0 { "log" } else { "linear" }
}

fn y_ends(series: &[Drawn], y_type: &str) -> [f64; 2] {
    let numbers = series.iter().flat_map(|series| series.y.iter().chain(&series.low).chain(&series.high));
    let shown = numbers.copied().filter(|y| y.is_finite() && (y_type != "log" || *y > 0.0));
    let ends = shown.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], y| [least.min(y), most.max(y)]);
    if ends[0] <= ends[1] { ends } else { [1.0, 10.0] }
}

/// Numbers of which the largest is more than this many times the smallest have a logarithmic scale.
const SPREAD: f64 = 20.0;

/// Whether x rises so evenly that a logarithmic axis would crowd its end: it has three steps or
/// more, none twice as long as another.
fn are_even(xs: &[f64]) -> bool {
    let steps = || xs.windows(2).map(|pair| pair[1] - pair[0]);
    let least = steps().fold(f64::INFINITY, f64::min);
    let largest = steps().fold(0.0, f64::max);
    xs.len() > 3 && largest < 2.0 * least
}

fn errors(series_table: &SeriesTable) -> Errors {
    let mut numbers = series_table.numbers();
    if numbers.any(|n| n.quantiles.is_some()) {
        Errors::Quantiles
    } else if series_table.numbers().any(|n| n.repetitions > 1) {
        Errors::Repetitions
    } else {
        Errors::None
    }
}

fn drawn(
    series_table: &SeriesTable,
    ticks: &[(Value, String)],
    series: &Series,
    colour: usize,
    errors: Errors,
) -> Drawn {
    let mut drawn = Drawn { name: series.label.clone(), colour, ..Drawn::default() };
    for ((place, label), cell) in ticks.iter().zip(&series.cells) {
        let Some(number) = cell.number() else { continue };
        let [low, high] = match errors {
            Errors::Quantiles => number.quantiles.unwrap_or([number.median; 2]),
            Errors::Repetitions => number.runs,
            Errors::None => [number.median; 2],
        };
        drawn.x.push(place.clone());
        drawn.y.push(number.median);
        drawn.low.push(low);
        drawn.high.push(high);
        drawn.hover.push(hover(series_table, series, label, number));
        drawn.ids.push(number.id);
        drawn.doubtful.push(!number.doubts.is_empty());
    }
    drawn
}

/// The number with as many digits as a reader may need: conversions of units leave others, such as
/// 0.20249999999999999.
pub(crate) fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

/// Numbers next to the measured ones: published numbers, or link limits.
fn beside(
    series_table: &SeriesTable,
    ticks: &[(Value, String)],
    mut drawn: Drawn,
    numbers: impl Iterator<Item = Option<f64>>,
    in_print: fn(f64) -> String,
) -> Drawn {
    for ((place, label), number) in ticks.iter().zip(numbers) {
        let Some(number) = number else { continue };
        let text = format!("{}\n{label}: {} {}", drawn.name, in_print(number), series_table.scale.label);
        drawn.x.push(place.clone());
        drawn.y.push(number);
        drawn.hover.push(text);
    }
    drawn
}

fn hover(series_table: &SeriesTable, series: &Series, label: &str, number: &Number) -> String {
    let unit = series_table.scale.label;
    let mut text = format!("{}\n{label}: {:.3} {unit}", series.label, number.median);
    if let Some(bound) = number.bound {
        text += &format!(" ± {bound:.3} {unit} (two clocks)");
    }
    if let Some([low, high]) = number.quantiles {
        text += &format!("\n10th to 90th percentile within a run: {low:.3} to {high:.3} {unit}");
    }
    if number.repetitions > 1 {
        let [low, high] = number.runs;
        let repeated = if number.are_launches { "launches" } else { "repetitions" };
        text += &format!("\nmedian of {} {repeated}: {low:.3} to {high:.3} {unit}", number.repetitions);
    }
    for doubt in &number.doubts {
        text += &format!("\n! {doubt}");
    }
    text
}
