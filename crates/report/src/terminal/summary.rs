//! A table for each experiment, printed after the last point: a row for each combination of axes,
//! with the medians over its repetitions.

use std::collections::BTreeSet;

use measure::figure::Unit;
use measure::placement;
use measure::presentation::Patterns;
use measure::record::{Axes, Device, Point, Status};
use measure::table::View;
use measure::text::plain;

use super::banner::{self, Key};
use super::below::Below;
use super::findings::rule;
use super::spread::Spread;
use crate::error::Error;
use crate::link_limit::LinkLimit;
use crate::settings::setting;
use crate::table::{self, Heading};
use crate::unit::Scale;
use crate::value;

/// Tables of medians, printed when all points have ended.
#[derive(Debug)]
pub struct Summary {
    patterns: Patterns,
    bandwidth: Unit,
    line: Option<usize>,
    points: Vec<Point>,
}

/// Repetitions of a row whose lines below it are printed.
const UNDER_MAX: usize = 1;
/// Rows of a table. Longer tables are too long for a terminal.
const ROWS_MAX: usize = 40;

impl Summary {
    /// Starts a summary with throughputs in a unit of bandwidth; `line` as in
    /// [`Stream::new`](super::Stream::new).
    pub fn new(patterns: Patterns, bandwidth: Unit, line: Option<usize>) -> Result<Self, Error> {
        Scale::of(Some(bandwidth), "throughput.bytes_per_s", patterns)?;
        Ok(Self { patterns, bandwidth, line, points: Vec::new() })
    }

    /// Adds a point that has ended.
    pub fn see(&mut self, point: &Point) {
        // The distributions are large, and no column needs them.
        let mut point = point.clone();
        point.ends.iter_mut().for_each(|end| end.histogram = None);
        point.kinds.iter_mut().for_each(|timed| timed.histogram = None);
        self.points.push(point);
    }

    /// Returns the tables, and what explains them.
    pub fn finish(mut self, devices: &[Device]) -> String {
        // Later points may show that earlier ones ran on CPUs far from each other.
        placement::mark(&mut self.points);
        let mut experiments: Vec<Vec<&Point>> = Vec::new();
        for point in &self.points {
            match experiments.iter_mut().find(|points| points[0].experiment == point.experiment) {
                Some(points) => points.push(point),
                None => experiments.push(vec![point]),
            }
        }
        let mut below = Below::default();
        let mut out = String::new();
        for points in &experiments {
            points.iter().for_each(|point| below.see(point));
            out += &self.experiment(points, devices, &mut below);
        }
        out + &below.finish()
    }

