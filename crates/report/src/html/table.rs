//! A series table as an HTML table: measured columns, published ones beside them, their ratio, and the share of what links carry.

use measure::quantity::COST;

use super::chart;
use super::escape::escape;
use crate::link_limit::Links;
use crate::reason::{self, Merged};
use crate::series_table::{Cell, Number, Published, Series, SeriesTable};
use crate::{unit, value};

/// The table of a series table with the notes that belong under it.
pub(super) fn render(series_table: &SeriesTable, caption: &str) -> String {
    let columns = Columns::of(series_table);
    let mut notes = Notes::default();
    let rows: String =
        (0..series_table.xs.len()).map(|row| columns.row(series_table, row, &mut notes)).collect();
    let table = frame(caption, "numbers", &columns.head(series_table), &format!("<tbody>\n{rows}</tbody>\n"));
    let table = if columns.is_empty() { String::new() } else { table };
    format!("{table}{}", notes.render(series_table, columns.with_ratio()))
}

/// A table of a class in a box that scrolls where it is too wide, its caption for those who don't see it.
pub(super) fn frame(caption: &str, class: &str, head: &str, bodies: &str) -> String {
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table class=\"{class}\">\n\
         <caption class=\"hidden\">{caption}</caption>\n{head}{bodies}</table>\n</div>\n",
        caption = escape(caption),
    )
}

/// Which columns a table has.
struct Columns<'a> {
    /// Each with the number of its columns: two where repetitions have a spread, or a count belongs to the numbers.
    measured: Vec<(&'a Series, usize)>,
    published: &'a [Published],
    ratios: Vec<(&'a Series, &'a Published)>,
    /// Measured ones of which it is known what their link carries at best.
    linked: Vec<&'a Series>,
    digits: usize,
}

