//! Figures of distributions: a panel for each series, in which the kinds of latency of the same
//! messages overlay each other.
//!
//! Repetitions are merged sample by sample. Time is linear between limits that are the same for all
//! panels; samples outside are counted next to the panel, never dropped.

use std::collections::BTreeSet;

use maud::{Markup, html};
use measure::figure::Figure;
use measure::quantity;
use measure::record::{Latency, LatencyKind, Point, Status};
use measure::samples::Counted;
use measure::stats::{Share, share_above_bounds};

use super::boxes;
use super::chart::Chart;
use super::distributions::{Stored, distributions, source};
use super::prose::sentence;
use super::table::{frame, list, nothing};
use crate::SampleSource;
use crate::series_table::{self, doubt};
use crate::unit;

/// All samples of one kind in one panel.
struct Merged {
    kind: LatencyKind,
    values: Counted,
    /// Whether some samples are the middles of buckets.
    is_approximate: bool,
    bound_ns: Option<f64>,
}

/// The limits of x, and the bins between them.
#[derive(Clone, Copy)]
struct Limits {
    from_ns: u64,
    to_ns: u64,
    width_ns: u64,
}

impl Limits {
    fn bins(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns).max(1).div_ceil(self.width_ns)
    }

    /// The lower edge of a bin.
    fn edge(self, bin: u64) -> u64 {
        self.from_ns.saturating_add(bin * self.width_ns).min(self.to_ns)
    }

    /// The unit of the axis in ns, and its name: numbers have at most four digits before the point.
    fn unit(self) -> (f64, &'static str) {
        let fits = |(one, _): &(f64, &str)| (self.to_ns as f64) < 1e4 * one;
        [(1.0, "ns"), (1e3, "us"), (1e6, "ms")].into_iter().find(fits).unwrap_or((1e9, "s"))
    }
}

/// A figure of distributions.
pub(crate) struct Rendered {
    /// The figure as HTML.
    pub(super) html: Markup,
    /// Its panels separately.
    pub(crate) panels: Vec<Chart>,
    /// Which points or samples are not in them and why, in sentences without a capital letter and a
    /// full stop.
    pub(crate) missing: BTreeSet<String>,
}

/// Renders a figure.
pub(crate) fn render(id: &str, figure: &Figure, points: &[Point], samples: &dyn SampleSource) -> Rendered {
    let shown: Vec<&Point> = points.iter().filter(|point| series_table::shows(figure, point)).collect();
    let groups = series_table::groups(figure, &shown);
    let kinds = kinds(figure, &shown);
    let limits = limits(figure, &shown, &kinds);
    let mut page = Page::default();
    for (index, (label, group)) in groups.iter().enumerate() {
        let merged = page.merge(group, &kinds, samples);
        page.doubt(group);
        if merged.is_empty() {
            continue;
        }
        let Some(limits) = limits else { continue };
        let panel = format!("{id}-plot-{}", index + 1);
        page.panel(figure, panel, label, &merged, &kinds, limits);
    }
    // Panels beside each other are compared.
    let most = page.panels.iter().map(|panel| panel.y_ends[1]).fold(0.0, f64::max);
    page.panels.iter_mut().for_each(|panel| panel.y_ends[1] = most);
    Rendered { html: page.html(figure, limits), panels: page.panels, missing: page.missing }
}

/// The kinds that are overlaid: those that the figure names, or the main latency of each point.
fn kinds(figure: &Figure, shown: &[&Point]) -> Vec<LatencyKind> {
    if !figure.kinds.is_empty() {
        return figure.kinds.clone();
    }
    let headlines: BTreeSet<LatencyKind> =
        shown.iter().filter_map(|point| point.latency.as_ref()).map(|latency| latency.kind).collect();
    headlines.into_iter().collect()
}

/// The stated limits, or otherwise from the smallest sample to the largest 99.9th percentile.
fn limits(figure: &Figure, shown: &[&Point], kinds: &[LatencyKind]) -> Option<Limits> {
    let latencies = || shown.iter().flat_map(|point| kinds.iter().filter_map(|kind| latency(point, *kind)));
    let [from_ns, to_ns] = match figure.limits_ns {
        Some(limits) => limits,
        None => {
            [latencies().map(|l| l.min_ns).min()?, latencies().map(|l| l.p999_ns).max()?.saturating_add(1)]
        }
    };
    let span = to_ns.saturating_sub(from_ns).max(1);
    Some(Limits { from_ns, to_ns, width_ns: span.div_ceil(BINS) })
}

fn latency(point: &Point, kind: LatencyKind) -> Option<&Latency> {
    quantity::kinds(point).find(|latency| latency.kind == kind)
}

/// The distribution of a kind: it is stored with the kind, or with the rank of a point that has
/// only one kind.
fn stored(point: &Point, kind: LatencyKind) -> Option<Stored<'_>> {
    let is_kind = |latency: &Latency| latency.kind == kind;
    distributions(point).find(|(_, latency, _)| latency.is_some_and(is_kind)).map(|(.., stored)| stored)
}

/// What is gathered while the panels are made.
#[derive(Default)]
struct Page {
    panels: Vec<Chart>,
    rows: Markup,
    /// What is doubtful in the panels.
    notes: BTreeSet<String>,
    /// What is not in the panels.
    missing: BTreeSet<String>,
    is_approximate: bool,
}

