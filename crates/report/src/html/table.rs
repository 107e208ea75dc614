//! A series table as an HTML table: measured columns, published ones next to them, their ratio, and
//! the share of the link limit.

use maud::{Markup, Render, html};
use measure::quantity::COST;

use super::chart;
use super::prose::prose;
use crate::link_limit::Links;
use crate::reason::{self, Merged};
use crate::series_table::{Cell, Number, Published, Series, SeriesTable};
use crate::{unit, value};

/// The table of a series table, with its notes.
pub(super) fn render(series_table: &SeriesTable, caption: &str) -> Markup {
    let columns = Columns::of(series_table);
    let mut notes = Notes::default();
    let rows = html! {
        tbody {
            "\n"
            @for row in 0..series_table.xs.len() {
                (columns.row(series_table, row, &mut notes)) "\n"
            }
        }
    };
    html! {
        @if !columns.is_empty() { (frame(caption, "numbers", &columns.head(series_table), &rows)) }
        (notes.render(series_table, columns.with_ratio()))
    }
}

/// A table of a class in a box that scrolls if it is too wide, with its caption for screen readers.
pub(super) fn frame(caption: &str, class: &str, head: &Markup, bodies: &Markup) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(caption) {
            table class=(class) {
                caption class="hidden" { (caption) }
                (head)
                (bodies)
            }
        }
    }
}

/// The columns of a table.
struct Columns<'a> {
    /// Each series with its number of columns: two where repetitions have a spread, or where a
    /// count belongs to the numbers.
    measured: Vec<(&'a Series, usize)>,
    published: &'a [Published],
    ratios: Vec<(&'a Series, &'a Published)>,
    /// The measured series with a known link limit.
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

    fn head(&self, series_table: &SeriesTable) -> Markup {
        let published_unit = self.published.iter().find_map(|p| p.scale).map_or("", |s| s.label);
        let origin = series_table.origin().unwrap_or_default();
        let ratio = format!("measured / {origin}");
        let groups = [
            ("measured", "measured", series_table.scale.label, self.measured.iter().map(|m| m.1).sum()),
            ("published", origin, published_unit, self.published.len()),
            ("ratio", ratio.as_str(), "", self.ratios.len()),
            ("ratio", "measured / link limit", "%", self.linked.len()),
        ];
        let measured = self.measured.iter().map(|(s, columns)| ("measured", &s.label, *columns));
        let published = self.published.iter().map(|p| ("published", &p.label, 1));
        let ratios = self.ratios.iter().map(|(_, p)| ("ratio", &p.label, 1));
        let linked = self.linked.iter().map(|s| ("ratio", &s.label, 1));
        html! {
            thead {
                tr {
                    th scope="col" rowspan="2" class="x" { (chart::x_title(&series_table.x)) }
                    @for (class, name, unit, columns) in groups.into_iter().filter(|group| group.3 > 0) {
                        th scope="colgroup" colspan=(columns) class={ "group " (class) } {
                            (name) @if !unit.is_empty() { " [" (unit) "]" }
                        }
                    }
                }
                tr {
                    @for (class, label, columns) in measured.chain(published).chain(ratios).chain(linked) {
                        th scope="col" colspan=[(columns > 1).then_some("2")] class=(class) { (label) }
                    }
                }
            }
        }
    }

    fn row(&self, series_table: &SeriesTable, row: usize, notes: &mut Notes) -> Markup {
        let ratio = |(series, published): &(&Series, &Published)| {
            let measured = series.cells[row].number()?.median;
            let published = published.number(row, series_table.scale).filter(|number| *number > 0.0)?;
            Some(format!("{:.2}", measured / published))
        };
        html! {
            tr {
                th scope="row" { (value::text(&series_table.xs[row])) }
                @for (series, columns) in &self.measured {
                    (self.measured_cell(series_table, &series.cells[row], *columns, notes))
                }
                @for published in self.published {
                    (or_absent("published", published.cells[row].as_ref()))
                }
                @for pair in &self.ratios { (or_absent("ratio", ratio(pair))) }
                @for series in &self.linked { (share(series_table, &series.cells[row])) }
            }
        }
    }

    fn measured_cell(
        &self,
        series_table: &SeriesTable,
        cell: &Cell,
        columns: usize,
        notes: &mut Notes,
    ) -> Markup {
        match cell {
            Cell::Absent => {
                notes.absent = true;
                html! { td class="absent" { "–" } @if columns > 1 { td class="spread" {} } }
            }
            Cell::NotMeasured(reason) => word("not measured", reason, columns, notes),
            Cell::Failed(error) => word("failed", error, columns, notes),
            Cell::Value(number) if columns > 1 => {
                notes.repetitions = notes.repetitions.max(number.repetitions);
                notes.are_launches |= number.are_launches;
                let [low, high] = number.runs;
                let digits = self.digits;
                let count = number.samples.map(|samples| format!("n {}", unit::grouped(samples)));
                let runs_word = if number.are_launches { "launches" } else { "repetitions" };
                let beside = match (number.repetitions, count) {
                    (0 | 1, count) => count.unwrap_or_default(),
                    (_, None) => format!("{low:.digits$}..{high:.digits$}"),
                    (runs, Some(count)) => {
                        format!("{low:.digits$}..{high:.digits$}, {count} in {runs} {runs_word}")
                    }
                };
                html! { (self.number(series_table, number, notes)) td class="spread" { (beside) } }
            }
            Cell::Value(number) => self.number(series_table, number, notes),
        }
    }

    fn number(&self, series_table: &SeriesTable, number: &Number, notes: &mut Notes) -> Markup {
        let digits = self.digits;
        let unit = series_table.scale.label;
        let within = number
            .quantiles
            .map(|[low, high]| format!("10th to 90th percentile within a run: {low:.3} to {high:.3} {unit}"));
        html! {
            td class=[(!number.doubts.is_empty()).then_some("doubtful")] {
                a href={ "#histogram=" (number.id) } title=[within] {
                    (format!("{:.digits$}", number.median))
                }
                @if let Some(bound) = number.bound { " ± " (format!("{bound:.digits$}")) }
                @for (index, first) in notes.doubts(&number.doubts) {
                    sup title=(first) { "!" (letter(index)) }
                }
            }
        }
    }
}

