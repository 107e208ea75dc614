//! Link limits next to throughputs.

use super::cells::{AtLimit, Cell, Series, SeriesTable};
use crate::Points;
use crate::link_limit::{self, LinkLimit};
use crate::unit::Scale;

/// The link limit for the messages of some series.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// The name of the link; `the link` if it differs between x.
    link: &'a str,
    /// The limit for each x, in the unit of the series table.
    pub(crate) numbers: Vec<Option<f64>>,
    /// The first series on this link.
    pub(crate) first: &'a Series,
    labels: Vec<&'a str>,
    /// Whether the limit of the link differs for other series.
    is_one_of_many: bool,
}

impl Line<'_> {
    /// Its name: that of the link, and of the series if the link has several lines.
    pub(crate) fn name(&self) -> String {
        let of = if self.is_one_of_many { format!(" ({})", self.labels.join(", ")) } else { String::new() };
        format!("limit of {}{of}", self.link)
    }

    /// Adds a series if the link has the same limit wherever both have a number.
    fn takes(&mut self, other: &Self) -> bool {
        let is_same =
            |(own, other): (&Option<f64>, &Option<f64>)| own.is_none() || other.is_none() || own == other;
        if self.link != other.link || !self.numbers.iter().zip(&other.numbers).all(is_same) {
            return false;
        }
        for (own, other) in self.numbers.iter_mut().zip(&other.numbers) {
            *own = own.or(*other);
        }
        self.labels.extend(&other.labels);
        true
    }
}

impl SeriesTable {
    /// Adds the link limits to throughputs.
    pub(crate) fn beside_links(mut self, run: Points<'_>) -> Self {
        // A multiple of another series has no link limit.
        let is_multiple = self.scale == Scale::PLAIN;
        if !link_limit::is_throughput(&self.y) || is_multiple {
            return self;
        }
        for number in self.series.iter_mut().flat_map(|s| &mut s.cells).filter_map(Cell::number_mut) {
            let point = run.points.iter().find(|p| p.id == number.id);
            let limit = point.and_then(|p| LinkLimit::of(p, run.devices, run.patterns));
            number.at_limit = limit.and_then(|limit| {
                let at_limit = self.scale.apply(limit.number(&self.y)?);
                (at_limit > 0.0).then(|| Box::new(AtLimit { number: at_limit, limit }))
            });
        }
        self
    }

    /// The limits: a line for each link, or several if its limit differs between series.
    pub(crate) fn link_lines(&self) -> Vec<Line<'_>> {
        let mut lines: Vec<Line<'_>> = Vec::new();
        for line in self.series.iter().filter_map(line) {
            if !lines.iter_mut().any(|known| known.takes(&line)) {
                lines.push(line);
            }
        }
        let links: Vec<&str> = lines.iter().map(|line| line.link).collect();
        for line in &mut lines {
            line.is_one_of_many = links.iter().filter(|link| **link == line.link).count() > 1;
        }
        lines
    }
}

fn line(series: &Series) -> Option<Line<'_>> {
    let at_limit = |cell| Cell::number(cell).and_then(|number| number.at_limit.as_deref());
    let mut links =
        series.cells.iter().filter_map(at_limit).map(|at_limit| at_limit.limit.link.name.as_str());
    let first = links.next()?;
    let link = if links.all(|other| other == first) { first } else { "the link" };
    let numbers = series.cells.iter().map(|cell| Some(at_limit(cell)?.number)).collect();
    Some(Line { link, numbers, first: series, labels: vec![&series.label], is_one_of_many: false })
}
