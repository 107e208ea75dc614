//! The figures of a plan, each a section of the page.

use measure::figure::{Figure, FigureKind};
use measure::record::Run;

use super::chart::{Chart, Errors};
use super::data::Drawing;
use super::escape::escape;
use super::table::NOTHING;
use super::{histogram, links, published, surface, table};
use crate::error::Error;
use crate::series_table::SeriesTable;
use crate::{Points, SampleSource};

/// The figures of a run.
pub(super) struct Figures {
    /// Their sections.
    pub(super) html: String,
    /// Id and title of each.
    pub(super) headings: Vec<(String, String)>,
    /// What the script draws.
    pub(super) charts: Vec<Drawing>,
}

/// Renders every figure of the plan; one that cannot be drawn says why in its place.
pub(super) fn render(run: &Run, points: Points<'_>, samples: &dyn SampleSource) -> Figures {
    let mut figures = Figures { html: String::new(), headings: Vec::new(), charts: Vec::new() };
    for (index, figure) in run.figures.iter().enumerate() {
        let id = format!("figure-{}", index + 1);
        let body = match figure.kind {
            FigureKind::Histogram => {
                let (html, panels) = histogram::render(&id, figure, points.points, samples);
                figures.charts.extend(panels.into_iter().map(Drawing::Panel));
                Ok(html)
            }
            FigureKind::LinkRates => Ok(links::render(figure)),
            FigureKind::Published => Ok(published::render(figure)),
            FigureKind::Surface => surface(figure, points),
            FigureKind::Table => {
                series_table(figure, points).map(|series_table| numbers(&series_table, figure))
            }
            FigureKind::Bars | FigureKind::Lines => series_table(figure, points)
                .map(|series_table| plot(&id, figure, &series_table, &mut figures.charts)),
        };
        figures.html += &section(&id, figure, &body.unwrap_or_else(|error| complaint(&error)));
        figures.headings.push((id, figure.title.clone()));
    }
    figures
}

fn series_table(figure: &Figure, points: Points<'_>) -> Result<SeriesTable, Error> {
    Ok(SeriesTable::new(figure, points)?.beside_links(points))
}

fn section(id: &str, figure: &Figure, body: &str) -> String {
    let caption =
        figure.caption.as_deref().map(|text| format!("<p class=\"caption\">{}</p>\n", escape(text)));
    let source = figure.reference.as_ref().map(|r| {
        format!("<p class=\"source\">Published numbers: {}.</p>\n", escape(r.source.trim_end_matches('.')))
    });
    format!(
        "<section class=\"figure\" id=\"{id}\" aria-labelledby=\"{id}-title\">\n\
         <h2 id=\"{id}-title\">{title}</h2>\n{caption}{body}{source}</section>\n",
        title = escape(&figure.title),
        caption = caption.unwrap_or_default(),
        source = source.unwrap_or_default(),
    )
}

fn numbers(series_table: &SeriesTable, figure: &Figure) -> String {
    let what = format!("<p class=\"what\">{}</p>\n", escape(&sentence(&super::chart::y_title(series_table))));
    let empty = if series_table.has_numbers() { "" } else { NOTHING };
    format!("{what}{empty}{}", table::render(series_table, &figure.title))
}

/// Both quantities are in tables below, too.
fn surface(figure: &Figure, points: Points<'_>) -> Result<String, Error> {
    let heights = series_table(figure, points)?;
    let marks = figure.marked.as_ref().map(|marked| {
        let figure = Figure { y: Some(marked.y.clone()), unit: None, ..figure.clone() };
        Ok::<_, Error>((series_table(&figure, points)?, marked.above))
    });
    let marks = marks.transpose()?;
    let drawn = surface::render(&heights, marks.as_ref().map(|(series_table, above)| (series_table, *above)));
    let shown = [&heights].into_iter().chain(marks.as_ref().map(|(series_table, _)| series_table));
    let tables: String = shown.map(|series_table| numbers(series_table, figure)).collect();
    Ok(format!(
        "{drawn}<details class=\"more\"><summary>Numbers of this figure</summary>\n{tables}</details>\n"
    ))
}

fn plot(id: &str, figure: &Figure, series_table: &SeriesTable, charts: &mut Vec<Drawing>) -> String {
    let chart = Chart::new(format!("{id}-plot"), figure, series_table);
    if chart.is_empty() {
        return format!("{NOTHING}{}", table::list(&table::not_measured(series_table)));
    }
    let empty = if series_table.has_numbers() { "" } else { NOTHING };
    let errors = match chart.errors() {
        Errors::Quantiles => {
            "Bars on the markers: from the 10 % to the 90 % quantile within a run (each the median over the repetitions)."
        }
        Errors::Repetitions => "Error bars: from the smallest to the largest repetition.",
        Errors::None => "",
    };
    let reference = if series_table.published.is_empty() { "" } else { " Dashed or hatched: published." };
    let has_links = series_table.numbers().any(|n| n.at_limit.is_some());
    let links = if has_links { " Dotted: what the link carries at best." } else { "" };
    let doubtful = match figure.kind {
        _ if series_table.numbers().all(|n| n.doubts.is_empty()) => "",
        FigureKind::Bars => " Pale bars: unstable, or some repetitions failed.",
        _ => " Open markers: unstable, or some repetitions failed.",
    };
    let select = match figure.kind {
        FigureKind::Bars => "Select a bar to see its point.",
        _ => "Select a marker to see its histogram.",
    };
    let html = format!(
        "{empty}<div class=\"plot\" id=\"{id}-plot\" role=\"img\" aria-label=\"{title}; the numbers are in the table \
         below\"><p class=\"waiting\">This chart is drawn by a script.</p></div>\n\
         <p class=\"hint\">{errors}{reference}{links}{doubtful} <span class=\"screen\">{select}</span></p>\n\
         {missing}<details class=\"more\"><summary>Numbers of this figure</summary>\n{table}</details>\n",
        title = escape(&figure.title),
        missing = table::list(&table::not_measured(series_table)),
        table = table::render(series_table, &figure.title),
    );
    charts.push(Drawing::Chart(chart));
    html
}

fn complaint(error: &Error) -> String {
    format!("<p class=\"complaint\">{}</p>\n", escape(&sentence(&error.to_string())))
}

/// The text with a capital first letter.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
