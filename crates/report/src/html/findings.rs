//! The table of the findings: the claim and its published numbers, and what this run says to it.

use measure::record::{Point, Run};

use super::escape::escape;
use crate::findings::{Answer, Case, Verdict, answer, summary};

/// The id of the section.
pub(super) const ID: &str = "findings";
/// Its heading.
pub(super) const TITLE: &str = "Findings of the paper";

/// The section; nothing for a plan without findings.
pub(super) fn render(run: &Run, points: &[Point]) -> String {
    if run.findings.is_empty() {
        return String::new();
    }
    let answers = answer(&run.findings, points);
    let rows: String = answers.iter().map(rows).collect();
    format!(
        "<section id=\"{ID}\">\n<h2>{TITLE}</h2>\n<p class=\"caption\">Whether this run shows what was published: {}. \
         A finding is shown if the figure and all of its 95 % interval [in brackets] lie in the range that stands below the \
         claim; what has no interval, as the maximum of one run, decides nothing.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{TITLE}\">\n\
         <table class=\"findings\">\n<caption class=\"hidden\">{TITLE}</caption>\n<thead><tr><th scope=\"col\">Claim</th>\
         <th scope=\"col\">Published</th><th scope=\"col\">Verdict</th><th scope=\"col\">This run</th></tr></thead>\n\
         {rows}</table>\n</div>\n</section>\n",
        summary(&answers)
    )
}

fn rows(answer: &Answer<'_>) -> String {
    let finding = answer.finding;
    let published = finding.published.as_deref().map_or_else(|| "–".to_owned(), escape);
    let source = finding.source.as_deref().map(|text| format!("<small>{}</small>", escape(text)));
    let span = answer.cases.len();
    let head = format!(
        "<th scope=\"rowgroup\" rowspan=\"{span}\">{claim}<small>shown if {holds}</small></th>\
         <td rowspan=\"{span}\" class=\"published\">{published}{source}</td>",
        claim = escape(&finding.claim),
        holds = escape(&finding.holds.to_string()),
        source = source.unwrap_or_default(),
    );
    let row = |(index, case): (usize, &Case)| {
        format!("<tr>{}{}</tr>\n", if index == 0 { head.as_str() } else { "" }, cells(case))
    };
    format!("<tbody>\n{}</tbody>\n", answer.cases.iter().enumerate().map(row).collect::<String>())
}

fn cells(case: &Case) -> String {
    let (class, verdict, why) = match &case.verdict {
        Verdict::Shown => ("shown", "shown", ""),
        Verdict::NotShown(why) => ("not-shown", "not shown", *why),
        Verdict::NotDecided(why) => ("not-decided", "not decided", *why),
        Verdict::NotMeasured(reason) => ("not-measured", "not measured", reason.as_str()),
    };
    let why = if why.is_empty() { String::new() } else { format!("<small>{}</small>", escape(why)) };
    let label = if case.label.is_empty() {
        String::new()
    } else {
        format!("<b class=\"case\">{}</b> ", escape(&case.label))
    };
    let verdict = format!("{label}<strong>{verdict}</strong>{why}");
    if matches!(case.verdict, Verdict::NotMeasured(_)) {
        return format!("<td class=\"{class}\" colspan=\"2\">{verdict}</td>");
    }
    let figures = match case.ids.first() {
        Some(id) => format!("<a href=\"#histogram={id}\">{}</a>", figures(&case.figures)),
        None => figures(&case.figures),
    };
    let first = case.doubts.first.as_deref().map(|reason| format!(", the first: {}", escape(reason)));
    let doubts = case.doubts.text().map(|doubt| {
        format!("<small class=\"doubt\">Do not trust it: {doubt}{}</small>", first.unwrap_or_default())
    });
    let doubts = doubts.unwrap_or_default();
    format!("<td class=\"{class}\">{verdict}</td><td>{figures}{doubts}</td>")
}

/// The figure, and below it the numbers that it is made of. No line ends between a number and its unit.
fn figures(text: &str) -> String {
    let text = escape(text).replace("(n ", "(n\u{a0}").replace(" ns", "\u{a0}ns").replace(" %", "\u{a0}%");
    match text.split_once(": ").filter(|(figure, _)| !figure.contains("; ")) {
        Some((figure, numbers)) => format!("{figure}<small>{numbers}</small>"),
        None => text,
    }
}
