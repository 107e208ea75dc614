//! The table of the findings: the claim and its published numbers, and what this run says to it.

use maud::{Markup, html};
use measure::record::Run;

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
pub(super) fn render(run: &Run, points: Points<'_>) -> Markup {
    if run.findings.is_empty() {
        return html! {};
    }
    let answers = answer(&run.findings, points);
    let title = title(run);
    let is_of_paper = is_of_paper(run);
    let head = html! {
        thead {
            tr {
                th scope="col" { "Claim" }
                @if is_of_paper { th scope="col" { "Published" } }
                th scope="col" { "Verdict" }
                th scope="col" { "This run" }
            }
        }
    };
    let bodies = html! { @for answer in &answers { (rows(answer, is_of_paper)) } };
    html! {
        section id=(ID) {
            h2 { (title) }
            p class="caption" {
                @if is_of_paper { "Whether this run shows what was published" }
                @else { "What this run shows" }
                ": " (summary(&answers)) ". A finding is shown if the figure and all of its 95 % "
                "interval [in brackets] lie in the range that stands below the claim; what has no "
                "interval, as the maximum of one run, decides nothing."
            }
            (super::table::frame(title, "findings", &head, &bodies))
        }
    }
}

fn rows(answer: &Answer<'_>, is_of_paper: bool) -> Markup {
    let finding = answer.finding;
    let span = answer.cases.len();
    html! {
        tbody {
            @for (index, case) in answer.cases.iter().enumerate() {
                tr {
                    @if index == 0 {
                        th scope="rowgroup" rowspan=(span) {
                            (finding.claim)
                            small { "shown if " (finding.holds.to_string()) }
                        }
                        @if is_of_paper {
                            td rowspan=(span) class="published" {
                                (finding.published.as_deref().unwrap_or("–"))
                                @if let Some(source) = &finding.source { small { (source) } }
                            }
                        }
                    }
                    (cells(case))
                }
                "\n"
            }
        }
    }
}

fn cells(case: &Case) -> Markup {
    let (class, verdict, why) = match &case.verdict {
        Verdict::Shown => ("shown", "shown", ""),
        Verdict::NotShown(why) => ("not-shown", "not shown", *why),
        Verdict::NotDecided(why) => ("not-decided", "not decided", *why),
        Verdict::NotMeasured(reason) => ("not-measured", "not measured", reason.as_str()),
    };
    let is_measured = !matches!(case.verdict, Verdict::NotMeasured(_));
    html! {
        td class=(class) colspan=[(!is_measured).then_some("2")] {
            @if !case.label.is_empty() { b class="case" { (case.label) } " " }
            strong { (verdict) }
            @if !why.is_empty() { small { (why) } }
        }
        @if is_measured {
            td {
                @match case.id {
                    Some(id) => a href={ "#histogram=" (id) } { (figures(&case.figures)) },
                    None => (figures(&case.figures)),
                }
                @if let Some(doubt) = case.doubts.text() {
                    small class="doubt" {
                        "Do not trust it: " (doubt)
                        @if let Some(reason) = &case.doubts.first { ", the first: " (reason) }
                    }
                }
            }
        }
    }
}

/// The figure, and below it the numbers that it is made of. No line ends between a number and its
/// unit.
fn figures(text: &str) -> Markup {
    let text = text.replace("(n ", "(n\u{a0}").replace(" ns", "\u{a0}ns").replace(" %", "\u{a0}%");
    match text.split_once(": ").filter(|(figure, _)| !figure.contains("; ")) {
        Some((figure, numbers)) => html! { (figure) small { (numbers) } },
        None => html! { (text) },
    }
}
