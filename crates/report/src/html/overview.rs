//! The head of the report: what was run, when, and how it ended, with warnings first.

use maud::{Markup, html};
use measure::record::{Point, Run, Status};
use measure::text;
use serde_json::Value;

use super::prose::prose;
use crate::list::{distinct, grouped};
use crate::reason::{self, Merged};
use crate::varying::Varying;
use crate::{Points, placement, unit, value};

/// How the points of a run ended.
#[derive(Default)]
struct Verdict {
    measured: u64,
    unstable: Vec<Trouble>,
    not_measured: Vec<Merged>,
    failed: Vec<Trouble>,
    missing: u64,
}

/// A reason and the points that have it, by id and name.
struct Trouble {
    text: String,
    points: Vec<(u64, String)>,
}

/// The head of the report. `first` answers what was asked.
pub(super) fn render(run: &Run, shown: Points<'_>, first: &Markup, unreadable: Option<&String>) -> Markup {
    let verdict = Verdict::of(run, shown);
    html! {
        header {
            @if let Some(text) = placement::headline(shown.points) {
                p class="warnings" role="note" { (prose(&text)) }
            }
            p class="kicker" { (run.program.name) " report" }
            h1 { (run.title) }
            @if run.quick {
                p class="badge" { "Quick form of the plan: fewer messages, fewer steps" }
            }
            (first)
        }
        section class="verdict" aria-label="Verdict" {
            (verdict.tiles())
            (verdict.failures())
            details id="trust" {
                summary { "What limits these numbers" }
                (warnings(run, unreadable))
                (verdict.reasons())
            }
            details class="about" {
                summary { "What was asked, when, and by which command" }
                @for text in paragraphs(run.about.as_deref().unwrap_or_default()) {
                    p class="about" { (prose(text)) }
                }
                (facts(run))
            }
        }
    }
}

impl Verdict {
    fn of(run: &Run, shown: Points<'_>) -> Self {
        let points = shown.points;
        let mut verdict = Self::default();
        let mut varying = Varying::default();
        points.iter().for_each(|point| varying.see(point));
        for point in points {
            let rows = shown.patterns.of(&point.pattern).row_axes;
            match &point.status {
                Status::Measured => verdict.measured += 1,
                Status::NotMeasured { reason } => reason::add(&mut verdict.not_measured, reason, ""),
                Status::Failed { error } => add(&mut verdict.failed, error, point, rows, &varying),
            }
            if let Some(reason) = &point.unstable {
                add(&mut verdict.unstable, reason, point, rows, &varying);
            }
        }
        verdict.missing = run.points_planned.saturating_sub(points.len() as u64);
        verdict
    }

    fn tiles(&self) -> Markup {
        let all = |list: &[Trouble]| list.iter().map(|t| t.points.len() as u64).sum::<u64>();
        let tiles = [
            (self.measured, "measured", "good"),
            (all(&self.unstable), "of these, unstable", "warn"),
            (self.not_measured.iter().map(|m| m.count).sum(), "not measured", "quiet"),
            (all(&self.failed), "failed", "bad"),
            (self.missing, "missing: the run ended early", "bad"),
        ];
        let is_shown = |number: u64, label: &str| number > 0 || !label.starts_with("missing");
        html! {
            dl class="tiles" {
                @for (number, label, class) in tiles {
                    @if is_shown(number, label) {
                        div class={ "tile " (if number == 0 { "none" } else { class }) } {
                            dt { (label) }
                            dd { (number) }
                        }
                    }
                }
            }
        }
    }

    /// What failed, which is never folded.
    fn failures(&self) -> Markup {
        list("Failed", "bad", &self.failed.iter().map(Trouble::item).collect::<Vec<_>>())
    }

    fn reasons(&self) -> Markup {
        let causes = grouped(self.unstable.iter().map(|trouble| (reason::cause(&trouble.text), trouble)));
        let causes: Vec<Markup> = causes.iter().map(|(_, troubles)| of_one_cause(troubles)).collect();
        let item =
            |m: &Merged| html! { (prose(&m.text())) " " span class="count" { (text::points(m.count)) } };
        let not_measured: Vec<Markup> = self.not_measured.iter().map(item).collect();
        html! {
            (list("Unstable: something disturbed these points, so their numbers may be wrong", "warn", &causes))
            (list("Not measured", "quiet", &not_measured))
        }
    }
}

