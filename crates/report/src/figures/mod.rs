//! The charts of a run as files: a drawing for a paper (SVG), and its numbers (CSV).

pub(crate) mod csv;
mod svg;

use measure::figure::FigureKind;
use measure::record::Run;
use measure::text::plain;

use crate::html::chart::Chart;
use crate::series_table::SeriesTable;
use crate::{Error, Points};

/// A chart as the contents of files.
#[derive(Debug)]
pub struct Drawing {
    /// The number of the figure in the report, from 1.
    pub number: usize,
    /// The title of the figure.
    pub title: String,
    /// The drawing.
    pub svg: String,
    /// The numbers: a line for each mark.
    pub csv: String,
}

impl Drawing {
    /// The start of its files' names: `figure-3-latency-over-size`.
    pub fn name(&self) -> String {
        let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
        let words: String = self.title.chars().map(word).collect();
        let words: Vec<&str> = words.split_whitespace().take(WORDS_MAX).collect();
        let words: String = words.join("-").chars().take(CHARACTERS_MAX).collect();
        format!("figure-{}-{}", self.number, words.trim_end_matches('-'))
    }
}

/// Words of a title in a file's name, and their characters.
const WORDS_MAX: usize = 8;
const CHARACTERS_MAX: usize = 80;

/// The charts with lines or bars of a run that have numbers, in the order of the report.
///
/// # Errors
/// If a figure names a number that does not exist.
pub fn drawings(run: &Run, points: Points<'_>) -> Result<Vec<Drawing>, Error> {
    let mut drawings = Vec::new();
    for (number, figure) in (1..).zip(&run.figures) {
        if !matches!(figure.kind, FigureKind::Bars | FigureKind::Lines) {
            continue;
        }
        let series_table = SeriesTable::new(figure, points)?.beside_links(points);
        let chart = Chart::new(String::new(), figure, &series_table);
        if chart.is_empty() {
            continue;
        }
        let svg = svg::drawing(&chart, &plain(&figure.title));
        let csv = csv::numbers(&chart);
        drawings.push(Drawing { number, title: figure.title.clone(), svg, csv });
    }
    Ok(drawings)
}

#[cfg(test)]
mod tests;
