//! The table of the findings: the claim and its published numbers, and what this run says to it.

use measure::record::Run;

use super::escape::escape;
use crate::Points;
use crate::findings::{Answer, Case, Verdict, answer, summary};

/// The id of the section.
pub(super) const ID: &str = "findings";

/// Its heading: a plan may ask questions of its own.
pub(super) fn title(run: &Run) -> &'static str {
    if is_of_paper(run) { "Findings of the paper" } else { "Findings" }
}

fn is_of_paper(run: &Run) -> bool {
    run.findings.iter().any(|finding| finding.published.is_some() || finding.source.is_some())
}

/// The section; nothing for a plan without findings.
pub(super) fn render(run: &Run, points: Points<'_>) -> String {
    if run.findings.is_empty() {
        return String::new();
    }
    let answers = answer(&run.findings, points);
    let (title, is_of_paper) = (title(run), is_of_paper(run));
    let rows: String = answers.iter().map(|answer| rows(answer, is_of_paper)).collect();
    let what = if is_of_paper { "Whether this run shows what was published" } else { "What this run shows" };
    let published = if is_of_paper { "<th scope=\"col\">Published</th>" } else { "" };
    let head = format!(
        "<thead><tr><th scope=\"col\">Claim</th>{published}<th scope=\"col\">Verdict</th><th scope=\"col\">This run</th></tr>\
         </thead>\n"
    );
    format!(
        "<section id=\"{ID}\">\n<h2>{title}</h2>\n<p class=\"caption\">{what}: {}. \
         A finding is shown if the figure and all of its 95 % interval [in brackets] lie in the range that stands below the \
         claim; what has no interval, as the maximum of one run, decides nothing.</p>\n\
         {}</section>\n",
        summary(&answers),
        super::table::frame(title, "findings", &head, &rows)
    )
}

fn rows(answer: &Answer<'_>, is_of_paper: bool) -> String {
    let finding = answer.finding;
    let published = finding.published.as_deref().map_or_else(|| "–".to_owned(), escape);
    let source = finding.source.as_deref().map(|text| format!("<small>{}</small>", escape(text)));
    let span = answer.cases.len();
    let source = source.unwrap_or_default();
    let published = match is_of_paper {
        true => format!("<td rowspan=\"{span}\" class=\"published\">{published}{source}</td>"),
        false => String::new(),
    };
    let head = format!(
        "<th scope=\"rowgroup\" rowspan=\"{span}\">{claim}<small>shown if {holds}</small></th>{published}",
        claim = escape(&finding.claim),
        holds = escape(&finding.holds.to_string()),
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
