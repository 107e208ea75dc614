//! The table of the findings: each claim with its published numbers, and the answer of this run.

use maud::{Markup, html};
use measure::record::Run;

use super::forest;
use super::prose::prose;
use crate::findings::{Answer, Case, is_of_paper, score};

/// The id of the section.
pub(super) const ID: &str = "findings";

/// Its heading, which depends on whether the findings are those of a paper.
pub(crate) fn title(run: &Run) -> &'static str {
    if is_of_paper(&run.findings) { "Findings of the paper" } else { "Findings" }
}

/// The section; empty for a plan without findings.
pub(super) fn render(run: &Run, answers: &[Answer<'_>]) -> Markup {
    if run.findings.is_empty() {
        return html! {};
    }
    let title = title(run);
    let is_of_paper = is_of_paper(&run.findings);
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
    let bodies = html! { @for answer in answers { (rows(answer, is_of_paper)) } };
    html! {
        section id=(ID) {
            h2 { (title) }
            (scoreboard(answers, is_of_paper))
            p class="caption" {
                "A claim holds if its number and the whole 95 % interval [in brackets] lie in the range below the claim. "
                @if is_of_paper {
                    "It is reproduced if the interval also reaches the published size, where the paper gives one. "
                }
                "An interval that crosses a bound decides nothing; neither does a number without an interval, such as "
                "the maximum of one run. In the drawings " (BANDS) "."
            }
            (super::table::frame(title, "findings", &head, &bodies))
        }
    }
}

/// What a drawing shows.
pub(crate) const BANDS: &str = "the light band is the range of the claim, the dark band the published size, \
                                and the line the interval of this run";

/// How many cases have each verdict.
fn scoreboard(answers: &[Answer<'_>], is_of_paper: bool) -> Markup {
    html! {
        dl class="score" {
            @for (word, count) in score(answers, is_of_paper) {
                div class=(class_of(word)) { dt { (word) } dd { (count) } }
            }
        }
        @if let Some(why) = unjudged(answers) { p class="complaint" { (why) } }
    }
}

/// Why some claims are not judged, and how their numbers are shown.
pub(crate) fn unjudged(answers: &[Answer<'_>]) -> Option<String> {
    let why = answers.iter().find_map(|answer| answer.unjudged)?;
    Some(format!("Claims about networks are not judged: {why}. Their numbers are shown in grey."))
}

/// The class of a verdict's word.
fn class_of(word: &str) -> &'static str {
    match word {
        "reproduced" | "shown" => "reproduced",
        "contradicted" | "not shown" => "contradicted",
        "same direction, other size" => "other-size",
        "inconclusive" => "inconclusive",
        "not judged" => "not-judged",
        _ => "not-measured",
    }
}

fn rows(answer: &Answer<'_>, is_of_paper: bool) -> Markup {
    let finding = answer.finding;
    let claim = html! {
        th scope="row" {
            (finding.claim)
            small { "holds if " (finding.holds.to_string()) }
            @if let Some(matches) = &finding.matches { small { "published size: " (matches.to_string()) } }
        }
        @if is_of_paper {
            td class="published" {
                (finding.published.as_deref().unwrap_or("–"))
                @if let Some(source) = &finding.source { small { (source) } }
            }
        }
    };
    html! {
        tbody {
            @match &answer.cases[..] {
                [only] => tr { (claim) (cells(answer, only, is_of_paper)) },
                cases => tr { (claim) td colspan="2" { (folded(answer, cases, is_of_paper)) } },
            }
        }
        "\n"
    }
}

/// The cases of a claim, behind a line that counts their verdicts.
fn folded(answer: &Answer<'_>, cases: &[Case], is_of_paper: bool) -> Markup {
    let counts = score(std::slice::from_ref(answer), is_of_paper);
    let counts: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    html! {
        details {
            summary {
                @for (index, (word, count)) in counts.iter().enumerate() {
                    @if index > 0 { ", " }
                    strong class=(class_of(word)) { (count) " " (word) }
                }
                " of " (cases.len()) " cases"
            }
            table class="cases" {
                tbody {
                    @for case in cases { tr { (cells(answer, case, is_of_paper)) } "\n" }
                }
            }
        }
    }
}

fn cells(answer: &Answer<'_>, case: &Case, is_of_paper: bool) -> Markup {
    let word = case.verdict.word(is_of_paper);
    let why = case.verdict.why();
    let is_measured = case.is_measured();
    let is_judged = answer.judges(case);
    let class = if is_judged { class_of(word) } else { "not-judged" };
    html! {
        td class=(class) colspan=[(!is_measured).then_some("2")] {
            @if !case.label.is_empty() { b class="case" { (case.label) } " " }
            @if is_judged {
                strong { (word) }
            } @else {
                strong { "not judged" }
                small { "would be " (word) }
            }
            @if !why.is_empty() { small { (prose(why)) } }
        }
        @if is_measured {
            td class=(class) {
                @if let Some(figure) = case.figure { (forest::plot(answer.finding, figure)) }
                @match case.id {
                    Some(id) => a href={ "#histogram=" (id) } { (figures(&case.figures)) },
                    None => (figures(&case.figures)),
                }
                @if let Some(doubt) = case.doubts.text() {
                    small class="doubt" {
                        "Uncertain: " (doubt)
                        @if let Some(reason) = &case.doubts.first { ", the first: " (prose(reason)) }
                    }
                }
            }
        }
    }
}

/// The number, and below it the numbers that it is computed from.
fn figures(text: &str) -> Markup {
    let (number, inputs) = number_and_inputs(text);
    html! { (number) @if !inputs.is_empty() { small { (inputs) } } }
}

/// Takes the numbers of a case apart: the one that is compared with the range, and those that it is
/// computed from, if the text has them. No line breaks between a number and its unit.
pub(crate) fn number_and_inputs(text: &str) -> (String, String) {
    let text = text.replace("(n ", "(n\u{a0}").replace(" ns", "\u{a0}ns").replace(" %", "\u{a0}%");
    match text.split_once(": ").filter(|(number, _)| !number.contains("; ")) {
        Some((number, inputs)) => (number.to_owned(), inputs.to_owned()),
        None => (text, String::new()),
    }
}
