//! A chart as an SVG that needs neither a script nor a style sheet, in colours for white paper.

use maud::{Markup, PreEscaped, html};
use measure::text::plain;
use serde_json::Value;

use crate::html::CSS;
use crate::html::chart::{Chart, Drawn};
use crate::unit::step;

/// The size of a drawing, in pixels.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 470.0;
/// Room beside the plot: for numbers and names of the axes.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 16.0;
const BELOW: f64 = 58.0;
/// Room above: the title, and a line for each row of the legend.
const TITLE: f64 = 34.0;
const ROW: f64 = 18.0;
/// Width of a character, on average.
const CHARACTER: f64 = 6.6;
/// Labels below the x axis that are closer than this are left out.
const LABEL: f64 = 54.0;
/// Colours that are told apart with impaired colour vision, as in the report
/// (`assets/theme.css`).
const COLOURS: [&str; 8] =
    ["#2a78d6", "#e0592a", "#14946a", "#b97d00", "#cf4f86", "#5b4bc4", "#0c8fa3", "#7a8290"];

/// The first line of a file.
const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

/// A drawing of the page as a file: the page's rules for its class are copied into it.
pub(super) fn alone(drawn: &str, class: &str) -> String {
    let (element, rest) = drawn.split_once('>').unwrap_or((drawn, ""));
    let style = style(&format!(".{class} "));
    format!(
        "{XML}\n{element} xmlns=\"http://www.w3.org/2000/svg\" font-family=\"Helvetica, Arial, sans-serif\">\
         <style>{style}</style><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{rest}\n"
    )
}

/// The rules of the page for what is inside of a selector, with the colours of white paper.
fn style(selector: &str) -> String {
    let is_inside = |line: &&str| line.split_once(selector).is_some_and(|(_, rest)| !rest.starts_with('{'));
    let rules: String = CSS.lines().filter(is_inside).collect();
    let variables = CSS.lines().filter_map(|line| line.trim().strip_suffix(';')?.split_once(": "));
    // The light colours are the first.
    variables.fold(rules, |rules, (name, colour)| rules.replace(&format!("var({name})"), colour))
}

/// The drawing, with its title.
pub(super) fn drawing(chart: &Chart, title: &str) -> String {
    let legend = legend(chart);
    let plot = Plot::of(chart, TITLE + ROW * legend.len() as f64 + 8.0);
    let bars: Vec<&Drawn> = chart.series.iter().filter(|series| chart.is_bars() && !series.at_best).collect();
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(HEIGHT) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) }
            font-family="Helvetica, Arial, sans-serif" font-size="12" role="img" {
            title { (title) }
            rect width=(WIDTH) height=(HEIGHT) fill="#ffffff" {}
            text x=(LEFT) y="20" font-size="14" font-weight="bold" fill="#1c2430" { (title) }
            (legend_rows(&legend, chart.kind == "lines"))
            (plot.frame(chart))
            @for series in &chart.series {
                @let place = bars.iter().position(|bar| std::ptr::eq(*bar, series));
                @match place {
                    Some(index) => (plot.bars(series, index, bars.len())),
                    None if chart.kind == "histogram" => (plot.steps(series)),
                    None => (plot.line(series)),
                }
            }
        }
    };
    format!("{XML}\n{}\n", drawing.0)
}

/// The rows of the legend: the series with their places.
fn legend(chart: &Chart) -> Vec<Vec<(f64, &Drawn)>> {
    let mut rows: Vec<Vec<(f64, &Drawn)>> = Vec::new();
    let mut x = WIDTH;
    for series in &chart.series {
        let needed = 34.0 + CHARACTER * series.name.chars().count() as f64;
        if x + needed > WIDTH - RIGHT && x > LEFT {
            rows.push(Vec::new());
            x = LEFT;
        }
        if let Some(row) = rows.last_mut() {
            row.push((x, series));
        }
        x += needed + 10.0;
    }
    rows
}