/// A cell of a class; a dash where there is no text.
fn or_absent(class: &str, text: Option<impl Render>) -> Markup {
    html! {
        @if let Some(text) = text { td class=(class) { (text) } }
        @else { td class={ (class) " absent" } { "–" } }
    }
}

/// The share of the link limit of a cell.
fn share(series_table: &SeriesTable, cell: &Cell) -> Markup {
    let number = cell.number().and_then(|number| Some((number.median, number.at_limit.as_ref()?.number)));
    let Some((measured, best)) = number else { return or_absent("ratio", None::<&str>) };
    let title = format!("link limit {best:.3} {}", series_table.scale.label);
    html! { td class="ratio" title=(title) { (format!("{:.1}", 100.0 * measured / best)) } }
}

/// A cell without a number: a word, with its reason as a tooltip and as a footnote.
fn word(word: &str, reason: &str, columns: usize, notes: &mut Notes) -> Markup {
    html! {
        td class="word" colspan=[(columns > 1).then_some("2")] title=(reason) {
            (word) sup title=(reason) { (letter(notes.mark(reason.to_owned(), reason))) }
        }
    }
}

/// A footnote.
struct Mark {
    /// Texts of the same cause share the footnote.
    cause: String,
    text: String,
    /// Whether other texts of the cause differ from this one.
    varies: bool,
}

/// The notes under a table.
#[derive(Default)]
struct Notes {
    marks: Vec<Mark>,
    absent: bool,
    repetitions: usize,
    are_launches: bool,
}

impl Notes {
    /// The number of the footnote of a cause.
    fn mark(&mut self, cause: String, text: &str) -> usize {
        let index = self.marks.iter().position(|known| known.cause == cause).unwrap_or_else(|| {
            self.marks.push(Mark { cause, text: text.to_owned(), varies: false });
            self.marks.len() - 1
        });
        self.marks[index].varies |= self.marks[index].text != text;
        index
    }

