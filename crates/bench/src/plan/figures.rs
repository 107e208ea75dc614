//! The figures of a plan: that they show what is measured, and the published numbers beside it.

use measure::figure::{Figure, FigureKind, ReferenceTable};
use measure::units::Dimension;

use super::model::{Base, Plan};
use super::names::hint_or_all;
use super::settings::IN_CODE;
use super::{bundled, quantities};
use crate::Error;
use crate::axis;

/// The plan's figures, checked, with their references filled in.
pub(super) fn resolve(plan: &Plan) -> Result<Vec<Figure>, Error> {
    let place = |index: usize| plan.figure_places.get(index).map_or(IN_CODE, String::as_str);
    let one = |(index, figure): (usize, &Figure)| {
        let shown = Shown { plan, figure, place: place(index) };
        shown.check()?;
        shown.filled()
    };
    plan.figures.iter().enumerate().map(one).collect()
}

struct Shown<'a> {
    plan: &'a Plan,
    figure: &'a Figure,
    place: &'a str,
}

impl Shown<'_> {
    fn check(&self) -> Result<(), Error> {
        let figure = self.figure;
        let known: Vec<&str> =
            self.plan.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        if let Some(name) = figure.experiments.iter().find(|name| !known.contains(&name.as_str())) {
            return self.wrong(format!("shows an unknown experiment {name:?}{}", hint_or_all(name, &known)));
        }
        let axes = axis::NAMES.to_vec();
        // The experiment and the kind of latency tell series apart as an axis does.
        let apart = [axes.as_slice(), &["experiment", "latency"]].concat();
        let used = figure.x.iter().chain(figure.only.keys()).map(|name| (name, &axes));
        for (name, known) in used.chain(figure.series.iter().map(|name| (name, &apart))) {
            if !known.contains(&name.as_str()) {
                return self.wrong(format!("uses an unknown axis {name:?}{}", hint_or_all(name, known)));
            }
        }
        self.check_keys()?;
        if matches!(figure.kind, FigureKind::Histogram | FigureKind::LinkRates | FigureKind::Published) {
            return Ok(());
        }
        for (key, present) in [
            ("experiments", !figure.experiments.is_empty()),
            ("x", figure.x.is_some()),
            ("y", figure.y.is_some()),
        ] {
            if !present {
                return self.unreadable(&format!(
                    "it has no {key:?}, which every kind but histogram, link-rates and published needs"
                ));
            }
        }
        let quantity = figure.y.as_deref().unwrap_or_default();
        self.check_quantity(quantity)?;
        if let Some(marked) = &figure.marked {
            self.check_quantity(&marked.y)?;
        }
        self.check_difference(quantity)?;
        self.check_unit(quantity)
    }

    /// No key is given that its kind ignores, and none is missing that has no default.
    fn check_keys(&self) -> Result<(), Error> {
        let figure = self.figure;
        let is_histogram = figure.kind == FigureKind::Histogram;
        let is_grid = matches!(figure.kind, FigureKind::Bars | FigureKind::Lines | FigureKind::Table);
        let is_surface = figure.kind == FigureKind::Surface;
        let is_published = figure.kind == FigureKind::Published;
        let refused = [
            ("kinds", !figure.kinds.is_empty() && !is_histogram),
            ("limits_ns", figure.limits_ns.is_some() && !is_histogram),
            ("log_counts", figure.log_counts && !is_histogram),
            ("marker", figure.marker.is_some() && figure.kind != FigureKind::Lines),
            ("difference", figure.difference && (!is_grid || figure.above_first)),
            ("above_first", figure.above_first && !is_grid),
            ("marked", figure.marked.is_some() && !is_surface),
            (
                "reference",
                figure.reference.is_some() && (figure.difference || figure.above_first || is_surface),
            ),
            ("reason", figure.reason.is_some() && !is_published),
            ("experiments", !figure.experiments.is_empty() && is_published),
            ("series", !figure.series.is_empty() && is_published),
            ("where", !figure.only.is_empty() && is_published),
            ("x", figure.x.is_some() && (is_histogram || is_published)),
            ("y", figure.y.is_some() && (is_histogram || is_published)),
            ("unit", figure.unit.is_some() && (is_histogram || is_published)),
            ("reference", figure.reference.is_some() && is_histogram),
        ];
        let bad = |reason: String| self.unreadable(&reason);
        if let Some((key, _)) = refused.iter().find(|(_, given)| *given) {
            return bad(format!("its kind has no {key:?}: leave it out"));
        }
        if is_surface && figure.series.len() != 1 {
            return bad("a surface is over x and one axis more: name that one in \"series\"".to_owned());
        }
        if let Some(marked) = figure.marked.as_ref().filter(|marked| !(0.0..=1.0).contains(&marked.above)) {
            return bad(format!("it is marked above {}, which is no share: give 0 to 1", marked.above));
        }
        if is_histogram && figure.experiments.is_empty() {
            return bad("it has no \"experiments\", which a histogram needs".to_owned());
        }
        if is_published && (figure.reason.is_none() || figure.reference.is_none()) {
            return bad("it has no \"reason\" or no [figure.reference], which published needs".to_owned());
        }
        if let Some([from, to]) = figure.limits_ns.filter(|[from, to]| from >= to) {
            return bad(format!("limits_ns from {from} to {to} hold no time"));
        }
        match figure.marker.as_ref().filter(|marker| !figure.series.contains(marker)) {
            Some(marker) => bad(format!("its marker {marker:?} is not in series: add it there")),
            None => Ok(()),
        }
    }

    /// Differences are of times.
    fn check_difference(&self, quantity: &str) -> Result<(), Error> {
        if !(self.figure.difference || self.figure.above_first)
            || quantities::dimension(quantity) == Some(Dimension::Time)
        {
            return Ok(());
        }
        self.unreadable(&format!("{quantity} is no time, and a difference is of times: leave it out"))
    }

    fn check_unit(&self, quantity: &str) -> Result<(), Error> {
        let Some(unit) = self.figure.unit else { return Ok(()) };
        if quantities::dimension(quantity) == Some(unit.dimension()) {
            return Ok(());
        }
        self.unreadable(&format!("{quantity} is not measured in {unit}"))
    }

    fn check_quantity(&self, name: &str) -> Result<(), Error> {
        let unknown = |hint| self.wrong(format!("shows an unknown quantity {name:?}{hint}"));
        quantities::check(name).or_else(unknown)
    }

    fn unreadable(&self, reason: &str) -> Result<(), Error> {
        self.wrong(format!("cannot be read: {reason}"))
    }

    /// Refuses what the figure does.
    fn wrong(&self, does: String) -> Result<(), Error> {
        let words = format!("the figure {:?} {does}", self.figure.title);
        Err(Error::Plan { place: self.place.to_owned(), words })
    }

    fn filled(&self) -> Result<Figure, Error> {
        let mut figure = self.figure.clone();
        if let Some(reference) = figure.reference.as_mut().filter(|reference| reference.table.is_none()) {
            let (file, title) = (reference.file.clone(), &self.figure.title);
            let unreadable = |reason: String| Error::Plan {
                place: self.place.to_owned(),
                words: format!("cannot read the reference {file:?} of the figure {title:?}: {reason}"),
            };
            let text = match &self.plan.base {
                Base::Bundled => bundled::reference(&reference.file)
                    .map(str::to_owned)
                    .ok_or_else(|| unreadable("it does not come with the program".to_owned()))?,
                Base::Directory(directory) => measure::files::read_text(&directory.join(&reference.file))
                    .map_err(|err| unreadable(err.to_string()))?,
            };
            let table = table(&text, &reference.file)?;
            reference.table = Some(table.ok_or_else(|| unreadable("it has no rows".to_owned()))?);
        }
        Ok(figure)
    }
}

/// Reads comma-separated cells without quotes; `None` if there is no row below the heading.
fn table(text: &str, file: &str) -> Result<Option<ReferenceTable>, Error> {
    let cells = |line: &str| -> Vec<String> { line.split(',').map(|cell| cell.trim().to_owned()).collect() };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let columns = lines.next().map(|(_, line)| cells(line)).unwrap_or_default();
    let mut rows = Vec::new();
    for (index, line) in lines {
        let row = cells(line);
        if row.len() != columns.len() {
            let words = format!(
                "{} cells where the heading has {}: give every row as many cells as the heading",
                row.len(),
                columns.len()
            );
            return Err(Error::Plan { place: format!("{file}:{}", index + 1), words });
        }
        rows.push(row);
    }
    Ok((!rows.is_empty()).then_some(ReferenceTable { columns, rows }))
}