fn legend_rows(rows: &[Vec<(f64, &Drawn)>], with_marks: bool) -> Markup {
    html! {
        @for (index, row) in rows.iter().enumerate() {
            @let y = TITLE + ROW * index as f64;
            @for (x, series) in row {
                line x1=(tenths(*x)) x2=(tenths(x + 22.0)) y1=(y) y2=(y) stroke=(colour(series)) stroke-width="2"
                    stroke-dasharray=(dashes(series)) {}
                @if with_marks && !series.at_best { (mark(series, x + 11.0, y, series.published.is_some())) }
                text x=(tenths(x + 28.0)) y=(y + 4.0) fill="#1c2430" { (plain(&series.name)) }
            }
        }
    }
}

/// The plot's edges, and its scales.
struct Plot {
    top: f64,
    x: X,
    y: Y,
}

/// The places along x.
enum X {
    /// Evenly spaced, in the order of the labels.
    Categories(Vec<String>),
    /// From the smallest to the largest number, perhaps in logarithms.
    Numbers { least: f64, most: f64, is_log: bool },
}

/// The scale of y, perhaps in logarithms.
struct Y {
    least: f64,
    most: f64,
    is_log: bool,
    ticks: Vec<f64>,
}

impl Plot {
    fn of(chart: &Chart, top: f64) -> Self {
        let x = if chart.x_type == "category" {
            X::Categories(chart.ticks.iter().map(|(_, label)| label.clone()).collect())
        } else {
            let is_log = chart.x_type == "log";
            let ticks = chart.ticks.iter().map(|(place, _)| place);
            let places = ticks.chain(chart.series.iter().flat_map(|series| &series.x));
            let numbers = places.filter_map(Value::as_f64).map(|x| if is_log { x.ln() } else { x });
            let (least, most) = ends(numbers).unwrap_or((0.0, 1.0));
            let margin = if most > least { 0.03 * (most - least) } else { 0.5 };
            X::Numbers { least: least - margin, most: most + margin, is_log }
        };
        Self { top, x, y: Y::of(chart) }
    }

    fn height(&self) -> f64 {
        HEIGHT - BELOW - self.top
    }

    /// The place of a value along x; `None` for one that is not on the axis.
    fn across(&self, at: &Value) -> Option<f64> {
        let share = match &self.x {
            X::Categories(labels) => {
                let index = labels.iter().position(|label| Some(label.as_str()) == at.as_str())?;
                (index as f64 + 0.5) / labels.len() as f64
            }
            X::Numbers { least, most, is_log } => {
                let x = at.as_f64()?;
                let x = if *is_log { x.ln() } else { x };
                (x - least) / (most - least)
            }
        };
        Some(LEFT + share * (WIDTH - LEFT - RIGHT))
    }

    /// The place of a number along y.
    fn up(&self, number: f64) -> f64 {
        let Y { least, most, is_log, .. } = self.y;
        let scaled = |number: f64| if is_log { number.max(f64::MIN_POSITIVE).ln() } else { number };
        let share = (scaled(number) - scaled(least)) / (scaled(most) - scaled(least));
        self.top + (1.0 - share.clamp(0.0, 1.0)) * self.height()
    }

