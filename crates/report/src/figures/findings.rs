//! The findings of a run as a forest plot, and their numbers: each claim with its verdict, and the
//! measured number with its interval beside the range of the claim.

use maud::{Markup, html};
use measure::finding::{Range, RangeUnit};
use measure::record::Run;
use measure::text::plain;

use super::csv::quoted;
use super::svg;
use crate::findings::{Answer, Case, is_of_paper};
use crate::html::chart::rounded;
use crate::html::findings::{BANDS, number_and_inputs, title, unjudged};
use crate::html::forest;
use crate::html::prose::sentence;

/// The start of the files' names.
pub(super) const NAME: &str = "findings";

/// The width of the drawing, in pixels; its height depends on the findings.
const WIDTH: f64 = 1000.0;
/// The columns of text: the claim, the verdict, and the numbers of this run beside their drawing.
const CLAIM: Column = Column { left: 16.0, characters: 46 };
const VERDICT: Column = Column { left: 336.0, characters: 24 };
const PLOT: f64 = 510.0;
const NUMBERS: Column = Column { left: 728.0, characters: 40 };
/// The lines below the findings.
const LEGEND: Column = Column { left: 16.0, characters: 145 };
/// Where the titles of the columns stand, and the first row begins.
const HEAD: f64 = 48.0;
const TOP: f64 = 56.0;
/// From one line of text to the next, and the room below a row.
const LINE: f64 = 15.0;
const GAP: f64 = 9.0;
/// The colours of text and of rules, as in the other drawings.
const INK: &str = "#1c2430";
const SOFT: &str = "#49525f";
const RULE: &str = "#dde1e7";
/// A longer text is cut: the page has all of it.
const LINES_MAX: usize = 6;

