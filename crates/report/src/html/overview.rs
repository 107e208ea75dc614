//! The head of the report: what was run, when and how it ended; warnings before anything else.

use maud::{Markup, html};
use measure::record::{Point, Run, Status};
use serde_json::Value;

use crate::list::distinct;
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

/// One trouble and the points that have it: id and name.
struct Trouble {
    text: String,
    points: Vec<(u64, String)>,
}

/// The head of the page.
pub(super) fn render(run: &Run, shown: Points<'_>, unreadable: Option<&String>) -> Markup {
    let verdict = Verdict::of(run, shown);
    html! {
        header {
            @if let Some(text) = placement::headline(shown.points) {
                p class="warnings" role="note" { (text) }
            }
            p class="kicker" { (run.program.name) " report" }
            h1 { (run.title) }
            @if run.quick {
                p class="badge" { "Quick form of the plan: fewer messages, fewer steps" }
            }
            @for text in paragraphs(run.about.as_deref().unwrap_or_default()) {
                p class="about" { (text) }
            }
            (facts(run))
        }
        section class="verdict" aria-label="Verdict" {
            (verdict.tiles())
            (warnings(run, unreadable))
            (verdict.reasons())
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
            (all(&self.unstable), "of them unstable", "warn"),
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

    fn reasons(&self) -> Markup {
        let troubles = |list: &[Trouble]| list.iter().map(Trouble::item).collect::<Vec<_>>();
        let item = |m: &Merged| html! { (m.text()) " " span class="count" { (of(m.count)) } };
        let not_measured: Vec<Markup> = self.not_measured.iter().map(item).collect();
        html! {
            (list("Failed", "bad", &troubles(&self.failed)))
            (list("Unstable: do not trust these numbers", "warn", &troubles(&self.unstable)))
            (list("Not measured", "quiet", &not_measured))
        }
    }
}

impl Trouble {
    /// The text with links to the first few of its points.
    fn item(&self) -> Markup {
        let rest = self.points.len().saturating_sub(LINKS_MAX);
        html! {
            (self.text) " "
            span class="where" {
                (of(self.points.len() as u64)) ": "
                @for (index, (id, name)) in self.points.iter().take(LINKS_MAX).enumerate() {
                    @if index > 0 { "; " }
                    a href={ "#histogram=" (id) } { (name) }
                }
                @if rest > 0 { " and " (rest) " more" }
            }
        }
    }
}

/// Points that a trouble names.
const LINKS_MAX: usize = 4;
/// Reasons that are seen at once; a disturbed run has another one for every point.
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

/// A box with a heading and items of HTML, those after the first few to be unfolded; nothing
/// without items.
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
                h2 { "Before you trust a number" }
                ul { @for text in warnings { li { (text) } } }
            }
        }
    }
}

fn facts(run: &Run) -> Markup {
    let command = run.command.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
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

/// An RFC 3339 time without its fraction, easier on the eye; the whole of it in the `datetime`
/// attribute.
fn date(text: &str) -> Markup {
    let seconds = text.split('.').next().unwrap_or(text).replace('T', " ");
    let seconds = seconds.trim_end_matches('Z').trim_end_matches("+00:00");
    html! { time datetime=(text) { (seconds) " UTC" } }
}

/// A word of a command as a shell would take it.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty())
}

fn of(points: u64) -> String {
    if points == 1 { "1 point".to_owned() } else { format!("{points} points") }
}
