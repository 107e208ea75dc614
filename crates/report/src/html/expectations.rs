//! The table of the expectations: each bound, and whether this run keeps it.

use maud::{Markup, html};

use super::prose::prose;
use super::table;
use crate::expectations::{Case, Judged, Judgement, score};

/// The id of the section.
pub(super) const ID: &str = "expectations";
/// Its heading.
pub(super) const TITLE: &str = "Expectations";

/// The section; empty for a run without expectations.
pub(super) fn render(judged: &[Judged<'_>]) -> Markup {
    if judged.is_empty() {
        return html! {};
    }
    let head = html! {
        thead {
            tr {
                th scope="col" { "Expectation" }
                th scope="col" { "Points" }
                th scope="col" { "Judgement" }
                th scope="col" { "This run" }
            }
        }
    };
    let bodies = html! { @for one in judged { (rows(one)) } };
    html! {
        section id=(ID) {
            h2 { (TITLE) }
            dl class="score" {
                @for (word, count) in score(judged) {
                    div class=(class_of(word)) { dt { (word) } dd { (count) } }
                }
            }
            p class="caption" {
                "The plan or the command line sets these bounds. A bound is met, or not met, if the whole 95 % interval "
                "[in brackets] of the number lies on one side of it. A number without an interval decides alone."
            }
            (table::frame(TITLE, "findings", &head, &bodies))
        }
    }
}

/// The class of a judgement's word: the colours of findings.
fn class_of(word: &str) -> &'static str {
    match word {
        "met" => "reproduced",
        "not met" => "contradicted",
        _ => "inconclusive",
    }
}

fn rows(judged: &Judged<'_>) -> Markup {
    let expectation = judged.expectation;
    html! {
        tbody {
            @for (index, case) in judged.cases.iter().enumerate() {
                tr {
                    @if index == 0 {
                        th scope="rowgroup" rowspan=(judged.cases.len()) {
                            (expectation.to_string())
                            @if let Some(reason) = &expectation.reason { small { (reason) } }
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
    let class = class_of(case.judgement.word());
    let is_measured = !case.figure.is_empty();
    html! {
        td { @if case.label.is_empty() { "–" } @else { (case.label) } }
        td class=(class) colspan=[(!is_measured).then_some("2")] {
            strong { (case.judgement.word()) }
            @if let Judgement::NotDecided(why) = &case.judgement { small { (prose(why)) } }
        }
        @if is_measured {
            td class=(class) {
                @match case.id {
                    Some(id) => a href={ "#histogram=" (id) } { (case.figure) },
                    None => (case.figure),
                }
                @if let Some(limit) = &case.limit { small { "limit " (limit) } }
            }
        }
    }
}
