//! Rows of points whose messages were timed in several ways: a line for each kind of latency, then what is known besides.
//!
//! The lines of a kind have as many columns each, so that a program can read them; what is known besides stands on lines
//! that begin with `#`.

use measure::quantity;
use measure::record::{Latency, Point};

use super::plain;
use super::row::size;
use crate::one_way;
use crate::unit::{self, digits};

/// Width of the name of a kind, the further ones indented by two.
const KIND_WIDTH: usize = 14;
/// Widths of the columns behind it: #bytes, #samples, six times and a share. Together the line has less than 130 columns.
const WIDTHS: [usize; 9] = [8, 9, 9, 9, 9, 9, 9, 10, 10];

/// The first threshold that the point has a share for.
pub(super) fn threshold(point: &Point) -> Option<u64> {
    let thresholds = point.latency.iter().flat_map(|latency| latency.share_above.keys());
    thresholds.filter_map(|threshold| threshold.parse().ok()).min()
}

/// The names of the columns.
pub(super) fn columns(above_ns: Option<u64>) -> Vec<String> {
    let names = [
        "latency",
        "#bytes",
        "#samples",
        "min[us]",
        "10%[us]",
        "typ.[us]",
        "90%[us]",
        "99.9%[us]",
        "max[us]",
    ];
    let above = above_ns.map(|ns| format!("> {}", unit::time(ns as f64).replace(".00", "")));
    names.into_iter().map(str::to_owned).chain(above).collect()
}

/// Cells aligned under their columns' names.
pub(super) fn line(cells: &[String], end: &str) -> String {
    let Some((kind, numbers)) = cells.split_first() else { return String::new() };
    let numbers: String =
        numbers.iter().zip(WIDTHS).map(|(text, width)| format!(" {text:>width$}")).collect();
    format!(" {kind:KIND_WIDTH$}{numbers}{end}\n")
}

/// The lines of a point.
pub(super) fn rows(point: &Point, above_ns: Option<u64>, marks: &str) -> String {
    let mut out = String::new();
    for (index, latency) in point.kinds.iter().map(|timed| &timed.latency).enumerate() {
        let indent = if index == 0 { "" } else { "  " };
        let end = match quantity::bound_ns(point, latency.kind) {
            Some(bound) => format!("  +- {:.0} ns{marks}", bound.ceil()),
            None => marks.to_owned(),
        };
        out += &line(&cells(point, latency, indent, above_ns), &end);
    }
    out + &wrapped(&one_way::notes(point))
}

fn cells(point: &Point, latency: &Latency, indent: &str, above_ns: Option<u64>) -> Vec<String> {
    let us = |ns: u64| format!("{:.3}", ns as f64 / 1e3);
    let share = above_ns.map(|ns| match latency.share_above.get(&ns.to_string()) {
        Some(share) => {
            let percent = share * 100.0;
            format!("{percent:.*} %", digits([percent].into_iter()))
        }
        None => "-".to_owned(),
    });
    let times =
        [latency.min_ns, latency.p10_ns, latency.p50_ns, latency.p90_ns, latency.p999_ns, latency.max_ns];
    [format!("{indent}{}", latency.kind.name()), size(point), latency.count.to_string()]
        .into_iter()
        .chain(times.map(us))
        .chain(share)
        .collect()
}

/// The notes, one after the other, in lines that begin with `#`.
fn wrapped(notes: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for note in notes {
        let note = plain(note);
        match lines.last_mut() {
            Some(last) if last.chars().count() + note.chars().count() + 2 <= NOTE_WIDTH => {
                *last += &format!("; {note}");
            }
            _ => lines.push(note),
        }
    }
    lines.iter().map(|line| format!(" # {line}\n")).collect()
}

/// Columns of a note, without its `#`.
const NOTE_WIDTH: usize = 126;
