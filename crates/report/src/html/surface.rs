//! A surface over two axes in a perspective view. It is drawn here and not by the page's script,
//! which draws in two dimensions only.

use maud::{Markup, html};
use measure::figure::Figure;
use serde_json::Value;

use super::chart::{Chart, x_label, x_title, y_name, y_title};
use super::table::{list, not_measured, nothing};
use crate::error::Error;
use crate::series_table::{Cell, Number, Series, SeriesTable};
use crate::{Points, unit, value};

/// The view, in units of the drawing.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 560.0;
/// Half of the floor's width and depth as they appear in the view, and its height.
const ACROSS: f64 = 270.0;
const DEEP: f64 = 150.0;
const HIGH: f64 = 160.0;
/// The middle of the floor.
const MIDDLE: (f64, f64) = (390.0, 350.0);

/// Colours from the smallest number to the largest: viridis (van der Walt and Smith 2015), which is
/// as even in grey.
const COLOURS: [[f64; 3]; 5] =
    [[68.0, 1.0, 84.0], [59.0, 82.0, 139.0], [33.0, 145.0, 140.0], [94.0, 201.0, 98.0], [253.0, 231.0, 37.0]];

/// The numbers of a surface.
pub(crate) struct Tables {
    heights: SeriesTable,
    /// The numbers that are printed at their places where they are above a share, and the share.
    marks: Option<(SeriesTable, f64)>,
}

impl Tables {
    /// The numbers of a figure.
    pub(crate) fn of(figure: &Figure, points: Points<'_>) -> Result<Self, Error> {
        let heights = SeriesTable::with_links(figure, points)?;
        let marks = figure.marked.as_ref().map(|marked| {
            let figure = Figure { y: Some(marked.y.clone()), unit: None, ..figure.clone() };
            Ok::<_, Error>((SeriesTable::with_links(&figure, points)?, marked.above))
        });
        Ok(Self { heights, marks: marks.transpose()? })
    }

    /// The heights, and the marks.
    pub(super) fn all(&self) -> impl Iterator<Item = &SeriesTable> {
        [&self.heights].into_iter().chain(self.marks.as_ref().map(|(table, _)| table))
    }

    /// Draws the heights over x and the first axis of their series, with the marks, each drawing
    /// with its numbers. If more axes distinguish series, each combination of their values has a
    /// drawing, all with the same scale.
    pub(crate) fn drawings(&self, id: &str, figure: &Figure) -> Vec<(Markup, Chart)> {
        let marks = self.marks.as_ref().map(|(table, above)| (table, *above));
        let mut chart = Chart::new(String::new(), figure, &self.heights);
        if let Some((marks, _)) = marks {
            chart.set_marks(marks);
        }
        let drawing = |(surface, number): (Surface<'_>, u32)| {
            let id = format!("{id}-plot-{number}");
            let has = |key: &[(String, Value)]| key.get(1..) == Some(surface.others);
            (surface.drawing(&id, marks), chart.part(id, surface.others_in_words(), has))
        };
        Surface::all(&self.heights).into_iter().zip(1..).map(drawing).collect()
    }

    /// The drawings with their description, and the numbers of each.
    pub(super) fn render(&self, id: &str, figure: &Figure) -> (Markup, Vec<Chart>) {
        let (drawings, charts): (Vec<Markup>, Vec<Chart>) = self.drawings(id, figure).into_iter().unzip();
        let is_doubtful = self.heights.numbers().any(|number| !number.doubts.is_empty());
        let html = html! {
            @for drawing in &drawings { (drawing) }
            @if drawings.is_empty() { (nothing()) }
            @else {
                p class="hint" {
                    "Height and colour: " (y_title(&self.heights)) "."
                    @if let Some((marks, above)) = &self.marks {
                        " In red: " (y_name(marks)) ", above " (marks.scale.apply(*above)) " "
                        (marks.scale.label) "."
                    }
                    @if is_doubtful { " Open circles: unstable, or some repetitions failed." }
                }
            }
            (list(not_measured(&self.heights)))
        };
        (html, charts)
    }
}

struct Surface<'a> {
    series_table: &'a SeriesTable,
    /// The series in the order of their first axis.
    series: Vec<&'a Series>,
    /// Their other axes, which are equal.
    others: &'a [(String, Value)],
    least: f64,
    largest: f64,
    /// The height of the frame, and the steps of its scale.
    top: f64,
    step: f64,
}