    /// The footnotes of the doubts about a number, each with its first text. Doubts that differ in
    /// numbers only share one.
    fn doubts<'a>(&mut self, doubts: &'a [String]) -> Vec<(usize, &'a String)> {
        let mut found: Vec<(usize, &String)> = Vec::new();
        for doubt in doubts {
            let cause = match doubt.split_once(": ") {
                Some((which, why)) => format!("{}: {}", reason::cause(which), reason::cause(why)),
                None => reason::cause(doubt),
            };
            let index = self.mark(cause, doubt);
            if !found.iter().any(|(known, _)| *known == index) {
                found.push((index, doubt));
            }
        }
        found
    }

    fn render(&self, series_table: &SeriesTable, with_ratio: bool) -> Markup {
        let marks = self.marks.iter().enumerate();
        let mut notes: Vec<Markup> =
            marks.map(|(index, mark)| html! { sup { (letter(index)) } " " (mark) }).collect();
        notes.extend(not_measured(series_table));
        if self.repetitions > 1 {
            notes.push(html! {
                "Median of up to " (self.repetitions) " repetitions"
                @if self.are_launches { ", where those of one launch count as one" }
                "; small: the smallest and the largest of them (run-to-run spread)."
            });
        }
        if with_ratio {
            notes.push(
                html! { "Ratio: measured divided by " (series_table.origin().unwrap_or_default()) "." },
            );
        }
        notes.extend(links(series_table));
        if self.absent {
            notes.push(html! { "–: this run has no such point." });
        }
        let base = unit::base(series_table.scale.label);
        if !base.is_empty() {
            notes.push(html! { (base) "." });
        }
        list(&notes)
    }
}

impl Render for Mark {
    fn render(&self) -> Markup {
        html! { (prose(&self.text)) @if self.varies { "; others of this mark differ in numbers" } }
    }
}

/// Notes as a list in small print.
pub(super) fn list<T: Render>(notes: impl IntoIterator<Item = T>) -> Markup {
    let mut notes = notes.into_iter().peekable();
    html! {
        @if notes.peek().is_some() { ul class="notes" { @for note in notes { li { (note) } } } }
    }
}

/// A note for each reason for which whole columns are not measured.
pub(super) fn not_measured(series_table: &SeriesTable) -> Vec<Markup> {
    let mut reasons = Vec::new();
    for series in series_table.series.iter().filter(|s| s.is_not_measured()) {
        for cell in &series.cells {
            if let Cell::NotMeasured(reason) = cell {
                reason::add(&mut reasons, reason, &series.label);
            }
        }
    }
    let note = |merged: &Merged| {
        html! { strong { "Not measured: " (merged.labels.join(", ")) "." } " " (prose(&merged.text())) }
    };
    reasons.iter().map(note).collect()
}

/// The links whose limits are shown, in one note.
fn links(series_table: &SeriesTable) -> Option<Markup> {
    let mut links = Links::default();
    series_table
        .numbers()
        .filter_map(|number| number.at_limit.as_ref())
        .for_each(|at_limit| links.see(&at_limit.limit));
    let note = html! {
        a href="#link-at-best" { "Link limit" } ": " (links.texts.join("; ")) "."
        @if links.is_shared {
            " Each direction also carries the acknowledgements of the other; they are not counted."
        }
    };
    (!links.texts.is_empty()).then_some(note)
}

/// a, b, ... z, aa, ab, ...
fn letter(index: usize) -> String {
    let last = char::from(b'a' + (index % 26) as u8);
    if index < 26 { last.to_string() } else { format!("{}{last}", letter(index / 26 - 1)) }
}

/// The text in the place of a table or a chart without numbers.
pub(super) fn nothing() -> Markup {
    html! { p class="complaint" { "Nothing was measured for this figure." } }
}

/// The text in the place of a chart until the script has drawn it.
pub(super) fn waiting() -> Markup {
    html! { p class="waiting" { "This chart is drawn by a script." } }
}