    fn experiment(&self, points: &[&Point], devices: &[Device], below: &mut Below) -> String {
        let mut cases: Vec<Vec<&Point>> = Vec::new();
        for point in points.iter().copied() {
            match cases.iter_mut().find(|case| case[0].axes == point.axes) {
                Some(case) => case.push(point),
                None => cases.push(vec![point]),
            }
        }
        let shown = self.patterns.of(&points[0].pattern);
        let with_row: Vec<&Vec<&Point>> =
            cases.iter().filter(|case| measured(case).next().is_some()).collect();
        let leading = Leading::of(&with_row, |axis| shown.has_column(axis));
        let line = self.line.map(|line| line.saturating_sub(leading.width()));
        // The rows below each heading: rows with the same columns come together.
        let mut headings: Vec<(Heading, String)> = Vec::new();
        let mut rows = 0;
        for case in &with_row {
            let measured: Vec<&Point> = measured(case).collect();
            let Some(table) = self.patterns.table(measured[0]) else { continue };
            rows += 1;
            if rows > ROWS_MAX {
                continue;
            }
            let limit = LinkLimit::of(measured[0], devices, self.patterns);
            let view = |point| View {
                point,
                bandwidth: self.bandwidth,
                line,
                has_link: limit.is_some(),
                of_link: limit.as_ref().and_then(|limit| limit.share(point)),
            };
            let views: Vec<View<'_>> = measured.iter().map(|point| view(point)).collect();
            let heading = Heading::of(table, &views[0]);
            let index = headings.iter().position(|(known, _)| *known == heading).unwrap_or_else(|| {
                headings.push((heading, String::new()));
                headings.len() - 1
            });
            let out = &mut headings[index].1;
            below.note(table, &views[0], limit.as_ref());
            let marks = banner::marks_of(&measured);
            let under: BTreeSet<String> = views.iter().map(|view| table::below(table, view)).collect();
            for (index, cells) in table::lines(table, &views, self.patterns).into_iter().enumerate() {
                *out += &match index {
                    0 => format!("{}{cells}{marks}\n", leading.cells(&measured[0].axes)),
                    _ => format!("{}{cells}\n", " ".repeat(leading.width())),
                };
            }
            // Lines below rows; those of repetitions often differ only in numbers.
            *out += &under.into_iter().take(UNDER_MAX).collect::<String>();
        }
        let first = with_row.first().and_then(|case| measured(case).next());
        let mut out = first.map_or_else(String::new, |first| self.banner(&cases, &leading, first));
        let title = headings.first().map(|(heading, _)| heading.title.clone());
        for (heading, rows) in headings {
            // The banner has the first title.
            let own = title.as_ref().filter(|title| **title != heading.title);
            out += &own.map_or_else(String::new, |_| format!(" {}:\n", heading.title));
            out += &(leading.heads() + &heading.columns + &rows);
        }
        let hidden = rows.saturating_sub(ROWS_MAX);
        if hidden > 0 {
            out +=
                &format!(" and {hidden} more rows: the report has them, and --verbose prints all points\n");
        }
        out + &without_numbers(points)
    }

    /// The banner of an experiment.
    fn banner(&self, cases: &[Vec<&Point>], leading: &Leading, first: &Point) -> String {
        let mut key = Key::of(first, self.patterns);
        key.axes.retain(|axis, _| !leading.has(axis) && !leading.shared.contains_key(axis));
        let partial = leading.partial(cases);
        let text = key.banner(self.patterns.table(first), first, self.patterns);
        let counts = || cases.iter().map(|case| measured(case).count()).filter(|count| *count > 0);
        let repetitions = match (counts().min(), counts().max()) {
            (Some(least), Some(most)) if most > 1 => {
                let repetitions = if least == most { most.to_string() } else { format!("{least} to {most}") };
                format!(
                    " medians over {repetitions} repetitions; minima, maxima and counts are over all of them\n"
                )
            }
            _ => String::new(),
        };
        let rule = rule();
        let body = text.strip_suffix(&format!("{rule}\n")).unwrap_or(&text);
        format!("{body}{partial}{repetitions}{rule}\n")
    }
}

/// The axes in which the cases of an experiment differ and for which its table has no column: they
/// are columns before those of the table.
struct Leading {
    /// The name and the width of each.
    axes: Vec<(String, usize)>,
    /// Axes with one value that only some cases have, such as the service beside sockets. They are
    /// no columns where the other axes tell the cases apart.
    shared: Axes,
}

impl Leading {
    fn of(cases: &[&Vec<&Point>], has_column: impl Fn(&str) -> bool) -> Self {
        let names: BTreeSet<&String> = cases.iter().flat_map(|case| case[0].axes.keys()).collect();
        let values = |name: &str| -> BTreeSet<String> {
            cases.iter().filter_map(|case| case[0].axes.get(name)).map(ToString::to_string).collect()
        };
        let all_have = |name: &str| cases.iter().all(|case| case[0].axes.contains_key(name));
        let columns: Vec<&String> = names.iter().copied().filter(|name| has_column(name)).collect();
        let others = names.into_iter().filter(|name| !has_column(name));
        let differing = others.filter(|name| values(name).len() > 1 || !all_have(name));
        let parts: (Vec<&String>, Vec<&String>) = differing.partition(|name| values(name).len() > 1);
        let mut own = parts.0;
        let mut partial = parts.1;
        let cells = |case: &Vec<&Point>| -> Vec<String> {
            columns.iter().chain(&own).map(|name| cell(&case[0].axes, name)).collect()
        };
        let told_apart: BTreeSet<Vec<String>> = cases.iter().map(|case| cells(case)).collect();
        if told_apart.len() < cases.len() {
            own.append(&mut partial);
            own.sort_unstable();
        }
        let width = |name: &str| {
            let cells = cases.iter().map(|case| cell(&case[0].axes, name).chars().count());
            cells.chain([name.len()]).max().unwrap_or_default()
        };
        let shared = |name: &String| cases.iter().find_map(|case| case[0].axes.get_key_value(name));
        Self {
            shared: partial
                .into_iter()
                .filter_map(shared)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            axes: own.into_iter().map(|name| (name.clone(), width(name))).collect(),
        }
    }