impl<'a> Surface<'a> {
    /// A surface for each combination of the other axes; none where there is no number.
    fn all(series_table: &'a SeriesTable) -> Vec<Self> {
        let medians = || series_table.numbers().map(|number| number.median);
        let (Some(least), Some(largest)) = (medians().reduce(f64::min), medians().reduce(f64::max)) else {
            return Vec::new();
        };
        let step = unit::step(largest / 5.0);
        let top = (largest / step).ceil().max(1.0) * step;
        let mut all: Vec<Self> = Vec::new();
        for series in &series_table.series {
            let Some((_, others)) = series.key.split_first() else { continue };
            match all.iter_mut().find(|surface| surface.others == others) {
                Some(surface) => surface.series.push(series),
                None => {
                    let series = vec![series];
                    all.push(Self { series_table, series, others, least, largest, top, step });
                }
            }
        }
        all.retain(|surface| surface.series.iter().any(|series| series.has_numbers()));
        for surface in &mut all {
            surface.series.sort_by(|a, b| value::order(key(a), key(b)));
        }
        all
    }

    /// The title, after the axes that distinguish it from the other drawings.
    fn title(&self) -> String {
        let others = self.others_in_words();
        let colon = if others.is_empty() { "" } else { ": " };
        format!("{others}{colon}{}", y_title(self.series_table))
    }

    fn others_in_words(&self) -> String {
        let other = |(axis, at): &(String, Value)| format!("{} {}", x_title(axis), value::text(at));
        self.others.iter().map(other).collect::<Vec<_>>().join(", ")
    }

    fn drawing(&self, id: &str, marks: Option<(&SeriesTable, f64)>) -> Markup {
        html! {
            svg class="surface" id=(id) width=(WIDTH) height=(HEIGHT) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img"
                aria-label={ (self.title()) "; the numbers are in the tables below" } {
                "\n"
                (self.frame())
                (self.quads())
                (self.corners(marks))
            }
        }
    }

    /// The position in the view of a place on the floor, from 0 to 1 along each axis, at a height.
    fn seen(&self, along: f64, back: f64, number: f64) -> (f64, f64) {
        let (x, y) = MIDDLE;
        (x + ACROSS * (along - back), y + DEEP * (along + back - 1.0) - HIGH * (number / self.top).max(0.0))
    }

    /// A value's place along its axis. Values are evenly spaced, because most axes double.
    fn place(index: usize, count: usize) -> f64 {
        index as f64 / (count.max(2) - 1) as f64
    }

    /// The position in the view of a number.
    fn corner(&self, x: usize, series: usize) -> Option<(&'a Number, (f64, f64))> {
        let number = self.series.get(series)?.cells.get(x).and_then(Cell::number)?;
        let along = Self::place(x, self.series_table.xs.len());
        let back = Self::place(series, self.series.len());
        Some((number, self.seen(along, back, number.median)))
    }