    /// The axes with their numbers and names.
    fn frame(&self, chart: &Chart) -> Markup {
        let bottom = HEIGHT - BELOW;
        let right = WIDTH - RIGHT;
        let mut last = f64::NEG_INFINITY;
        let shown: Vec<(f64, &str)> = chart
            .ticks
            .iter()
            .filter_map(|(place, label)| Some((self.across(place)?, label.as_str())))
            .filter(|(x, _)| {
                let is_shown = x - last >= LABEL;
                last = if is_shown { *x } else { last };
                is_shown
            })
            .collect();
        html! {
            @for tick in &self.y.ticks {
                @let y = tenths(self.up(*tick));
                line x1=(LEFT) x2=(right) y1=(y) y2=(y) stroke="#dde1e7" {}
                text x=(LEFT - 8.0) y=(tenths(self.up(*tick) + 4.0)) text-anchor="end" fill="#49525f" { (tick_text(*tick)) }
            }
            rect x=(LEFT) y=(self.top) width=(right - LEFT) height=(tenths(self.height())) fill="none" stroke="#8d96a3" {}
            @for (x, label) in shown {
                line x1=(tenths(x)) x2=(tenths(x)) y1=(bottom) y2=(bottom + 5.0) stroke="#8d96a3" {}
                text x=(tenths(x)) y=(bottom + 19.0) text-anchor="middle" fill="#49525f" { (plain(label)) }
            }
            text x=(tenths((LEFT + right) / 2.0)) y=(HEIGHT - 14.0) text-anchor="middle" fill="#1c2430" { (chart.x_title) }
            @let middle = tenths(self.top + self.height() / 2.0);
            text x="18" y=(middle) text-anchor="middle" fill="#1c2430" transform={ "rotate(-90 18 " (middle) ")" } {
                (chart.y_title)
            }
        }
    }

    /// A series as a line: measured numbers have markers and error bars.
    fn line(&self, series: &Drawn) -> Markup {
        let places: Vec<(usize, f64, f64)> = series
            .x
            .iter()
            .zip(&series.y)
            .enumerate()
            .filter_map(|(index, (x, y))| Some((index, self.across(x)?, self.up(*y))))
            .collect();
        let path: Vec<String> =
            places.iter().map(|(_, x, y)| format!("{},{}", tenths(*x).0, tenths(*y).0)).collect();
        let width = 1.8 + 3.0 * series.under as f64;
        html! {
            polyline points=(path.join(" ")) fill="none" stroke=(colour(series)) stroke-width=(width)
                stroke-dasharray=(dashes(series)) {}
            @for (index, x, y) in places {
                @if series.is_measured() { (self.error_bar(series, index, x)) }
                @if !series.at_best {
                    @let is_open = series.published.is_some() || series.doubtful.get(index).is_some_and(|doubtful| *doubtful);
                    (mark(series, x, y, is_open))
                }
            }
        }
    }

    /// A series as the outline of a histogram: each number holds from its x to the next one.
    fn steps(&self, series: &Drawn) -> Markup {
        let bottom = HEIGHT - BELOW;
        let mut path = String::new();
        for (x, y) in series.x.iter().zip(&series.y) {
            let Some(x) = self.across(x) else { continue };
            let start = if path.is_empty() { format!("M{x:.1} {bottom}") } else { String::new() };
            path += &format!("{start}H{x:.1}V{:.1}", self.up(*y));
        }
        html! {
            path d={ (path) "V" (bottom) } stroke=(colour(series)) stroke-width="1.3" fill=(colour(series))
                fill-opacity="0.22" {}
        }
    }

    /// A series as bars, of several beside each other.
    fn bars(&self, series: &Drawn, index: usize, count: usize) -> Markup {
        let room = match &self.x {
            X::Categories(labels) => (WIDTH - LEFT - RIGHT) / labels.len().max(1) as f64,
            X::Numbers { .. } => LABEL,
        };
        let wide = 0.8 * room / count as f64;
        let bottom = HEIGHT - BELOW;
        html! {
            @for (at, (x, y)) in series.x.iter().zip(&series.y).enumerate() {
                @if let Some(x) = self.across(x) {
                    @let x = x - 0.4 * room + wide * index as f64;
                    @let y = self.up(*y);
                    rect x=(tenths(x)) y=(tenths(y)) width=(tenths(wide * 0.94)) height=(tenths(bottom - y))
                        fill=(if series.published.is_some() { "#ffffff" } else { colour(series) })
                        stroke=(colour(series)) stroke-dasharray=(dashes(series)) {}
                    (self.error_bar(series, at, x + wide / 2.0))
                }
            }
        }
    }

