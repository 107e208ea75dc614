//! Every line of a chart can be seen: many lines are drawn in several charts with the same scales
//! (small multiples, Tufte 1983), and a line that others nearly cover is wider than these.

use serde_json::Value;

use super::chart::{Chart, Drawn, Key};
use crate::list::{distinct, grouped};
use crate::value;

/// The most measured lines of one chart.
const LINES_MAX: usize = 6;
/// Two lines nearly cover each other if they are this share of the chart's height apart: about the
/// width of a line.
const NEAR: f64 = 0.015;

/// The chart, or, if it has many lines, a chart for each combination of their first axes.
pub(crate) fn of(chart: Chart) -> Vec<Chart> {
    if chart.kind != "lines" {
        return vec![chart];
    }
    let lines = chart.series.iter().filter(|line| line.is_measured());
    let keys: Vec<Key> = lines.map(|line| line.key.clone()).collect();
    let mut charts = if keys.len() > LINES_MAX { split(chart, &keys) } else { vec![chart] };
    charts.iter_mut().for_each(widen);
    charts
}

/// A chart for each combination of the first axes, as few axes as leave at most [`LINES_MAX`] lines
/// in some chart, and two lines: charts of one line would compare nothing.
fn split(mut chart: Chart, keys: &[Key]) -> Vec<Chart> {
    let all = keys.iter().map(Vec::len).min().unwrap_or_default();
    let largest = |axes: &usize| {
        let charts = grouped(keys.iter().map(|key| (&key[..*axes], ())));
        charts.into_iter().map(|(_, lines)| lines.len()).max().unwrap_or_default()
    };
    let compares = |axes: &usize| largest(axes) > 1;
    let axes = (1..all).filter(compares).find(|axes| largest(axes) <= LINES_MAX);
    let Some(axes) = axes.or_else(|| (1..all).rfind(compares)) else { return vec![chart] };
    recolour(&mut chart.series, axes);
    let firsts = distinct(keys.iter().map(|key| &key[..axes]));
    firsts.into_iter().zip(1..).map(|(first, number)| part(&chart, first, number)).collect()
}

/// Gives lines that differ only in the first axes one colour, in all charts.
fn recolour(lines: &mut [Drawn], axes: usize) {
    let rest = |line: &Drawn| line.key.get(axes..).map(<[_]>::to_vec);
    let known: Vec<_> = lines.iter().map(|line| (rest(line), line.colour)).collect();
    let first = |line: &Drawn| {
        let own = rest(line);
        known
            .iter()
            .find(|(other, _)| own.is_some() && *other == own)
            .map_or(line.colour, |(_, colour)| *colour)
    };
    let colours: Vec<usize> = lines.iter().map(first).collect();
    let used = distinct(colours.iter().copied());
    for (line, colour) in lines.iter_mut().zip(colours) {
        line.colour = used.iter().position(|other| *other == colour).unwrap_or_default();
    }
}

/// The lines whose first axes have these values.
fn part(chart: &Chart, first: &[(String, Value)], number: u32) -> Chart {
    let words = first.iter().filter(|(_, at)| !at.is_null()).map(|(axis, at)| value::word(axis, at));
    let label = words.collect::<Vec<_>>().join(" ");
    chart.part(format!("{}-{number}", chart.id), label, |key| key.starts_with(first))
}

/// Counts for each measured line the later ones that nearly cover it.
fn widen(chart: &mut Chart) {
    let is_log = chart.y_type == "log";
    let scaled = |y: f64| if is_log { y.ln() } else { y };
    let [least, most] = chart.y_ends.map(scaled);
    let height = most - if is_log { least } else { least.min(0.0) };
    let covers = |later: &Drawn, line: &Drawn| {
        let other = |x: &Value| Some(later.y[later.x.iter().position(|other| other == x)?]);
        let shared: Vec<f64> = line
            .x
            .iter()
            .zip(&line.y)
            .filter_map(|(x, y)| Some((scaled(other(x)?) - scaled(*y)).abs()))
            .collect();
        let near = shared.iter().filter(|apart| **apart <= NEAR * height).count();
        later.is_measured() && line.is_measured() && 2 * near > shared.len()
    };
    for index in 0..chart.series.len() {
        let line = &chart.series[index];
        let later = &chart.series[index + 1..];
        chart.series[index].under = later.iter().filter(|later| covers(later, line)).count();
    }
}

#[cfg(test)]
mod tests {
    use measure::figure::{Figure, FigureKind};
    use measure::record::Point;
    use serde_json::json;

