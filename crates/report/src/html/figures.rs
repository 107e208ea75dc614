//! The figures of a plan, each a section of the report.

use maud::{Markup, html};
use measure::figure::{Figure, FigureKind};
use measure::record::Run;

use super::chart::{Chart, Errors};
use super::prose::{prose, sentence};
use super::surface::Tables;
use super::table::nothing;
use super::{boxes, costs, histogram, links, multiples, published, table};
use crate::error::Error;
use crate::series_table::SeriesTable;
use crate::{Points, SampleSource};

/// The figures of a run.
pub(super) struct Figures {
    /// Their sections.
    pub(super) html: Markup,
    /// The link to each.
    pub(super) headings: Vec<Heading>,
    /// The data that the script draws.
    pub(super) charts: Vec<Chart>,
}

/// A link to a figure.
pub(super) struct Heading {
    /// The id of its section.
    pub(super) id: String,
    pub(super) title: String,
    /// The id and the name of the level's heading above it.
    pub(super) level: Option<(String, String)>,
}

/// Renders every figure of the plan; for one that cannot be drawn, the reason takes its place.
pub(super) fn render(run: &Run, points: Points<'_>, samples: &dyn SampleSource) -> Figures {
    let mut figures = Figures { html: html! {}, headings: Vec::new(), charts: Vec::new() };
    let mut level = None;
    for (index, figure) in run.figures.iter().enumerate() {
        let id = format!("figure-{}", index + 1);
        if level.as_ref().map(|(_, name)| name) != figure.level.as_ref() {
            level = figure.level.clone().map(|name| (format!("level-{}", index + 1), name));
            figures.html.0 += &level.as_ref().map(level_heading).unwrap_or_default().0;
        }
        let body = match figure.kind {
            FigureKind::Costs => Ok(costs::render(figure, points)),
            FigureKind::Histogram => {
                let rendered = histogram::render(&id, figure, points.points, samples);
                figures.charts.extend(rendered.panels);
                Ok(rendered.html)
            }
            FigureKind::LinkRates => Ok(links::render(figure)),
            FigureKind::Published => Ok(published::render(figure)),
            FigureKind::Surface => {
                Tables::of(figure, points).map(|tables| surface(&id, figure, &tables, &mut figures.charts))
            }
            FigureKind::Table => SeriesTable::with_links(figure, points).map(|table| numbers(&table, figure)),
            FigureKind::Bars | FigureKind::Lines => SeriesTable::with_links(figure, points)
                .map(|table| plot(&id, figure, &table, &mut figures.charts)),
        };
        let body = body.unwrap_or_else(|error| complaint(&error));
        figures.html.0 += &section(&id, figure, &body).0;
        figures.headings.push(Heading { id, title: figure.title.clone(), level: level.clone() });
    }
    figures
}

fn level_heading((id, name): &(String, String)) -> Markup {
    html! { h2 class="level" id=(id) { (name) } "\n" }
}

fn section(id: &str, figure: &Figure, body: &Markup) -> Markup {
    html! {
        section class="figure" id=(id) aria-labelledby={ (id) "-title" } {
            @if figure.level.is_some() { h3 class="title" id={ (id) "-title" } { (figure.title) } }
            @else { h2 id={ (id) "-title" } { (figure.title) } }
            @if let Some(text) = &figure.caption { p class="caption" { (prose(text)) } }
            (body)
            @if let Some(reference) = &figure.reference {
                p class="source" {
                    @if reference.derived { "Derived from: " } @else { "Published numbers: " }
                    (reference.source.trim_end_matches('.')) "."
                }
            }
        }
    }
}

fn numbers(series_table: &SeriesTable, figure: &Figure) -> Markup {
    html! {
        p class="what" { (sentence(&super::chart::y_title(series_table))) }
        @if !series_table.has_numbers() { (nothing()) }
        (table::render(series_table, &figure.title))
    }
}

/// Renders a surface; tables below hold both of its quantities.
fn surface(id: &str, figure: &Figure, tables: &Tables, charts: &mut Vec<Chart>) -> Markup {
    let (drawn, drawings) = tables.render(id, figure);
    charts.extend(drawings);
    html! {
        (drawn)
        details class="more" {
            summary { "Numbers of this figure" }
            @for series_table in tables.all() { (numbers(series_table, figure)) }
        }
    }
}

fn plot(id: &str, figure: &Figure, series_table: &SeriesTable, charts: &mut Vec<Chart>) -> Markup {
    let chart = Chart::new(format!("{id}-plot"), figure, series_table);
    let not_measured = table::list(table::not_measured(series_table));
    if chart.is_empty() {
        return html! { (nothing()) (not_measured) };
    }
    let errors = match chart.errors() {
        Errors::Quantiles => {
            "Error bars: 10th to 90th percentile within a run (each the median over the repetitions)."
        }
        Errors::Repetitions => "Error bars: from the smallest to the largest repetition.",
        Errors::None => "",
    };
    let is_doubtful = series_table.numbers().any(|n| !n.doubts.is_empty());
    let (doubtful, select) = match figure.kind {
        FigureKind::Bars => ("Pale bars", "Select a bar to see its point."),
        _ => ("Open markers", "Select a marker to see its histogram."),
    };
    let drawn = multiples::of(chart);
    let is_hidden = drawn.iter().flat_map(|chart| &chart.series).any(|series| series.under > 0);
    let page = html! {
        @if !series_table.has_numbers() { (nothing()) }
        (boxes::plots(&drawn, &figure.title))
        p class="hint" {
            (errors)
            @if drawn.len() > 1 { " All panels have the same scales." }
            @if is_hidden { " A wide line lies below others that nearly equal it." }
            @if let Some(origin) = series_table.origin() { " Dashed or hatched: " (origin) "." }
            @if series_table.numbers().any(|n| n.at_limit.is_some()) {
                " Dotted: the link limit."
            }
            @if is_doubtful { " " (doubtful) ": unstable, or some repetitions failed." }
            " " span class="screen" { (select) }
        }
        (not_measured)
        details class="more" {
            summary { "Numbers of this figure" }
            (table::render(series_table, &figure.title))
        }
    };
    charts.extend(drawn);
    page
}

fn complaint(error: &Error) -> Markup {
    html! { p class="complaint" { (sentence(&error.to_string())) } }
}