    fn error_bar(&self, series: &Drawn, index: usize, x: f64) -> Markup {
        let ends = series.low.get(index).zip(series.high.get(index)).filter(|(low, high)| low < high);
        html! {
            @if let Some((low, high)) = ends {
                @let (low, high) = (tenths(self.up(*low)), tenths(self.up(*high)));
                path fill="none" stroke="#1c2430" stroke-width="1" d={
                    "M" (tenths(x)) " " (low) "V" (high) "M" (tenths(x - 3.0)) " " (low) "h6M" (tenths(x - 3.0)) " " (high) "h6"
                } {}
            }
        }
    }
}

impl Y {
    fn of(chart: &Chart) -> Self {
        let is_log = chart.y_type == "log";
        let [least, most] = chart.y_ends;
        if is_log {
            let low = least.log10().floor();
            let high = most.log10().ceil().max(low + 1.0);
            let powers = (low as i32..=high as i32).map(|power| 10f64.powi(power));
            // Over less than two decades, powers of ten alone say little.
            let parts: &[f64] = if high - low <= 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let ticks: Vec<f64> =
                powers.flat_map(|power| parts.iter().map(move |part| part * power)).collect();
            let bottom = 10f64.powf(low);
            let top = 10f64.powf(high);
            let ticks = ticks.into_iter().filter(|tick| *tick <= top * 1.001).collect();
            return Self { least: bottom, most: top, is_log, ticks };
        }
        let most = if most > 0.0 { most } else { 1.0 };
        let step = step(most.max(-least) / 5.0);
        let bottom = (least.min(0.0) / step).floor() * step;
        let count = ((most - bottom) / step).ceil().max(1.0);
        let ticks = (0..=count as u32).map(|index| bottom + f64::from(index) * step).collect();
        Self { least: bottom, most: bottom + count * step, is_log, ticks }
    }
}

fn tick_text(number: f64) -> String {
    match number.abs() {
        n if n == 0.0 || (0.001..1e6).contains(&n) => {
            let text = format!("{number:.6}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{number:e}"),
    }
}

fn ends(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers.fold(None, |ends, n| {
        Some(ends.map_or((n, n), |(least, most): (f64, f64)| (least.min(n), most.max(n))))
    })
}

fn colour(series: &Drawn) -> &'static str {
    COLOURS[series.colour % COLOURS.len()]
}

/// The shapes of markers, in the order of the colours, as in the report: they tell series apart
/// without colours.
const SHAPES: [(&str, &str); 8] = [
    ("circle", "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0z"),
    ("square", "M-3 -3h6v6h-6z"),
    ("diamond", "M0 -4.4L4.4 0L0 4.4L-4.4 0z"),
    ("triangle-up", "M0 -4L4 3H-4z"),
    ("triangle-down", "M0 4L4 -3H-4z"),
    ("cross", "M-4 0h8M0 -4v8"),
    ("x", "M-3 -3l6 6M3 -3l-6 6"),
    ("star", "M-4 0h8M0 -4v8M-3 -3l6 6M3 -3l-6 6"),
];

/// The marker of a series at a place.
fn mark(series: &Drawn, x: f64, y: f64, is_open: bool) -> Markup {
    let named = SHAPES.iter().find(|(name, _)| series.symbol == Some(name));
    let (_, shape) = named.unwrap_or(&SHAPES[series.colour % SHAPES.len()]);
    let scale =
        if series.under > 0 { format!(" scale({})", 1.0 + 0.5 * series.under as f64) } else { String::new() };
    let place = format!("translate({} {}){scale}", tenths(x).0, tenths(y).0);
    html! {
        path d=(shape) transform=(place) stroke=(colour(series)) stroke-width="1.4"
            fill=(if is_open { "#ffffff" } else { colour(series) }) {}
    }
}

/// Published numbers are dashed and link limits dotted, as in the report.
fn dashes(series: &Drawn) -> &'static str {
    match (series.published.is_some(), series.at_best) {
        (true, _) => "6 4",
        (_, true) => "2 3",
        _ => "none",
    }
}

fn tenths(number: f64) -> PreEscaped<String> {
    PreEscaped(format!("{number:.1}"))
}