/// Whether there is a number to draw.
pub(super) fn have_numbers(answers: &[Answer<'_>]) -> bool {
    answers.iter().flat_map(|answer| &answer.cases).any(|case| case.figure.is_some())
}

/// The drawing: a row for each case, those of a claim beside it.
pub(super) fn drawing(run: &Run, answers: &[Answer<'_>]) -> String {
    let is_of_paper = is_of_paper(&run.findings);
    let mut rows = html! {};
    let mut y = TOP;
    for answer in answers {
        let row = Row::of(answer, is_of_paper);
        rows.0 += &row.drawn(y).0;
        y += row.height();
    }
    let legend = legend(answers);
    let height = y + block(&legend);
    let title = title(run);
    let svg = html! {
        svg width=(WIDTH) height=(height) viewBox={ "0 0 " (WIDTH) " " (height) } font-size="12" role="img"
            aria-label=(title) {
            text x=(CLAIM.left) y="22" font-size="14" font-weight="bold" fill=(INK) { (title) }
            @for (x, name) in [(CLAIM.left, "Claim"), (VERDICT.left, "Verdict"), (PLOT, "This run")] {
                text x=(x) y=(HEAD) fill=(SOFT) { (name) }
            }
            (rows)
            (rule(y))
            (LEGEND.drawn(&legend, y))
        }
    };
    svg::alone(&svg.0, "forest")
}

/// The numbers: a line for each case, with the bounds of its ranges in the unit of its number.
pub(super) fn numbers(run: &Run, answers: &[Answer<'_>]) -> String {
    let is_of_paper = is_of_paper(&run.findings);
    let cases = answers.iter().flat_map(|answer| answer.cases.iter().map(move |case| (answer, case)));
    let mut out = HEADINGS.join(",") + "\n";
    for (answer, case) in cases {
        let finding = answer.finding;
        let (verdict, reason) = answer.verdict(case, is_of_paper);
        let figure = case.figure.map(|figure| [figure.value, figure.low, figure.high].map(cell));
        let unit = match finding.holds.unit {
            RangeUnit::Percent => "%",
            RangeUnit::Plain => "",
            RangeUnit::Time => "ns",
        };
        let texts = [finding.published.clone(), finding.source.clone(), case.doubts.text()];
        let mut cells = vec![quoted(&finding.claim), quoted(&case.label), quoted(verdict), quoted(&reason)];
        cells.extend(figure.unwrap_or_default());
        cells.push(unit.to_owned());
        cells.extend(bounds(Some(&finding.holds)).into_iter().chain(bounds(finding.matches.as_ref())));
        cells.extend(texts.map(|text| quoted(&text.unwrap_or_default())));
        out += &(cells.join(",") + "\n");
    }
    out
}

/// The names of the numbers' columns.
const HEADINGS: [&str; 15] = [
    "claim",
    "case",
    "verdict",
    "reason",
    "measured",
    "low",
    "high",
    "unit",
    "holds from",
    "holds to",
    "matches from",
    "matches to",
    "published",
    "source",
    "uncertain",
];

/// The bounds of a range; empty where there is none.
fn bounds(range: Option<&Range>) -> [String; 2] {
    range.map(|range| range.bounds().map(cell)).unwrap_or_default()
}

/// A number, or an empty cell for a bound that does not exist.
fn cell(number: f64) -> String {
    if number.is_finite() { rounded(number).to_string() } else { String::new() }
}

/// A column of text.
struct Column {
    left: f64,
    /// The most characters of a line, of average width.
    characters: usize,
}

/// A line of text, and how it is set.
struct Line {
    text: String,
    weight: &'static str,
    fill: &'static str,
}

impl Column {
    fn text(&self, text: &str) -> Vec<Line> {
        self.set(text, "normal", INK)
    }

    fn strong(&self, text: &str) -> Vec<Line> {
        self.set(text, "bold", INK)
    }

    /// What explains the text above it.
    fn soft(&self, text: &str) -> Vec<Line> {
        self.set(text, "normal", SOFT)
    }

    fn set(&self, text: &str, weight: &'static str, fill: &'static str) -> Vec<Line> {
        broken(text, self.characters).into_iter().map(|text| Line { text, weight, fill }).collect()
    }

    fn drawn(&self, lines: &[Line], top: f64) -> Markup {
        html! {
            @for (line, index) in lines.iter().zip(1u32..) {
                text x=(self.left) y=(top + LINE * f64::from(index)) font-weight=(line.weight) fill=(line.fill) {
                    (line.text)
                }
            }
        }
    }
}

/// Breaks a text at spaces into lines of at most so many characters. Longer words are broken, too.
fn broken(text: &str, characters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        for part in word.chars().collect::<Vec<_>>().chunks(characters) {
            let part = String::from_iter(part);
            let fits = |line: &&mut String| line.chars().count() + 1 + part.chars().count() <= characters;
            match lines.last_mut().filter(fits) {
                Some(line) => *line += &format!(" {part}"),
                None => lines.push(part),
            }
        }
    }
    if lines.len() > LINES_MAX {
        lines.truncate(LINES_MAX);
        lines[LINES_MAX - 1] += " ...";
    }
    lines
}

/// The height of lines of text and the room below them.
fn block(lines: &[Line]) -> f64 {
    LINE * lines.len() as f64 + GAP
}

/// The line between two claims.
fn rule(y: f64) -> Markup {
    html! { line x1=(CLAIM.left) x2=(WIDTH - CLAIM.left) y1=(y) y2=(y) stroke=(RULE) {} }
}

/// A claim with its cases.
struct Row {
    claim: Vec<Line>,
    cases: Vec<Cells>,
}

impl Row {
    fn of(answer: &Answer<'_>, is_of_paper: bool) -> Self {
        let finding = answer.finding;
        let mut claim = CLAIM.text(&plain(&finding.claim));
        claim.extend(CLAIM.soft(&plain(&format!("holds if {}", finding.holds))));
        if let Some(matches) = &finding.matches {
            claim.extend(CLAIM.soft(&plain(&format!("published size: {matches}"))));
        }
        if let Some(published) = &finding.published {
            claim.extend(CLAIM.soft(&format!("published: {}", plain(published))));
        }
        if let Some(source) = &finding.source {
            claim.extend(CLAIM.soft(&plain(source)));
        }
        Self { claim, cases: answer.cases.iter().map(|case| Cells::of(answer, case, is_of_paper)).collect() }
    }

    fn height(&self) -> f64 {
        self.cases.iter().map(Cells::height).sum::<f64>().max(block(&self.claim))
    }

    fn drawn(&self, top: f64) -> Markup {
        let mut drawn = html! { (rule(top)) (CLAIM.drawn(&self.claim, top)) };
        let mut y = top;
        for cells in &self.cases {
            drawn.0 += &cells.drawn(y).0;
            y += cells.height();
        }
        drawn
    }
}

/// The answer for a case.
struct Cells {
    verdict: Vec<Line>,
    is_judged: bool,
    plot: Option<Markup>,
    numbers: Vec<Line>,
}

impl Cells {
    fn of(answer: &Answer<'_>, case: &Case, is_of_paper: bool) -> Self {
        let (word, reason) = answer.verdict(case, is_of_paper);
        let label = plain(&case.label);
        let colon = if label.is_empty() { "" } else { ": " };
        let mut verdict = VERDICT.strong(&format!("{label}{colon}{word}"));
        verdict.extend(VERDICT.soft(&plain(&reason)));
        let (number, inputs) = number_and_inputs(&plain(&case.figures));
        let mut numbers = NUMBERS.text(&number);
        numbers.extend(NUMBERS.soft(&inputs));
        if let Some(doubt) = case.doubts.text().filter(|_| case.is_measured()) {
            numbers.extend(NUMBERS.soft(&format!("Uncertain: {doubt}")));
        }
        let plot = case.figure.map(|figure| forest::plot(answer.finding, figure));
        Self { verdict, is_judged: answer.judges(case), plot, numbers }
    }

    fn height(&self) -> f64 {
        block(&self.verdict).max(block(&self.numbers))
    }

    fn drawn(&self, top: f64) -> Markup {
        html! {
            (VERDICT.drawn(&self.verdict, top))
            @if let Some(plot) = &self.plot {
                svg class=[(!self.is_judged).then_some("not-judged")] x=(PLOT) y=(top + 3.0) width=(forest::WIDTH)
                    height=(forest::HEIGHT) { (plot) }
            }
            (NUMBERS.drawn(&self.numbers, top))
        }
    }
}

/// What the parts of the drawings mean, and which claims are not judged.
fn legend(answers: &[Answer<'_>]) -> Vec<Line> {
    let mut legend = LEGEND.soft(&format!("{}.", sentence(BANDS)));
    legend.extend(LEGEND.soft(OTHER_PARTS));
    legend.extend(unjudged(answers).into_iter().flat_map(|text| LEGEND.soft(&text)));
    legend
}

/// The parts of the drawings that the page does not explain.
const OTHER_PARTS: &str = "Intervals, also those in brackets, have 95 % confidence. The thin vertical line marks no \
                           effect; an arrow stands for a number beyond the edge.";
