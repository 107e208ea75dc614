//! The page of a comparison or a trend: one HTML file in the style of the report, without scripts.

use std::io::Write;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use measure::text::plain;

use super::comparison::Word;
use super::sheet::{Line, Sheet};
use crate::Error;
use crate::html::prose::sentence;
use crate::html::{CSS, forest};

/// The page may load and run nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// What the report's styles do not have.
const OWN: &str = "
main.comparison { max-width: 72rem; margin: 0 auto; padding: 1rem 1.2rem 3rem; }
.comparison h2 { margin-top: 1.6rem; }
.comparison table { width: 100%; border-collapse: collapse; }
.comparison td:not(:first-child, .said) { white-space: nowrap; }
.comparison .said { min-width: 9rem; }
.comparison th, .comparison td { text-align: right; padding: 0.2rem 0.6rem; border-top: 1px solid var(--line); }
.comparison :is(th, td):is(:first-child, .said) { text-align: left; }
.comparison :is(.worse, .failed, .differs) { color: var(--warn); font-weight: 600; }
.comparison .series { display: grid; grid-template-columns: auto 1fr; gap: 0.2rem 0.6rem; margin: 0; }
.comparison .series svg { width: 100%; height: 9rem; background: var(--sunken); }
.comparison .series div { display: flex; justify-content: space-between; color: var(--soft); font-size: 0.9rem; }
.comparison .series .numbers { flex-direction: column; text-align: right; white-space: nowrap; }
.comparison .series .runs { grid-column: 2; overflow-wrap: anywhere; }
.comparison .series .run { fill: var(--ink); }
.comparison .series .change { stroke: var(--warn); stroke-width: 1.5; }
";

impl Sheet {
    /// Writes the page.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write_page(&self, out: &mut dyn Write) -> Result<(), Error> {
        let title = format!("rdmascope {}", self.name);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) }
                    style { "\n" (PreEscaped(CSS)) (PreEscaped(OWN)) }
                }
                body {
                    main class="comparison" {
                        h1 { (title) }
                        p class={ "answer " (self.answer_class()) } { strong { "Verdict: " (self.sentence) } }
                        ul { @for line in &self.about { li { (line) } } }
                        (self.tables())
                        (self.drawings())
                        @for (heading, list) in self.lists.iter().filter(|(_, list)| !list.is_empty()) {
                            h2 { (sentence(heading)) }
                            ul { @for line in list { li { (plain(line)) } } }
                        }
                    }
                }
            }
            "\n"
        };
        Ok(out.write_all(page.into_string().as_bytes())?)
    }

    fn tables(&self) -> Markup {
        let figures: Vec<_> = self.lines.iter().filter_map(|line| line.ratio).collect();
        let mut plots = forest::ratios(&figures, self.same).into_iter();
        let has_plots = !figures.is_empty();
        html! {
            @for group in self.lines.chunk_by(|a, b| a.group == b.group) {
                h2 { (group[0].group) }
                div class="scroll" tabindex="0" role="region" aria-label=(group[0].group) {
                    table {
                        thead { tr {
                            @for name in &self.head { th scope="col" { (name) } }
                            @if has_plots { th scope="col" { "ratio" } }
                            th scope="col" class="said" { "verdict" }
                        } }
                        tbody { @for line in group {
                            tr {
                                @for cell in &line.cells { td { (cell) } }
                                @if has_plots {
                                    td { @if line.ratio.is_some() { @if let Some(plot) = plots.next() { (plot) } } }
                                }
                                td class={ "said " (class(line)) } { (line.said()) }
                            }
                        } }
                    }
                }
            }
        }
    }

    /// The class of the answer.
    fn answer_class(&self) -> &'static str {
        match self.verdict {
            Word::Worse | Word::Failed => "culprits",
            Word::Undecided | Word::Differs => "undecided",
            Word::Same | Word::Better => "healthy",
        }
    }

    fn drawings(&self) -> Markup {
        html! {
            @for line in &self.lines {
                @if let Some(drawing) = &line.drawing {
                    h3 { (line.group) " " (line.cells[0]) }
                    (drawing)
                }
            }
        }
    }
}

fn class(line: &Line) -> &'static str {
    match line.verdict {
        Word::Worse => "worse",
        Word::Failed => "failed",
        Word::Differs => "differs",
        Word::Same | Word::Better | Word::Undecided => "",
    }
}