impl<'a> Columns<'a> {
    fn of(series_table: &'a SeriesTable) -> Self {
        let is_spread = |n: &Number| n.repetitions > 1 || n.samples.is_some();
        let spread = |s: &Series| s.cells.iter().filter_map(Cell::number).any(is_spread);
        let measured: Vec<(&Series, usize)> = series_table
            .series
            .iter()
            .filter(|s| !s.is_not_measured())
            .map(|s| (s, 1 + usize::from(spread(s))))
            .collect();
        let ratio = |published: &'a Published| {
            let series = series_table.series.get(published.twin?)?;
            (series.has_numbers() && published.scale.is_some()).then_some((series, published))
        };
        let is_linked = |s: &&Series| s.cells.iter().filter_map(Cell::number).any(|n| n.at_limit.is_some());
        let is_whole = series_table.scale.label == "ns" && series_table.y != COST;
        let digits = if is_whole { 0 } else { unit::digits(series_table.numbers().map(|n| n.median)) };
        Self {
            measured,
            published: &series_table.published,
            ratios: series_table.published.iter().filter_map(ratio).collect(),
            linked: series_table.series.iter().filter(is_linked).collect(),
            digits,
        }
    }

    fn is_empty(&self) -> bool {
        self.measured.is_empty() && self.published.is_empty()
    }

    fn with_ratio(&self) -> bool {
        !self.ratios.is_empty()
    }

    fn head(&self, series_table: &SeriesTable) -> String {
        let published_unit = self.published.iter().find_map(|p| p.scale).map_or("", |s| s.label);
        let groups = [
            ("measured", series_table.scale.label, self.measured.iter().map(|m| m.1).sum()),
            ("published", published_unit, self.published.len()),
            ("measured / published", "", self.ratios.len()),
            ("measured / link at best", "%", self.linked.len()),
        ];
        let group = |(name, unit, columns): (&str, &str, usize)| {
            let class = name.split(' ').next_back().unwrap_or_default();
            let class = if name.contains('/') { "ratio" } else { class };
            let unit = if unit.is_empty() { String::new() } else { format!(" [{unit}]") };
            format!("<th scope=\"colgroup\" colspan=\"{columns}\" class=\"group {class}\">{name}{unit}</th>")
        };
        let groups: String = groups.into_iter().filter(|g| g.2 > 0).map(group).collect();
        let measured = self.measured.iter().map(|(s, columns)| ("measured", &s.label, *columns));
        let published = self.published.iter().map(|p| ("published", &p.label, 1));
        let ratios = self.ratios.iter().map(|(_, p)| ("ratio", &p.label, 1));
        let linked = self.linked.iter().map(|s| ("ratio", &s.label, 1));
        let names: String = measured
            .chain(published)
            .chain(ratios)
            .chain(linked)
            .map(|(class, label, columns)| {
                let span = if columns > 1 { " colspan=\"2\"" } else { "" };
                format!("<th scope=\"col\"{span} class=\"{class}\">{}</th>", escape(label))
            })
            .collect();
        format!(
            "<thead>\n<tr><th scope=\"col\" rowspan=\"2\" class=\"x\">{}</th>{groups}</tr>\n<tr>{names}</tr>\n</thead>\n",
            escape(&chart::x_title(&series_table.x))
        )
    }

    fn row(&self, series_table: &SeriesTable, row: usize, notes: &mut Notes) -> String {
        let measured: String = self
            .measured
            .iter()
            .map(|(s, columns)| self.measured_cell(series_table, &s.cells[row], *columns, notes))
            .collect();
        let published: String = self
            .published
            .iter()
            .map(|p| match &p.cells[row] {
                Some(text) => format!("<td class=\"published\">{}</td>", escape(text)),
                None => "<td class=\"published absent\">–</td>".to_owned(),
            })
            .collect();
        let ratios: String = self
            .ratios
            .iter()
            .map(|(series, published)| {
                let measured = series.cells[row].number().map(|n| n.median);
                match (measured, published.number(row, series_table.scale)) {
                    (Some(m), Some(p)) if p > 0.0 => format!("<td class=\"ratio\">{:.2}</td>", m / p),
                    _ => "<td class=\"ratio absent\">–</td>".to_owned(),
                }
            })
            .collect();
        let linked: String = self.linked.iter().map(|s| share(series_table, &s.cells[row])).collect();
        let x = escape(&value::text(&series_table.xs[row]));
        format!("<tr><th scope=\"row\">{x}</th>{measured}{published}{ratios}{linked}</tr>\n")
    }

    fn measured_cell(
        &self,
        series_table: &SeriesTable,
        cell: &Cell,
        columns: usize,
        notes: &mut Notes,
    ) -> String {
        let spread = if columns > 1 { "<td class=\"spread\"></td>" } else { "" };
        match cell {
            Cell::Absent => {
                notes.absent = true;
                format!("<td class=\"absent\">–</td>{spread}")
            }
            Cell::NotMeasured(reason) => word("not measured", reason, columns, notes),
            Cell::Failed(error) => word("failed", error, columns, notes),
            Cell::Value(number) if columns > 1 => {
                notes.repetitions = notes.repetitions.max(number.repetitions);
                let ([low, high], digits) = (number.runs, self.digits);
                let value = self.number(series_table, number, notes);
                let count = number.samples.map(|samples| format!("n {}", unit::grouped(samples)));
                let beside = match (number.repetitions, count) {
                    (0 | 1, count) => count.unwrap_or_default(),
                    (_, None) => format!("{low:.digits$}..{high:.digits$}"),
                    (runs, Some(count)) => format!("{low:.digits$}..{high:.digits$}, {count} in {runs} runs"),
                };
                format!("{value}<td class=\"spread\">{beside}</td>")
            }
            Cell::Value(number) => self.number(series_table, number, notes),
        }
    }

    fn number(&self, series_table: &SeriesTable, number: &Number, notes: &mut Notes) -> String {
        let digits = self.digits;
        let doubts: String = number.doubts.iter().map(|doubt| notes.mark(doubt, true)).collect();
        let within = number.quantiles.map(|[low, high]| {
            format!(
                " title=\"10 % to 90 % within a run: {low:.3} to {high:.3} {}\"",
                series_table.scale.label
            )
        });
        format!(
            "<td{class}><a href=\"#histogram={id}\"{within}>{value:.digits$}</a>{bound}{doubts}</td>",
            class = if number.doubts.is_empty() { "" } else { " class=\"doubtful\"" },
            id = number.id,
            within = within.unwrap_or_default(),
            value = number.median,
            bound = number.bound.map(|bound| format!(" ± {bound:.digits$}")).unwrap_or_default(),
        )
    }
}