    /// The floor, the walls behind it with a scale, and the axes.
    fn frame(&self) -> Markup {
        let line = |class: &str, points: &[(f64, f64)]| {
            html! { polyline class=(class) points=(path(points)) {} "\n" }
        };
        let text = |(x, y): (f64, f64), anchor: &str, class: &str, words: &str| {
            html! {
                text class=(class) x=(tenths(x)) y=(tenths(y)) text-anchor=(anchor) { (words) } "\n"
            }
        };
        let seen = |along: f64, back: f64, height: f64, by: (f64, f64)| {
            let (x, y) = self.seen(along, back, height);
            (x + by.0, y + by.1)
        };
        let [left, behind, right, front] =
            [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (1.0, 1.0)].map(|(along, back)| self.seen(along, back, 0.0));
        let wall = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0)];
        let steps = (self.top / self.step).round() as u32;
        let heights: Vec<f64> = (1..=steps).map(|step| f64::from(step) * self.step).collect();
        let xs = &self.series_table.xs;
        let x = &self.series_table.x;
        let axis = self.series.first().and_then(|series| series.key.first()).map(|(axis, _)| axis);
        html! {
            (line("edge", &[left, behind, right, front, left]))
            @for height in &heights {
                (line("rule", &wall.map(|(along, back)| self.seen(along, back, *height))))
            }
            (line("edge", &[left, self.seen(0.0, 1.0, self.top)]))
            @for height in [0.0].iter().chain(&heights) {
                (text(seen(0.0, 1.0, *height, (-6.0, 4.0)), "end", "tick", &number(*height)))
            }
            (text((10.0, 18.0), "start", "name", &self.title()))
            @for (index, at) in xs.iter().enumerate() {
                (text(
                    seen(Self::place(index, xs.len()), 1.0, 0.0, (-4.0, 15.0)),
                    "end",
                    "tick",
                    &x_label(x, at),
                ))
            }
            (text(seen(0.5, 1.0, 0.0, (-60.0, 42.0)), "end", "name", &x_title(x)))
            @if let Some(axis) = axis {
                @for (index, series) in self.series.iter().enumerate() {
                    (text(
                        seen(1.0, Self::place(index, self.series.len()), 0.0, (6.0, 15.0)),
                        "start",
                        "tick",
                        &x_label(axis, key(series)),
                    ))
                }
                (text(seen(1.0, 0.5, 0.0, (60.0, 42.0)), "start", "name", &x_title(axis)))
            }
        }
    }

    /// The faces between four numbers, the farthest first.
    fn quads(&self) -> Markup {
        let places = self.series_table.xs.len().saturating_sub(1);
        let mut quads: Vec<(usize, usize)> = (0..self.series.len().saturating_sub(1))
            .flat_map(|series| (0..places).map(move |x| (x, series)))
            .collect();
        let depth = |(x, series): &(usize, usize)| {
            Self::place(*x, self.series_table.xs.len()) + Self::place(*series, self.series.len())
        };
        quads.sort_by(|a, b| depth(a).total_cmp(&depth(b)));
        let corners = |(x, series): (usize, usize)| {
            let around = [(0, 0), (1, 0), (1, 1), (0, 1)];
            let corners = around.map(|(along, back)| self.corner(x + along, series + back));
            let [Some(a), Some(b), Some(c), Some(d)] = corners else { return None };
            Some([a, b, c, d])
        };
        html! {
            @for corners in quads.into_iter().filter_map(corners) {
                @let mean = corners.iter().map(|(number, _)| number.median).sum::<f64>() / 4.0;
                @let points = path(&corners.map(|(_, place)| place));
                polygon class="quad" points=(points) fill=(self.colour(mean)) {}
                "\n"
            }
        }
    }

    /// The numbers themselves, and the marks at them.
    fn corners(&self, marks: Option<(&SeriesTable, f64)>) -> Markup {
        html! {
            @for series in 0..self.series.len() {
                @for x in 0..self.series_table.xs.len() {
                    @if let Some((number, place)) = self.corner(x, series) {
                        (self.mark(x, series, number, place, marks))
                    }
                }
            }
        }
    }

    fn mark(
        &self,
        x: usize,
        series: usize,
        number: &Number,
        (left, top): (f64, f64),
        marks: Option<(&SeriesTable, f64)>,
    ) -> Markup {
        let at = &self.series_table.xs[x];
        let own = self.series[series];
        // The marks belong to the same points, and so have the same x.
        let mark = marks.and_then(|(marks, above)| {
            let twin = marks.series.iter().find(|twin| twin.key == own.key)?;
            let share = twin.cells[x].number()?.median;
            Some((share, share > marks.scale.apply(above), marks.scale.label))
        });
        let x_title = x_title(&self.series_table.x);
        let median = format!("{:.3} {}", number.median, self.series_table.scale.label);
        let class = if number.doubts.is_empty() { "corner" } else { "corner open" };
        html! {
            circle class=(class) cx=(tenths(left)) cy=(tenths(top)) r="3" {
                title {
                    (x_title) " " (value::text(at)) ", " (own.label) ": " (median)
                    @if let Some((share, _, unit)) = mark { "; " (format!("{share:.2} {unit}")) }
                }
            }
            "\n"
            @if let Some((share, true, unit)) = mark {
                text class="mark" x=(tenths(left)) y=(tenths(top - 7.0)) text-anchor="middle" {
                    (format!("{share:.0} {unit}"))
                }
                "\n"
            }
        }
    }

    fn colour(&self, number: f64) -> String {
        let range = self.largest - self.least;
        let share = if range > 0.0 { ((number - self.least) / range).clamp(0.0, 1.0) } else { 0.0 };
        let place = share * (COLOURS.len() - 1) as f64;
        let below = (place as usize).min(COLOURS.len() - 2);
        let part = place - below as f64;
        let [r, g, b] = [0, 1, 2].map(|channel| {
            (COLOURS[below][channel] * (1.0 - part) + COLOURS[below + 1][channel] * part).round() as u8
        });
        format!("rgb({r},{g},{b})")
    }
}

