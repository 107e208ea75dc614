//! The figures of a plan: checks that they show what is measured, and reads published numbers.

use measure::figure::{Figure, FigureKind, ReferenceTable};
use measure::units::Dimension;

use super::model::{Base, Plan};
use super::names::known;
use super::{bundled, costs, quantities};
use crate::Error;
use crate::axis;

/// The plan's figures, checked, with their references filled in.
pub(super) fn resolve(plan: &Plan) -> Result<Vec<Figure>, Error> {
    let one = |(index, figure): (usize, &Figure)| {
        let place = plan.place_of_figure(index);
        check(plan, figure).map_err(|does| Error::Plan {
            place: place.to_owned(),
            words: format!("the figure {:?} {does}", figure.title),
        })?;
        filled(plan, figure, place)
    };
    levels(plan)?;
    plan.figures.iter().enumerate().map(one).collect()
}

/// Checks that the figures of a level are next to each other.
fn levels(plan: &Plan) -> Result<(), Error> {
    let mut ended: Vec<&str> = Vec::new();
    let mut current = None;
    for (index, figure) in plan.figures.iter().enumerate() {
        let level = figure.level.as_deref();
        if level != current {
            ended.extend(current);
            current = level;
        }
        if let Some(again) = level.filter(|level| ended.contains(level)) {
            return Err(Error::Plan {
                place: plan.place_of_figure(index).to_owned(),
                words: format!(
                    "the figure {:?} is separated from the other figures of the level {again:?}: put the figures of a \
                     level together",
                    figure.title
                ),
            });
        }
    }
    Ok(())
}

/// Checks a figure. An error is the end of a sentence that starts with the figure.
fn check(plan: &Plan, figure: &Figure) -> Result<(), String> {
    let experiments: Vec<&str> = plan.experiments.iter().map(|one| one.name.as_str()).collect();
    for name in &figure.experiments {
        known("experiment", name, &experiments).map_err(|unknown| format!("shows an {unknown}"))?;
    }
    let uses = |unknown| format!("uses an {unknown}");
    for name in figure.x.iter().chain(figure.only.keys()).chain(figure.relative_to.keys()) {
        known("axis", name, &axis::NAMES).map_err(uses)?;
    }
    // The experiment and the kind of latency distinguish series, as axes do.
    let apart = [axis::NAMES.as_slice(), &["experiment", "latency"]].concat();
    for name in &figure.series {
        known("axis", name, &apart).map_err(uses)?;
    }
    let unreadable = |reason| format!("cannot be read: {reason}");
    check_keys(figure).map_err(unreadable)?;
    if figure.kind == FigureKind::Costs {
        return costs::check(plan, figure);
    }
    if matches!(figure.kind, FigureKind::Histogram | FigureKind::LinkRates | FigureKind::Published) {
        return Ok(());
    }
    for (key, is_given) in [
        ("experiments", !figure.experiments.is_empty()),
        ("x", figure.x.is_some()),
        ("y", figure.y.is_some()),
    ] {
        if !is_given {
            return Err(unreadable(format!(
                "it has no {key:?}, which every kind except costs, histogram, link-rates and published needs"
            )));
        }
    }
    let quantity = figure.y.as_deref().unwrap_or_default();
    for name in [quantity].into_iter().chain(figure.marked.as_ref().map(|marked| marked.y.as_str())) {
        let known = quantities::check_of(plan, &figure.experiments, name);
        known.map_err(|hint| format!("shows an unknown quantity {name:?}{hint}"))?;
    }
    let dimension = quantities::dimension(quantity);
    if (figure.difference || figure.above_first) && dimension != Some(Dimension::Time) {
        let reason = format!("{quantity} is not a time: leave out difference and above_first");
        return Err(unreadable(reason));
    }
    match figure.unit.filter(|unit| dimension != Some(unit.dimension())) {
        Some(unit) => Err(unreadable(format!("{quantity} is not measured in {unit}"))),
        None => Ok(()),
    }
}