/// The share of what a cell's link carries at best.
fn share(series_table: &SeriesTable, cell: &Cell) -> String {
    let number = cell.number().and_then(|number| Some((number.median, number.at_limit.as_ref()?)));
    let Some((measured, at_limit)) = number else { return "<td class=\"ratio absent\">–</td>".to_owned() };
    format!(
        "<td class=\"ratio\" title=\"at best {:.3} {}\">{:.1}</td>",
        at_limit.number,
        series_table.scale.label,
        100.0 * measured / at_limit.number
    )
}

/// A cell without a number: a word, its reason as a tooltip and as a footnote.
fn word(word: &str, reason: &str, columns: usize, notes: &mut Notes) -> String {
    let span = if columns > 1 { " colspan=\"2\"" } else { "" };
    let mark = notes.mark(reason, false);
    format!("<td class=\"word\"{span} title=\"{}\">{word}{mark}</td>", escape(reason))
}

/// The notes under a table.
#[derive(Default)]
struct Notes {
    marks: Vec<String>,
    absent: bool,
    repetitions: usize,
}

impl Notes {
    /// The mark of a footnote; equal texts share one.
    fn mark(&mut self, text: &str, doubt: bool) -> String {
        let index = self.marks.iter().position(|known| known == text).unwrap_or_else(|| {
            self.marks.push(text.to_owned());
            self.marks.len() - 1
        });
        let sign = if doubt { "!" } else { "" };
        format!("<sup title=\"{}\">{sign}{}</sup>", escape(text), letter(index))
    }

    fn render(&self, series_table: &SeriesTable, with_ratio: bool) -> String {
        let mut notes: Vec<String> = self
            .marks
            .iter()
            .enumerate()
            .map(|(index, text)| format!("<sup>{}</sup> {}", letter(index), escape(text)))
            .collect();
        notes.extend(not_measured(series_table));
        if self.repetitions > 1 {
            notes.push(format!(
                "Median of up to {} repetitions; small: the smallest and the largest of them (run-to-run spread).",
                self.repetitions
            ));
        }
        if with_ratio {
            notes.push("Ratio: measured divided by published.".to_owned());
        }
        notes.extend(links(series_table));
        if self.absent {
            notes.push("–: not in the points of this run.".to_owned());
        }
        let base = unit::base(series_table.scale.label);
        if !base.is_empty() {
            notes.push(format!("{base}."));
        }
        list(&notes)
    }
}

/// Notes as a list of small print.
pub(super) fn list(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let items: String = notes.iter().map(|note| format!("<li>{note}</li>\n")).collect();
    format!("<ul class=\"notes\">\n{items}</ul>\n")
}

/// One note for each reason for which whole columns are not measured.
pub(super) fn not_measured(series_table: &SeriesTable) -> Vec<String> {
    let mut reasons = Vec::new();
    for series in series_table.series.iter().filter(|s| s.is_not_measured()) {
        for cell in &series.cells {
            if let Cell::NotMeasured(reason) = cell {
                reason::add(&mut reasons, reason, &series.label);
            }
        }
    }
    let note = |merged: &Merged| {
        let labels = escape(&merged.labels.join(", "));
        format!("<strong>Not measured: {labels}.</strong> {}", escape(&merged.text()))
    };
    reasons.iter().map(note).collect()
}

/// What the links carry that numbers stand beside, in one note.
fn links(series_table: &SeriesTable) -> Option<String> {
    let mut links = Links::default();
    series_table
        .numbers()
        .filter_map(|number| number.at_limit.as_ref())
        .for_each(|at_limit| links.see(&at_limit.limit));
    let shared = match links.is_shared {
        true => " Each direction carries the acknowledgements of the other, too; they are not counted.",
        false => "",
    };
    let texts = escape(&links.texts.join("; "));
    (!texts.is_empty()).then(|| format!("<a href=\"#link-at-best\">Link at best</a>: {texts}.{shared}"))
}

/// a, b, ... z, aa, ab, ...
fn letter(index: usize) -> String {
    let last = char::from(b'a' + (index % 26) as u8);
    if index < 26 { last.to_string() } else { format!("{}{last}", letter(index / 26 - 1)) }
}

/// What stands in the place of a table or a chart without numbers.
pub(super) const NOTHING: &str = "<p class=\"complaint\">Nothing was measured for this figure.</p>\n";