/// The reasons of one cause: the first, and the others behind a line that counts them.
fn of_one_cause(troubles: &[&Trouble]) -> Markup {
    let Some((first, rest)) = troubles.split_first() else { return html! {} };
    let points: usize = rest.iter().map(|trouble| trouble.points.len()).sum();
    html! {
        (first.item())
        @if !rest.is_empty() {
            details {
                summary { "and the same of " (text::points(points as u64)) " more" }
                ul { @for trouble in rest { li { (trouble.item()) } } }
            }
        }
    }
}

impl Trouble {
    /// The text with links to the first few of its points.
    fn item(&self) -> Markup {
        let rest = self.points.len().saturating_sub(LINKS_MAX);
        html! {
            (prose(&self.text)) " "
            span class="where" {
                (text::points(self.points.len() as u64)) ": "
                @for (index, (id, name)) in self.points.iter().take(LINKS_MAX).enumerate() {
                    @if index > 0 { "; " }
                    a href={ "#histogram=" (id) } { (name) }
                }
                @if rest > 0 { " and " (rest) " more" }
            }
        }
    }
}

/// The largest number of points that a reason names.
const LINKS_MAX: usize = 4;
/// The largest number of reasons that are visible at once; a disturbed run has a different one for
/// every point.
const ITEMS_MAX: usize = 8;

fn add(list: &mut Vec<Trouble>, text: &str, point: &Point, rows: &[&str], varying: &Varying) {
    let is_told =
        |name: &str| name != "size_bytes" && (rows.contains(&name) || varying.has(&point.experiment, name));
    let size = point.axes.get("size_bytes").and_then(Value::as_u64);
    let size = size.map(|bytes| format!(" {}", unit::size(bytes))).unwrap_or_default();
    let others = point.axes.iter().filter(|(name, _)| is_told(name));
    let others: String = others.map(|(name, axis)| format!(", {name} {}", value::text(axis))).collect();
    let name = format!("{}{size}{others}, repetition {}", point.experiment, u64::from(point.repetition) + 1);
    match list.iter_mut().find(|known| known.text == text) {
        Some(known) => known.points.push((point.id, name)),
        None => list.push(Trouble { text: text.to_owned(), points: vec![(point.id, name)] }),
    }
}

/// A box with a heading and items of HTML, of which all but the first few are folded; empty without
/// items.
fn list(heading: &str, class: &str, items: &[Markup]) -> Markup {
    let all = |items: &[Markup]| html! { ul { @for item in items { li { (item) } } } };
    let (first, rest) = items.split_at(items.len().min(ITEMS_MAX));
    html! {
        @if !items.is_empty() {
            div class={ "reasons " (class) } {
                h2 { (heading) }
                (all(first))
                @if !rest.is_empty() {
                    details { summary { "and " (rest.len()) " more" } (all(rest)) }
                }
            }
        }
    }
}

fn warnings(run: &Run, unreadable: Option<&String>) -> Markup {
    let warnings = distinct(run.warnings.iter().chain(unreadable));
    html! {
        @if !warnings.is_empty() {
            div class="warnings" role="note" {
                h2 { "What limits the numbers of this run" }
                ul { @for text in warnings { li { (prose(text)) } } }
            }
        }
    }
}

fn facts(run: &Run) -> Markup {
    let command = run.command.iter().map(|word| text::shell_word(word)).collect::<Vec<_>>().join(" ");
    html! {
        dl class="facts" {
            div { dt { "Started" } dd { (date(&run.started)) } }
            div {
                dt { "Ended" }
                dd {
                    @match &run.ended {
                        Some(ended) => (date(ended)),
                        None => strong { "did not end" },
                    }
                }
            }
            div { dt { "Program" } dd { (run.program.name) " " (run.program.version) } }
            div class="wide" { dt { "Command" } dd { code { (command) } } }
        }
    }
}

/// An RFC 3339 time without its fraction, for readers; the attribute `datetime` has the whole time.
fn date(text: &str) -> Markup {
    let seconds = text.split('.').next().unwrap_or(text).replace('T', " ");
    let seconds = seconds.trim_end_matches('Z').trim_end_matches("+00:00");
    html! { time datetime=(text) { (seconds) " UTC" } }
}

fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty())
}
