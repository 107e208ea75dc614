//! The head of the report: what was run, when and how it ended; warnings before anything else.

use std::collections::BTreeMap;

use measure::record::{Point, Run, Status};
use serde_json::Value;

use super::escape::escape;
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
pub(super) fn render(run: &Run, shown: Points<'_>, unreadable: Option<&String>) -> String {
    let verdict = Verdict::of(run, shown);
    let quick = if run.quick {
        "<p class=\"badge\">Quick form of the plan: fewer messages, fewer steps</p>\n"
    } else {
        ""
    };
    let about = run.about.as_deref().map(|text| paragraphs(text, "about")).unwrap_or_default();
    let headline = placement::headline(shown.points);
    let headline =
        headline.map(|text| format!("<p class=\"warnings\" role=\"note\">{}</p>\n", escape(&text)));
    format!(
        "<header>\n{headline}<p class=\"kicker\">{program} report</p>\n<h1>{title}</h1>\n{quick}{about}{facts}</header>\n\
         <section class=\"verdict\" aria-label=\"Verdict\">\n{tiles}{warnings}{reasons}</section>\n",
        headline = headline.unwrap_or_default(),
        program = escape(&run.program.name),
        title = escape(&run.title),
        facts = facts(run),
        tiles = verdict.tiles(),
        warnings = warnings(run, unreadable),
        reasons = verdict.reasons(),
    )
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

    fn tiles(&self) -> String {
        let all = |list: &[Trouble]| list.iter().map(|t| t.points.len() as u64).sum::<u64>();
        let tiles = [
            (self.measured, "measured", "good"),
            (all(&self.unstable), "of them unstable", "warn"),
            (self.not_measured.iter().map(|m| m.count).sum(), "not measured", "quiet"),
            (all(&self.failed), "failed", "bad"),
            (self.missing, "missing: the run ended early", "bad"),
        ];
        let tile = |(number, label, class): (u64, &str, &str)| {
            let class = if number == 0 { "none" } else { class };
            format!("<div class=\"tile {class}\"><dt>{label}</dt><dd>{number}</dd></div>\n")
        };
        let shown =
            tiles.into_iter().filter(|(number, label, _)| *number > 0 || !label.starts_with("missing"));
        format!("<dl class=\"tiles\">\n{}</dl>\n", shown.map(tile).collect::<String>())
    }

    fn reasons(&self) -> String {
        let troubles = |list: &[Trouble]| list.iter().map(Trouble::item).collect::<Vec<_>>();
        let item = |m: &Merged| format!("{} <span class=\"count\">{}</span>", escape(&m.text()), of(m.count));
        let not_measured: Vec<String> = self.not_measured.iter().map(item).collect();
        [
            list("Failed", "bad", &troubles(&self.failed)),
            list("Unstable: do not trust these numbers", "warn", &troubles(&self.unstable)),
            list("Not measured", "quiet", &not_measured),
        ]
        .concat()
    }
}

impl Trouble {
    /// The text with links to the first few of its points.
    fn item(&self) -> String {
        let link = |(id, name): &(u64, String)| format!("<a href=\"#histogram={id}\">{}</a>", escape(name));
        let links: Vec<String> = self.points.iter().take(LINKS_MAX).map(link).collect();
        let rest = self.points.len() - links.len();
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let text = escape(&self.text);
        format!(
            "{text} <span class=\"where\">{}: {}{rest}</span>",
            of(self.points.len() as u64),
            links.join("; ")
        )
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
    let name = format!("{}{size}{others}, repetition {}", point.experiment, point.repetition + 1);
    match list.iter_mut().find(|known| known.text == text) {
        Some(known) => known.points.push((point.id, name)),
        None => list.push(Trouble { text: text.to_owned(), points: vec![(point.id, name)] }),
    }
}

/// A box with a heading and items of HTML, those after the first few to be unfolded; nothing without items.
fn list(heading: &str, class: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let all = |items: &[String]| -> String {
        let items: String = items.iter().map(|item| format!("<li>{item}</li>\n")).collect();
        format!("<ul>\n{items}</ul>\n")
    };
    let (first, rest) = items.split_at(items.len().min(ITEMS_MAX));
    let rest = match rest.len() {
        0 => String::new(),
        more => format!("<details><summary>and {more} more</summary>\n{}</details>\n", all(rest)),
    };
    format!("<div class=\"reasons {class}\">\n<h2>{heading}</h2>\n{}{rest}</div>\n", all(first))
}

fn warnings(run: &Run, unreadable: Option<&String>) -> String {
    let mut seen = BTreeMap::new();
    let warnings: Vec<&String> = run
        .warnings
        .iter()
        .chain(unreadable)
        .filter(|text| seen.insert(text.as_str(), ()).is_none())
        .collect();
    if warnings.is_empty() {
        return String::new();
    }
    let items: String = warnings.iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
    format!(
        "<div class=\"warnings\" role=\"note\">\n<h2>Before you trust a number</h2>\n<ul>\n{items}</ul>\n</div>\n"
    )
}

fn facts(run: &Run) -> String {
    let ended = match &run.ended {
        Some(ended) => date(ended),
        None => "<strong>did not end</strong>".to_owned(),
    };
    let command = run.command.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    format!(
        "<dl class=\"facts\">\n<div><dt>Started</dt><dd>{started}</dd></div>\n<div><dt>Ended</dt><dd>{ended}</dd></div>\n\
         <div><dt>Program</dt><dd>{name} {version}</dd></div>\n\
         <div class=\"wide\"><dt>Command</dt><dd><code>{command}</code></dd></div>\n</dl>\n",
        started = date(&run.started),
        name = escape(&run.program.name),
        version = escape(&run.program.version),
        command = escape(&command),
    )
}

/// An RFC 3339 time without its fraction, easier on the eye; the whole of it in the `datetime` attribute.
fn date(text: &str) -> String {
    let seconds = text.split('.').next().unwrap_or(text).replace('T', " ");
    let seconds = seconds.trim_end_matches('Z').trim_end_matches("+00:00");
    format!("<time datetime=\"{}\">{} UTC</time>", escape(text), escape(seconds))
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

fn paragraphs(text: &str, class: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|p| !p.trim().is_empty());
    paragraphs.map(|p| format!("<p class=\"{class}\">{}</p>\n", escape(p.trim()))).collect()
}

fn of(points: u64) -> String {
    if points == 1 { "1 point".to_owned() } else { format!("{points} points") }
}