    use super::*;
    use crate::series_table::SeriesTable;

    /// The charts of medians over size, with lines for services and operations.
    fn charts(medians_ns: impl Iterator<Item = (&'static str, &'static str, u64, u64)>) -> Vec<Chart> {
        let point = |(id, (service, operation, size, p50_ns)): (u64, (&str, &str, u64, u64))| {
            let point = json!({
                "id": id, "experiment": "e", "pattern": "ping-pong", "status": "measured", "repetition": 0, "wall_ns": 1,
                "axes": {"service": service, "operation": operation, "size_bytes": size},
                "latency": {
                    "kind": "rtt_half", "count": 3, "min_ns": p50_ns, "p10_ns": p50_ns, "p50_ns": p50_ns, "p90_ns": p50_ns,
                    "p99_ns": p50_ns, "p999_ns": p50_ns, "max_ns": p50_ns, "mean_ns": p50_ns,
                    "mavericks": {"rule": "> 2 x mean", "count": 0},
                },
            });
            serde_json::from_value(point).unwrap()
        };
        let points: Vec<Point> = (0..).zip(medians_ns).map(point).collect();
        let figure = Figure {
            experiments: vec!["e".to_owned()],
            x: Some("size_bytes".to_owned()),
            y: Some("latency.p50_ns".to_owned()),
            series: ["service", "operation"].map(str::to_owned).into(),
            ..Figure::new(FigureKind::Lines, "L")
        };
        of(Chart::new("f".to_owned(), &figure, &SeriesTable::new(&figure, crate::known(&points)).unwrap()))
    }

    #[test]
    fn many_lines_are_drawn_in_charts_with_the_same_scale() {
        let operations = ["send", "write", "read", "send_imm"];
        let lines = |services: &'static [&'static str]| {
            services.iter().flat_map(move |service| operations.map(|operation| (*service, operation)))
        };
        let medians = |(service, operation): (&'static str, &'static str)| {
            [(64, 100), (4096, 300)]
                .map(|(size, ns)| (service, operation, size, ns * (operation.len() as u64)))
        };
        let two = charts(lines(&["RC", "UC"]).flat_map(medians));
        let shown = |charts: &[Chart]| -> Vec<(String, String, usize)> {
            charts.iter().map(|chart| (chart.id.clone(), chart.label.clone(), chart.series.len())).collect()
        };
        let expected = [("f-1", "RC", 4), ("f-2", "UC", 4)];
        assert_eq!(shown(&two), expected.map(|(id, label, lines)| (id.to_owned(), label.to_owned(), lines)));
        assert_eq!((two[0].y_ends, two[1].y_ends), ([400.0, 2400.0], [400.0, 2400.0]));
        let colours = |chart: &Chart| chart.series.iter().map(|line| line.colour).collect::<Vec<_>>();
        assert_eq!([colours(&two[0]), colours(&two[1])], [[0, 1, 2, 3], [0, 1, 2, 3]]);
        assert_eq!(shown(&charts(lines(&["RC"]).flat_map(medians))), [("f".to_owned(), String::new(), 4)]);
        // A chart that lacks the first operation has the colours of the others.
        let lacking = charts(lines(&["RC", "UC"]).filter(|line| *line != ("UC", "send")).flat_map(medians));
        assert_eq!(colours(&lacking[1]), [1, 2, 3]);
        // Seven values of the only axis that varies are one chart.
        let services = ["A", "B", "C", "D", "E", "F", "G"];
        let one = services.into_iter().map(|service| (service, "send", 64, 100));
        assert_eq!(shown(&charts(one)), [("f".to_owned(), String::new(), 7)]);
    }

    #[test]
    fn a_line_below_others_is_wider() {
        let medians = [("RC", 1000, 9000), ("UC", 1002, 9000), ("UD", 1001, 8990), ("XRC", 3000, 20_000)];
        let lines = medians.into_iter().flat_map(|(service, small, large)| {
            [(service, "send", 64, small), (service, "send", 4096, large)]
        });
        let under: Vec<usize> = charts(lines)[0].series.iter().map(|line| line.under).collect();
        assert_eq!(under, [2, 1, 0, 0]);
        // A shorter line covers a part.
        let part = [("RC", "send", 64, 1000), ("RC", "send", 4096, 9000), ("UD", "send", 64, 1000)];
        let under: Vec<usize> = charts(part.into_iter())[0].series.iter().map(|line| line.under).collect();
        assert_eq!(under, [1, 0]);
    }
}
