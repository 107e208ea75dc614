//! The findings and figures of a run as files: a drawing for a paper (SVG), and its numbers (CSV).

pub(crate) mod csv;
mod findings;
mod svg;

use std::collections::BTreeSet;

use measure::figure::FigureKind;
use measure::record::Run;
use measure::text::{counted, plain};

use crate::findings::{answer, no_network};
use crate::html::chart::Chart;
use crate::html::histogram;
use crate::html::multiples;
use crate::html::surface::Tables;
use crate::series_table::SeriesTable;
use crate::{Error, Points, SampleSource};

/// The drawings of a run, and the figures without one.
#[derive(Debug, Default)]
pub struct Drawings {
    /// The drawings, in the order of the report.
    pub drawn: Vec<Drawing>,
    /// The figures that are tables, each with its number in the report.
    pub tables: Vec<String>,
    /// The figures for which nothing was measured, in the same way, or `findings`.
    pub empty: Vec<String>,
    /// The histograms that lack points or samples, each with its number and the first reason.
    pub incomplete: Vec<String>,
}

/// A drawing as the contents of files.
#[derive(Debug)]
pub struct Drawing {
    /// The start of its files' names: `findings`, or `figure-3-latency-over-size`. If a figure has
    /// several drawings, their own numbers follow.
    pub name: String,
    /// The drawing.
    pub svg: String,
    /// The numbers: a line for each mark, for each edge of a histogram's bins, or for each case of
    /// the findings.
    pub csv: String,
}

/// The start of files' names: `figure-3-latency-over-size`.
fn name(number: usize, title: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
    let words: String = title.chars().map(word).collect();
    let words: Vec<&str> = words.split_whitespace().take(WORDS_MAX).collect();
    let words: String = words.join("-").chars().take(CHARACTERS_MAX).collect();
    format!("figure-{number}-{}", words.trim_end_matches('-'))
}

/// What a figure lacks: the first reason, and the number of the others, which the page has.
fn incomplete(figure: &str, missing: &BTreeSet<String>) -> Option<String> {
    let first = plain(missing.first()?);
    let others = match missing.len() as u64 - 1 {
        0 => String::new(),
        others => format!("; the report has {}", counted(others, "more such reason")),
    };
    Some(format!("{figure}: {first}{others}"))
}

/// Words of a title in a file's name, and their characters.
const WORDS_MAX: usize = 8;
const CHARACTERS_MAX: usize = 80;

/// The findings of a run, and its figures that are drawings, where they have numbers.
///
/// # Errors
/// If a figure names a number that does not exist.
pub fn drawings(run: &Run, points: Points<'_>, samples: &dyn SampleSource) -> Result<Drawings, Error> {
    let mut all = Drawings::default();
    let answers = answer(&run.findings, points, no_network(run));
    if findings::have_numbers(&answers) {
        let svg = findings::drawing(run, &answers);
        let csv = findings::numbers(run, &answers);
        all.drawn.push(Drawing { name: findings::NAME.to_owned(), svg, csv });
    } else if !answers.is_empty() {
        all.empty.push(findings::NAME.to_owned());
    }
    for (number, figure) in (1..).zip(&run.figures) {
        let listed = format!("{number} ({})", plain(&figure.title));
        let drawn = |chart: Chart| {
            let colon = if chart.label.is_empty() { "" } else { ": " };
            let title = format!("{}{colon}{}", figure.title, chart.label);
            (svg::drawing(&chart, &plain(&title)), chart)
        };
        let parts: Vec<(String, Chart)> = match figure.kind {
            FigureKind::Bars | FigureKind::Lines => {
                let chart = Chart::new(String::new(), figure, &SeriesTable::with_links(figure, points)?);
                multiples::of(chart).into_iter().filter(|chart| !chart.is_empty()).map(drawn).collect()
            }
            FigureKind::Histogram => {
                let rendered = histogram::render("", figure, points.points, samples);
                all.incomplete.extend(incomplete(&listed, &rendered.missing));
                rendered.panels.into_iter().map(drawn).collect()
            }
            FigureKind::Surface => {
                let drawings = Tables::of(figure, points)?.drawings("", figure).into_iter();
                drawings.map(|(drawn, chart)| (svg::alone(&drawn.0, "surface"), chart)).collect()
            }
            FigureKind::Costs | FigureKind::LinkRates | FigureKind::Published | FigureKind::Table => {
                all.tables.push(listed);
                continue;
            }
        };
        if parts.is_empty() {
            all.empty.push(listed);
        }
        let several = parts.len() > 1;
        all.drawn.extend(parts.into_iter().zip(1..).map(|((svg, chart), part)| {
            let end = if several { format!("-{part}") } else { String::new() };
            Drawing { name: name(number, &figure.title) + &end, svg, csv: csv::numbers(&chart) }
        }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