    /// Lines with the axes that only some cases have, under the endpoints of these cases.
    fn partial(&self, cases: &[Vec<&Point>]) -> String {
        let mut lines: Vec<(BTreeSet<String>, Vec<String>)> = Vec::new();
        for (name, value) in &self.shared {
            let having = cases.iter().filter(|case| case[0].axes.contains_key(name));
            let endpoints: BTreeSet<String> =
                having.filter_map(|case| case[0].axes.get("endpoint").map(value::text)).collect();
            let Some(text) = setting(name, value) else { continue };
            match lines.iter_mut().find(|(known, _)| *known == endpoints) {
                Some((_, texts)) => texts.push(text),
                None => lines.push((endpoints, vec![text])),
            }
        }
        let line = |(endpoints, texts): (BTreeSet<String>, Vec<String>)| {
            let endpoints = endpoints.into_iter().map(|endpoint| plain(&endpoint)).collect::<Vec<_>>();
            let of = if endpoints.is_empty() { "some rows".to_owned() } else { endpoints.join(", ") };
            format!(" {of}: {}\n", texts.join(", "))
        };
        lines.into_iter().map(line).collect()
    }

    fn has(&self, axis: &str) -> bool {
        self.axes.iter().any(|(name, _)| name == axis)
    }

    fn width(&self) -> usize {
        self.axes.iter().map(|(_, width)| width + 1).sum()
    }

    fn heads(&self) -> String {
        self.axes.iter().map(|(name, width)| format!(" {:width$}", plain(name))).collect()
    }

    fn cells(&self, axes: &Axes) -> String {
        self.axes.iter().map(|(name, width)| format!(" {:width$}", cell(axes, name))).collect()
    }
}

/// The repetitions that have numbers.
fn measured<'p>(case: &[&'p Point]) -> impl Iterator<Item = &'p Point> {
    case.iter().copied().filter(|point| point.status == Status::Measured)
}

fn cell(axes: &Axes, name: &str) -> String {
    axes.get(name).map_or_else(|| "-".to_owned(), |value| plain(&value::text(value)))
}

/// The points without numbers, a line for each reason.
fn without_numbers(points: &[&Point]) -> String {
    let mut reasons: Vec<(String, Spread)> = Vec::new();
    for point in points {
        let reason = match &point.status {
            Status::Measured => continue,
            Status::NotMeasured { reason } => format!("not measured: {}", plain(reason)),
            Status::Failed { error } => format!("failed: {}", plain(error)),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, spread)) => spread.see(&point.axes),
            None => {
                let mut spread = Spread::default();
                spread.see(&point.axes);
                reasons.push((reason, spread));
            }
        }
    }
    let name = points.first().map(|point| plain(&point.experiment)).unwrap_or_default();
    let more: usize = reasons.iter().skip(REASONS_MAX).map(|(_, spread)| spread.points).sum();
    let lines = reasons.iter().take(REASONS_MAX).map(|(reason, spread)| {
        let axes = spread.axes(|axis, values| values.len() > 1 || axis == "size_bytes");
        format!(" {reason} ({} of {name}: {axes})\n", spread.count())
    });
    let lines: String = lines.collect();
    match more {
        0 => lines,
        more => lines + &format!(" and {more} more without numbers: the report has the reasons\n"),
    }
}

/// Lines about points without numbers of an experiment.
const REASONS_MAX: usize = 8;