impl Page {
    fn merge(&mut self, group: &[&Point], kinds: &[LatencyKind], samples: &dyn SampleSource) -> Vec<Merged> {
        let mut all = Vec::new();
        for kind in kinds {
            let mut parts = Vec::new();
            let mut is_approximate = false;
            let mut bound_ns = None;
            for point in group.iter().filter(|point| point.status == Status::Measured) {
                let Some(stored) = stored(point, *kind) else { continue };
                match source(&stored, samples, 0) {
                    Ok(Some(source)) => {
                        is_approximate |= source.is_approximate();
                        parts.push(source.samples);
                    }
                    Ok(None) => {
                        self.missing
                            .insert("some points kept no distribution and are not included".to_owned());
                    }
                    Err(why) => {
                        self.missing
                            .insert(format!("some samples cannot be read and are not included: {why}"));
                    }
                }
                let bounds = [bound_ns, quantity::bound_ns(point, *kind)];
                bound_ns = bounds.into_iter().flatten().reduce(f64::max);
            }
            let values = Counted::merged(&parts);
            if values.max().is_some() {
                all.push(Merged { kind: *kind, values, is_approximate, bound_ns });
            }
        }
        all
    }

    fn doubt(&mut self, group: &[&Point]) {
        self.notes.extend(group.iter().filter_map(|point| doubt(point, 2)));
    }

    fn panel(
        &mut self,
        figure: &Figure,
        id: String,
        label: &str,
        merged: &[Merged],
        kinds: &[LatencyKind],
        limits: Limits,
    ) {
        // A kind has the same colour in every panel.
        let colour = |kind| kinds.iter().position(|known| *known == kind).unwrap_or_default();
        let mut outlines = Vec::new();
        for one in merged {
            self.is_approximate |= one.is_approximate;
            let counts = one.counts(limits);
            let outside = one.values.total() - counts.iter().sum::<u64>();
            self.rows.0 += &one.row(label, outside).0;
            outlines.push((one.name(outside), colour(one.kind), counts));
        }
        let (one, unit) = limits.unit();
        let edges: Vec<f64> = (0..=limits.bins()).map(|bin| limits.edge(bin) as f64 / one).collect();
        let label = label.to_owned();
        self.panels.push(Chart::histogram(id, label, (&edges, unit), figure.log_counts, outlines));
    }

    fn html(&self, figure: &Figure, limits: Option<Limits>) -> Markup {
        let missing = self.missing.iter().map(|text| format!("{}.", sentence(text)));
        let notes = list(missing.chain(self.notes.iter().cloned()));
        let Some(limits) = limits.filter(|_| !self.panels.is_empty()) else {
            return html! { (nothing()) (notes) };
        };
        let time = |ns: u64| unit::time(ns as f64);
        let names = [
            "series",
            "latency",
            "samples",
            "min [ns]",
            "median [ns]",
            "max [ns]",
            "above 10 us",
            "outside the limits",
        ];
        let head = html! { thead { tr { @for name in names { th scope="col" { (name) } } } } };
        let table = frame(&figure.title, "numbers", &head, &html! { tbody { "\n" (self.rows) } });
        html! {
            (boxes::plots(&self.panels, &figure.title))
            p class="hint" {
                "Time from " (time(limits.from_ns)) " to " (time(limits.to_ns)) " in bins of "
                (unit::grouped(limits.width_ns)) " ns; samples outside are counted in the table. "
                "Repetitions are merged."
                @if self.is_approximate { " ~: from a recorded histogram, not from every sample." }
            }
            (table)
            (notes)
        }
    }
}

impl Merged {
    /// The samples in each bin.
    fn counts(&self, limits: Limits) -> Vec<u64> {
        let below = |bin: u64| self.values.below(limits.edge(bin));
        (0..limits.bins()).map(|bin| below(bin + 1) - below(bin)).collect()
    }

    /// The kind, with the number of its samples and of those outside the limits.
    fn name(&self, outside: u64) -> String {
        let mut name = format!("{}: n {}", self.kind.name(), unit::grouped(self.values.total()));
        if outside > 0 {
            let max = unit::time(self.values.max().unwrap_or_default() as f64);
            name += &format!(", {} outside, max {max}", unit::grouped(outside));
        }
        name
    }

    fn row(&self, label: &str, outside: u64) -> Markup {
        let count = self.values.total();
        let at = |rank: u64| self.values.at(rank).unwrap_or_default();
        let above = |threshold_ns: u64| count - self.values.below(threshold_ns.saturating_add(1));
        let share = |threshold_ns| above(threshold_ns) as f64 / count as f64;
        let bounds = self.bound_ns.map(|bound| {
            let bounds = share_above_bounds(ABOVE_NS, bound, share).map(measure::text::percent);
            format!(", {}", bounds.join(" to "))
        });
        let mark = if self.is_approximate { "~" } else { "" };
        let bound = self.bound_ns.map(|bound| format!(" ± {:.0}", bound.ceil())).unwrap_or_default();
        let cells = [
            self.kind.name().to_owned(),
            unit::grouped(count),
            format!("{mark}{}{bound}", at(1)),
            format!("{mark}{}{bound}", at(Share::P50.rank(count))),
            format!("{mark}{}{bound}", self.values.max().unwrap_or_default()),
            format!(
                "{} ({}){}",
                measure::text::percent(share(ABOVE_NS)),
                unit::grouped(above(ABOVE_NS)),
                bounds.unwrap_or_default()
            ),
            unit::grouped(outside),
        ];
        html! { tr { th scope="row" { (label) } @for cell in cells { td { (cell) } } } "\n" }
    }
}

/// The largest number of bins of a panel, about its number of pixels.
const BINS: u64 = 200;
/// The threshold of the tables of Potter 2018.
const ABOVE_NS: u64 = 10_000;