/// The value of the axis that distinguishes a series.
fn key(series: &Series) -> &Value {
    &series.key[0].1
}

/// A coordinate in the drawing, to a tenth of its unit.
fn tenths(place: f64) -> String {
    format!("{place:.1}")
}

/// Positions in the drawing, one after the other.
fn path(places: &[(f64, f64)]) -> String {
    places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// A number of a scale, without the errors of floating point.
fn number(height: f64) -> String {
    format!("{}", (height * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    use measure::figure::{FigureKind, Marked};
    use measure::record::Point;
    use serde_json::json;

    fn point(id: u64, rate_hz: u64, values: u64, p50_ns: u64, missed: u64) -> Point {
        let value = json!({
            "id": id, "experiment": "e", "pattern": "pipeline", "status": "measured", "repetition": 0, "wall_ns": 1,
            "axes": {"rate_hz": rate_hz, "values": values},
            "counters": {"steps_missed": missed, "messages_received": 100 - missed},
            "latency": {
                "kind": "one_way", "count": 3, "min_ns": 1, "p10_ns": 1, "p50_ns": p50_ns, "p90_ns": 9000, "p99_ns": 9000,
                "p999_ns": 9000, "max_ns": 9000, "mean_ns": 830.0, "mavericks": {"rule": "> 2 x mean", "count": 0},
            },
        });
        serde_json::from_value(value).unwrap()
    }

    /// The surface of median latencies, with its numbers.
    fn rendered(points: &[Point], marked: Option<Marked>) -> (String, Vec<Chart>) {
        let figure = Figure {
            experiments: vec!["e".to_owned()],
            x: Some("rate_hz".to_owned()),
            y: Some("latency.p50_ns".to_owned()),
            series: vec!["values".to_owned()],
            marked,
            ..Figure::new(FigureKind::Surface, "S")
        };
        let (html, charts) = Tables::of(&figure, crate::known(points)).unwrap().render("f", &figure);
        (html.into_string(), charts)
    }

    /// The texts and positions of texts and circles.
    fn places(drawn: &str, element: &str, attributes: [&str; 2]) -> Vec<(String, [f64; 2])> {
        let all = drawn.lines().filter(|line| line.starts_with(&format!("<{element} ")));
        let number = |line: &str, name: &str| {
            let rest = line.split(&format!(" {name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let words = |line: &str| {
            line.trim_end_matches("</title></circle>")
                .trim_end_matches("</text>")
                .rsplit('>')
                .next()
                .unwrap()
                .to_owned()
        };
        all.map(|line| (words(line), attributes.map(|name| number(line, name)))).collect()
    }

    #[test]
    fn every_number_is_at_its_place_and_shares_that_are_large_stand_above_it() {
        // The axis of the series has no order.
        let points: Vec<Point> =
            [(1000, 8, 2000, 0), (2000, 8, 1000, 30), (1000, 1, 1000, 10), (2000, 1, 500, 11)]
                .into_iter()
                .zip(0..)
                .map(|((rate_hz, values, ns, missed), id)| point(id, rate_hz, values, ns, missed))
                .collect();
        let marked = Marked { y: "pipeline.missed_share".to_owned(), above: 0.1 };
        let (drawn, _) = rendered(&points, Some(marked));
        assert_eq!(drawn.matches("<polygon").count(), 1, "{drawn}");
        let corners = places(&drawn, "circle", ["cx", "cy"]);
        let corner = |words: &str| corners.iter().find(|(own, _)| own.starts_with(words)).unwrap().1;
        let [left, behind, right, front] = [
            "rate [Hz] 1000, values 8:",
            "rate [Hz] 1000, values 1:",
            "rate [Hz] 2000, values 1:",
            "rate [Hz] 2000, values 8:",
        ]
        .map(corner);
        assert!(left[0] < behind[0] && behind[0] == front[0] && front[0] < right[0], "{corners:?}");
        assert!(behind[1] < front[1], "{corners:?}");
        // At one depth; the larger number is more than twice as high.
        assert!(left[1] < right[1], "{corners:?}");
        let all: Vec<_> = places(&drawn, "text", ["x", "y"]);
        let marks: Vec<&(String, [f64; 2])> = all.iter().filter(|(words, _)| words.ends_with('%')).collect();
        assert_eq!(
            marks.iter().map(|(words, _)| words.as_str()).collect::<Vec<_>>(),
            ["11 %", "30 %"],
            "10 is not above"
        );
        assert_eq!(marks[1].1, [front[0], ((front[1] - 7.0) * 10.0).round() / 10.0]);
        assert!(drawn.contains("In red: the share of steps that were missed, above 10 %."), "{drawn}");
        assert!(
            corners.iter().any(|(words, _)| words == "rate [Hz] 2000, values 8: 1000.000 ns; 30.00 %"),
            "{corners:?}"
        );
    }

    #[test]
    fn what_was_not_measured_is_no_surface_and_is_said() {
        assert!(rendered(&[], None).0.contains("Nothing was measured"));
        let mut points = [(1000, 1), (2000, 1), (1000, 8), (2000, 8)]
            .map(|(rate_hz, values)| point(0, rate_hz, values, 0, 0));
        for point in &mut points[2..] {
            point.status = measure::record::Status::NotMeasured { reason: "no <way>".to_owned() };
        }
        let (drawn, _) = rendered(&points, None);
        assert!(!drawn.contains("<polygon") && drawn.matches("<circle").count() == 2, "{drawn}");
        assert!(!drawn.contains("NaN") && drawn.contains("no &lt;way&gt;"), "{drawn}");
        let (one, _) = rendered(&points[..1], None);
        assert!(one.matches("<circle").count() == 1 && !one.contains("NaN"), "{one}");
    }

    /// Points that differ in an axis that the figure does not name are drawn separately, with the
    /// same scale.
    #[test]
    fn other_axes_have_drawings_of_their_own() {
        let mut points = Vec::new();
        for (service, ns) in [("RC", 4000), ("UD", 1000)] {
            for (rate_hz, values) in [(1000, 8), (2000, 8), (1000, 1), (2000, 1)] {
                let mut point = point(points.len() as u64, rate_hz, values, ns, 0);
                point.axes.insert("service".to_owned(), json!(service));
                points.push(point);
            }
        }
        let (drawn, charts) = rendered(&points, None);
        let labels: Vec<&str> = charts.iter().map(|chart| chart.label.as_str()).collect();
        assert_eq!(labels, ["service RC", "service UD"]);
        assert!(charts.iter().all(|chart| chart.series.len() == 2), "{charts:?}");
        let parts: Vec<&str> = drawn.split("<svg").skip(1).collect();
        assert_eq!(parts.len(), 2, "{drawn}");
        for (part, service) in parts.iter().zip(["RC", "UD"]) {
            assert!(part.contains(&format!("aria-label=\"service {service}: ")), "{part}");
            assert_eq!((part.matches("<circle").count(), part.matches("<polygon").count()), (4, 1), "{part}");
        }
        let top = |part: &str| places(part, "circle", ["cx", "cy"])[0].1[1];
        assert!(top(parts[0]) < top(parts[1]), "4 us are above 1 us: {drawn}");
    }

    #[test]
    fn scales_have_a_few_round_steps() {
        for (largest, expected) in [
            (4.9, 1.0),
            (5.0, 1.0),
            (5.1, 2.0),
            (0.33, 0.1),
            (12.0, 5.0),
            (999.0, 200.0),
            (1e5, 2e4),
            (0.0, 1.0),
        ] {
            let step = unit::step(largest / 5.0);
            assert!((step / expected - 1.0).abs() < 1e-9, "{largest}: {step}");
        }
        assert_eq!([0.30000000000000004, 20.0].map(number), ["0.3", "20"]);
    }
}
