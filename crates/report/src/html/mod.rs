//! The report: one HTML file that holds everything it needs and works from `file://`, without a network.
//!
//! Text, tables, notes and the numbers behind every chart are plain HTML. Charts, histograms and the table of all
//! points are drawn by the page's script from packed data (`pack`) with the vendored plotly.js. The page forbids
//! itself to load anything (a content policy), and runs no script but its own: every text of the record is escaped,
//! and scripts carry a nonce that the text cannot know.

mod chart;
mod data;
mod distributions;
mod environments;
mod escape;
mod figures;
mod findings;
mod glossary;
mod histogram;
mod links;
mod overview;
mod pack;
mod points;
mod published;
mod surface;
mod system;
mod table;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use measure::presentation::Patterns;
use measure::record::{Point, Run};

use crate::error::Error;
use crate::{Points, SampleSource};
use escape::escape;

const CSS: &str = concat!(
    include_str!("../../assets/theme.css"),
    include_str!("../../assets/layout.css"),
    include_str!("../../assets/print.css"),
);
const SCRIPT: &str = concat!(
    include_str!("../../assets/page.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/histogram.js"),
    include_str!("../../assets/panels.js"),
    include_str!("../../assets/points.js"),
    include_str!("../../assets/start.js"),
);
const ERRORS: &str = include_str!("../../assets/errors.js");
const PLOTLY: &[u8] = include_bytes!("../../assets/plotly-cartesian.min.js");

/// Writes the report of a run.
///
/// Samples that cannot be loaded do not end the report: it says so where their histogram would be.
pub fn write(
    run: &Run,
    points: &[Point],
    patterns: Patterns,
    samples: &dyn SampleSource,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let shown = Points { points, devices: &run.devices, patterns };
    let figures = figures::render(run, shown, samples);
    let data = data::collect(shown, figures.charts, samples);
    let overview = overview::render(run, shown, data.unreadable.as_ref());
    let data = serde_json::to_vec(&data)?;
    let nonce = nonce(&data);
    out.write_all(head(run, &nonce).as_bytes())?;
    out.write_all(overview.as_bytes())?;
    let findings = findings::render(run, shown);
    let first = (!findings.is_empty()).then(|| (findings::ID.to_owned(), findings::title(run).to_owned()));
    let headings: Vec<_> = first.into_iter().chain(figures.headings).collect();
    out.write_all(contents(&headings).as_bytes())?;
    out.write_all(b"<main>\n")?;
    out.write_all(findings.as_bytes())?;
    out.write_all(figures.html.as_bytes())?;
    out.write_all(include_bytes!("../../assets/explorer.html"))?;
    out.write_all(system::render(run, points).as_bytes())?;
    out.write_all(plan(run).as_bytes())?;
    out.write_all(glossary::render(shown).as_bytes())?;
    out.write_all(b"</main>\n</div>\n")?;
    out.write_all(footer(run).as_bytes())?;
    out.write_all(pack::packed("data", &data)?.as_bytes())?;
    out.write_all(pack::packed("plotly", PLOTLY)?.as_bytes())?;
    write!(out, "<script nonce=\"{nonce}\">\n(() => {{\n\"use strict\";\n{SCRIPT}}})();\n</script>\n")?;
    out.write_all(b"</body>\n</html>\n")?;
    Ok(())
}

fn head(run: &Run, nonce: &str) -> String {
    let title = escape(&run.title);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data: blob:; \
         base-uri 'none'; form-action 'none'"
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"{name} {version}\">\n\
         <title>{title}</title>\n<script nonce=\"{nonce}\">\n{ERRORS}</script>\n\
         <style>\n{CSS}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#contents\">Skip to the contents</a>\n",
        name = escape(&run.program.name),
        version = escape(&run.program.version),
    )
}

/// Opens the two-column frame of contents and main part.
fn contents(headings: &[(String, String)]) -> String {
    let fixed = [
        ("distributions", "Distributions"),
        ("all-points", "All points"),
        ("system", "System"),
        ("plan", "Plan"),
        ("glossary", "Definitions"),
    ];
    let item = |id: &str, title: &str| format!("<li><a href=\"#{id}\">{title}</a></li>\n");
    let figures: String = headings.iter().map(|(id, title)| item(id, &escape(title))).collect();
    let rest: String = fixed.iter().map(|(id, title)| item(id, title)).collect();
    format!(
        "<div class=\"frame\">\n<nav id=\"contents\" aria-label=\"Contents\">\n\
         <details id=\"contents-list\" open><summary>Contents</summary>\n<ul>\n{figures}</ul>\n\
         <ul>\n{rest}</ul>\n</details>\n</nav>\n"
    )
}

fn plan(run: &Run) -> String {
    let plan = serde_json::to_string_pretty(&run.plan).unwrap_or_default();
    format!(
        "<section id=\"plan\">\n<h2>Plan</h2>\n<p>The plan as it was resolved: every default filled in, every axis \
         expanded.</p>\n<details><summary>Resolved plan (JSON)</summary>\n<pre class=\"code\">{}</pre>\n\
         </details>\n</section>\n",
        escape(&plan)
    )
}

fn footer(run: &Run) -> String {
    format!(
        "<footer>\n<p>Written by {name} {version} from the record of the run alone (schema {schema}). This file needs \
         no network. Charts: plotly.js 4.1.1, MIT licence, copyright Plotly, Inc.</p>\n</footer>\n",
        name = escape(&run.program.name),
        version = escape(&run.program.version),
        schema = run.schema_version
    )
}

/// A nonce that differs with everything that the page shows, yet is the same for the same record.
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