/// Checks that the kind uses every given key, and that no required key is missing.
fn check_keys(figure: &Figure) -> Result<(), String> {
    let is_histogram = figure.kind == FigureKind::Histogram;
    let is_grid = matches!(figure.kind, FigureKind::Bars | FigureKind::Lines | FigureKind::Table);
    let is_surface = figure.kind == FigureKind::Surface;
    let is_published = figure.kind == FigureKind::Published;
    let is_costs = figure.kind == FigureKind::Costs;
    let has_points = !is_published && !is_costs;
    let is_relative = !figure.relative_to.is_empty();
    let has_no_reference =
        is_histogram || is_surface || is_costs || figure.difference || figure.above_first || is_relative;
    let refused = [
        ("kinds", !figure.kinds.is_empty() && !is_histogram),
        ("limits_ns", figure.limits_ns.is_some() && !is_histogram),
        ("log_counts", figure.log_counts && !is_histogram),
        ("marker", figure.marker.is_some() && figure.kind != FigureKind::Lines),
        ("difference", figure.difference && (!is_grid || figure.above_first)),
        ("above_first", figure.above_first && !is_grid),
        ("relative_to", is_relative && (!is_grid || figure.difference || figure.above_first)),
        ("marked", figure.marked.is_some() && !is_surface),
        ("reference", figure.reference.is_some() && has_no_reference),
        ("reason", figure.reason.is_some() && !is_published),
        ("row", !figure.rows.is_empty() && !is_costs),
        ("experiments", !figure.experiments.is_empty() && !has_points),
        ("series", !figure.series.is_empty() && !has_points),
        ("where", !figure.only.is_empty() && !has_points),
        ("x", figure.x.is_some() && (is_histogram || !has_points)),
        ("y", figure.y.is_some() && (is_histogram || !has_points)),
        ("unit", figure.unit.is_some() && (is_histogram || !has_points)),
    ];
    if let Some((key, _)) = refused.iter().find(|(_, is_refused)| *is_refused) {
        return Err(format!("its kind has no {key:?}: leave it out"));
    }
    if let Some(axis) = figure.relative_to.keys().find(|axis| !figure.series.contains(axis)) {
        return Err(format!(
            "it is relative to a value of {axis}, which is not in series: add {axis} to series"
        ));
    }
    if is_surface && figure.series.len() != 1 {
        return Err("a surface is over x and one other axis: name one axis in \"series\"".to_owned());
    }
    if let Some(marked) = figure.marked.as_ref().filter(|marked| !(0.0..=1.0).contains(&marked.above)) {
        return Err(format!("it is marked above {}, which is not a share: give 0 to 1", marked.above));
    }
    if is_costs && figure.rows.is_empty() {
        return Err("it has no [[figure.row]], which the kind costs needs".to_owned());
    }
    if is_histogram && figure.experiments.is_empty() {
        return Err("it has no \"experiments\", which the kind histogram needs".to_owned());
    }
    if is_published && (figure.reason.is_none() || figure.reference.is_none()) {
        return Err(
            "it has no \"reason\" or no [figure.reference], which the kind published needs".to_owned()
        );
    }
    if let Some([from, to]) = figure.limits_ns.filter(|[from, to]| from >= to) {
        return Err(format!("limits_ns from {from} to {to} is an empty range"));
    }
    match figure.marker.as_ref().filter(|marker| !figure.series.contains(marker)) {
        Some(marker) => Err(format!("its marker {marker:?} is not in series: add it to series")),
        None => Ok(()),
    }
}

/// The figure with its published numbers.
fn filled(plan: &Plan, figure: &Figure, place: &str) -> Result<Figure, Error> {
    let mut figure = figure.clone();
    if let Some(reference) = figure.reference.as_mut().filter(|reference| reference.table.is_none()) {
        let file = &reference.file;
        let title = &figure.title;
        let unreadable = |reason: String| Error::Plan {
            place: place.to_owned(),
            words: format!("cannot read the reference {file:?} of the figure {title:?}: {reason}"),
        };
        let text = match &plan.base {
            Base::Bundled => bundled::reference(file)
                .map(str::to_owned)
                .ok_or_else(|| unreadable("rdmascope does not contain it".to_owned()))?,
            Base::Directory(directory) => measure::files::read_text(&directory.join(file))
                .map_err(|error| unreadable(error.to_string()))?,
        };
        let table = table(&text, file)?.ok_or_else(|| unreadable("it has no rows".to_owned()))?;
        reference.table = Some(table);
    }
    Ok(figure)
}

/// Reads comma-separated cells without quotes. Returns `None` if there is no row below the heading.
fn table(text: &str, file: &str) -> Result<Option<ReferenceTable>, Error> {
    let cells = |line: &str| -> Vec<String> { line.split(',').map(|cell| cell.trim().to_owned()).collect() };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let columns = lines.next().map(|(_, line)| cells(line)).unwrap_or_default();
    let mut rows = Vec::new();
    for (index, line) in lines {
        let row = cells(line);
        if row.len() != columns.len() {
            let words = format!(
                "the row has {} cells and the heading {}: give every row as many cells as the heading",
                row.len(),
                columns.len()
            );
            return Err(Error::Plan { place: format!("{file}:{}", index + 1), words });
        }
        rows.push(row);
    }
    Ok((!rows.is_empty()).then_some(ReferenceTable { columns, rows }))
}
