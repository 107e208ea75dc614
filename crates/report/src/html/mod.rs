//! The report: one HTML file that contains everything it needs and works from `file://`, without a
//! network.
//!
//! Text, tables, notes and the numbers behind every chart are plain HTML. The page's script draws
//! charts, histograms and the table of all points from packed data (`pack`) with the vendored
//! plotly.js. A content security policy forbids the page to load anything and to run any script but
//! its own: `maud` escapes every text, including those of the record, and scripts carry a nonce
//! that no text of the record can know.

mod boxes;
pub(crate) mod chart;
mod costs;
mod data;
mod distributions;
mod environments;
mod expectations;
mod figures;
pub(crate) mod findings;
mod fleet;
pub(crate) mod forest;
mod glossary;
mod headlines;
pub(crate) mod histogram;
mod links;
pub(crate) mod multiples;
mod overview;
mod pack;
mod points;
pub(crate) mod prose;
mod published;
pub(crate) mod surface;
mod system;
mod table;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use measure::presentation::Patterns;
use measure::record::{Point, Run};

use crate::error::Error;
use crate::expectations::judge;
use crate::findings::{answer, no_network};
use crate::{Points, SampleSource};
use figures::Heading;

pub(crate) const CSS: &str = concat!(
    include_str!("../../assets/theme.css"),
    include_str!("../../assets/layout.css"),
    include_str!("../../assets/print.css"),
);
const SCRIPT: &str = concat!(
    include_str!("../../assets/page.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/explorer.js"),
    include_str!("../../assets/distribution.js"),
    include_str!("../../assets/points.js"),
    include_str!("../../assets/start.js"),
);
const ERRORS: &str = include_str!("../../assets/errors.js");
const EXPLORER: &str = include_str!("../../assets/explorer.html");

/// Writes the report of a run.
///
/// Samples that cannot be loaded do not end the report: the reason takes the place of their
/// histogram.
pub fn write(
    run: &Run,
    points: &[Point],
    patterns: Patterns,
    samples: &dyn SampleSource,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let fleet = crate::fleet::Found::of(run, points);
    let listed = fleet::listed(fleet.as_ref(), points);
    let shown = Points { points: &listed, devices: &run.devices, patterns };
    let figures = figures::render(run, shown, samples);
    let data = data::collect(shown, figures.charts, samples);
    let judged = judge(&run.expectations, &run.plan, shown);
    let answers = answer(&run.findings, shown, no_network(run));
    let first = match &fleet {
        Some(found) => fleet::answer(found),
        None => headlines::render(run, shown, &answers),
    };
    let overview = overview::render(run, shown, &first, data.unreadable.as_ref());
    let data = serde_json::to_vec(&data)?;
    let nonce = nonce(&data);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(run, &nonce))
            body {
                a class="skip" href="#contents" { "Skip to the contents" }
                (overview)
                div class="frame" {
                    (contents(run, &figures.headings))
                    main {
                        (fleet::render(fleet.as_ref(), points))
                        (expectations::render(&judged))
                        (findings::render(run, &answers))
                        (figures.html)
                        (PreEscaped(EXPLORER))
                        (system::render(run, points))
                        (plan(run))
                        (glossary::render(shown))
                    }
                }
                (footer(run))
                (pack::packed("data", &data)?)
                (pack::plotly("plotly"))
                script nonce=(nonce) {
                    (PreEscaped(format!("\n(() => {{\n\"use strict\";\n{SCRIPT}}})();\n")))
                }
            }
        }
        "\n"
    };
    Ok(out.write_all(page.into_string().as_bytes())?)
}

fn head(run: &Run, nonce: &str) -> Markup {
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data: blob:; \
         base-uri 'none'; form-action 'none'"
    );
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="generator" content={ (run.program.name) " " (run.program.version) };
            title { (run.title) }
            script nonce=(nonce) { "\n" (PreEscaped(ERRORS)) }
            style { "\n" (PreEscaped(CSS)) }
        }
    }
}

fn contents(run: &Run, figures: &[Heading]) -> Markup {
    let fixed = [
        ("distributions", "Distributions"),
        ("all-points", "All points"),
        ("system", "System"),
        ("plan", "Plan"),
        ("glossary", "Definitions"),
    ];
    let item = |id: &str, title: &str| html! { li { a href={ "#" (id) } { (title) } } };
    html! {
        nav id="contents" aria-label="Contents" {
            details id="contents-list" open {
                summary { "Contents" }
                ul {
                    @if run.fleet.is_some() { (item(fleet::ID, fleet::TITLE)) }
                    @if !run.expectations.is_empty() { (item(expectations::ID, expectations::TITLE)) }
                    @if !run.findings.is_empty() { (item(findings::ID, findings::title(run))) }
                    @for of_level in figures.chunk_by(|one, next| one.level == next.level) {
                        @match &of_level[0].level {
                            Some((id, name)) => li {
                                a href={ "#" (id) } { (name) }
                                ul { @for figure in of_level { (item(&figure.id, &figure.title)) } }
                            },
                            None => @for figure in of_level { (item(&figure.id, &figure.title)) },
                        }
                    }
                }
                ul { @for (id, title) in fixed { (item(id, title)) } }
            }
        }
    }
}

fn plan(run: &Run) -> Markup {
    html! {
        section id="plan" {
            h2 { "Plan" }
            p { "The plan as it was resolved: every default filled in, every axis expanded." }
            details {
                summary { "Resolved plan (JSON)" }
                pre class="code" tabindex="0" { (serde_json::to_string_pretty(&run.plan).unwrap_or_default()) }
            }
        }
    }
}

fn footer(run: &Run) -> Markup {
    html! {
        footer {
            p {
                "Written by " (run.program.name) " " (run.program.version)
                " from the record of the run alone (schema " (run.schema_version) "). "
                "This file needs no network. "
                "Charts: plotly.js 4.1.1, MIT licence, copyright Plotly, Inc."
            }
        }
    }
}

/// A nonce that differs with everything that the page shows, but is the same for the same record.
fn nonce(data: &[u8]) -> String {
    let hash = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, data).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", hash(1), hash(2))
}

#[cfg(test)]
mod tests;
