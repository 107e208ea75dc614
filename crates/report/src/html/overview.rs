//! The head of the report: what was run, when and how it ended; warnings before anything else.

use std::collections::BTreeMap;

use measure::record::{Point, Run, Status};

use super::escape::escape;

/// How the points of a run ended.
#[derive(Default)]
struct Verdict {
    measured: u64,
    unstable: Vec<(String, u64)>,
    not_measured: Vec<(String, u64)>,
    failed: Vec<(String, u64)>,
    missing: u64,
}

/// The head of the page.
pub(super) fn render(run: &Run, points: &[Point], unreadable: &[String]) -> String {
    let verdict = Verdict::of(run, points);
    let quick = if run.quick {
        "<p class=\"badge\">Quick form of the plan: fewer messages, fewer steps</p>\n"
    } else {
        ""
    };
    let about = run.about.as_deref().map(|text| paragraphs(text, "about")).unwrap_or_default();
    format!(
        "<header>\n<p class=\"kicker\">{program} report</p>\n<h1>{title}</h1>\n{quick}{about}{facts}</header>\n\
         <section class=\"verdict\" aria-label=\"Verdict\">\n{tiles}{warnings}{reasons}</section>\n",
        program = escape(&run.program.name),
        title = escape(&run.title),
        facts = facts(run),
        tiles = verdict.tiles(),
        warnings = warnings(run, unreadable),
        reasons = verdict.reasons(),
    )
}

impl Verdict {
    fn of(run: &Run, points: &[Point]) -> Self {
        let mut verdict = Self::default();
        for point in points {
            match &point.status {
                Status::Measured => verdict.measured += 1,
                Status::NotMeasured { reason } => count(&mut verdict.not_measured, reason),
                Status::Failed { error } => count(&mut verdict.failed, error),
            }
            if let Some(reason) = &point.unstable {
                count(&mut verdict.unstable, reason);
            }
        }
        verdict.missing = run.points_planned.saturating_sub(points.len() as u64);
        verdict
    }

    fn tiles(&self) -> String {
        let all = |list: &[(String, u64)]| list.iter().map(|(_, n)| n).sum::<u64>();
        let tiles = [
            (self.measured, "measured", "good"),
            (all(&self.unstable), "of them unstable", "warn"),
            (all(&self.not_measured), "not measured", "quiet"),
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
        let list = |heading: &str, class: &str, reasons: &[(String, u64)]| {
            if reasons.is_empty() {
                return String::new();
            }
            let items: String = reasons
                .iter()
                .map(|(reason, n)| {
                    format!("<li>{} <span class=\"count\">{}</span></li>\n", escape(reason), of(*n))
                })
                .collect();
            format!("<div class=\"reasons {class}\">\n<h2>{heading}</h2>\n<ul>\n{items}</ul>\n</div>\n")
        };
        let failed = list("Failed", "bad", &self.failed);
        let unstable = list("Unstable: do not trust these numbers", "warn", &self.unstable);
        let not_measured = list("Not measured", "quiet", &self.not_measured);
        format!("{failed}{unstable}{not_measured}")
    }
}

fn warnings(run: &Run, unreadable: &[String]) -> String {
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

fn count(list: &mut Vec<(String, u64)>, reason: &str) {
    match list.iter_mut().find(|(known, _)| known == reason) {
        Some((_, n)) => *n += 1,
        None => list.push((reason.to_owned(), 1)),
    }
}

fn of(points: u64) -> String {
    if points == 1 { "1 point".to_owned() } else { format!("{points} points") }
}
