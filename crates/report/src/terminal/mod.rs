//! Tables for a terminal, in the layout that users of perftest know, printed line by line as points end.
//!
//! Each combination of experiment, pattern and axes other than those of its rows (`size_bytes`, of rounds of one to n `peers`,
//! of several pairs `pairs`, of messages at a set rate that and their load, of calls that are timed by themselves `step`) is a
//! table of its own, under a banner that says what is measured. Points that cannot be measured are gathered: one line for a run
//! of points with the same reason. A `!` behind a row marks a point whose numbers should not be trusted; [`Stream::finish`] says
//! why. Throughputs whose link is known have a column with their share of what it carries at best.

mod cost;
mod environments;
mod fan_out;
mod findings;
mod kinds;
mod links;
mod not_measured;
mod open_loop;
mod pairs;
mod pipeline;
mod row;
mod sockets;
mod spread;
mod unstable;

use measure::figure::Unit;
use measure::record::{Axes, Device, Point, Status};

use crate::best::{Best, Links};
use crate::conditions::Conditions;
use crate::error::Error;
use crate::unit::Scale;
pub use findings::findings;
pub(crate) use measure::text::plain;
use not_measured::Gathered;
use row::Layout;
use unstable::Unstable;

/// Tables printed as points end.
#[derive(Debug)]
pub struct Stream {
    bandwidth: Scale,
    devices: Vec<Device>,
    table: Option<Table>,
    gathered: Option<Gathered>,
    unstable: Unstable,
    conditions: Conditions,
    links: Links,
    approximate: Option<f64>,
    /// The rule for mavericks, where tables have a column for them.
    mavericks: Option<String>,
    /// What columns of tables mean, which is said once.
    notes: Vec<&'static str>,
}

/// The table that rows are being added to.
#[derive(Debug)]
struct Table {
    key: Key,
    banner_is_out: bool,
    header: Option<Layout>,
}

/// What tells one table from the next.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    experiment: String,
    pattern: String,
    axes: Axes,
}

impl Stream {
    /// Tables with bandwidths in a unit of bandwidth: Gb/s, MB/s or MiB/s.
    pub fn new(bandwidth: Unit) -> Result<Self, Error> {
        let bandwidth = Scale::of(Some(bandwidth), "throughput.bytes_per_s")?;
        Ok(Self {
            bandwidth,
            devices: Vec::new(),
            table: None,
            gathered: None,
            unstable: Unstable::default(),
            conditions: Conditions::default(),
            links: Links::default(),
            approximate: None,
            mavericks: None,
            notes: Vec::new(),
        })
    }

    /// Says what is measured, once that is known: throughputs of points that follow stand beside what their link carries.
    pub fn measures(&mut self, devices: &[Device]) {
        self.devices = devices.to_vec();
    }

    /// What to print now that a point has ended: nothing, or whole lines.
    pub fn line(&mut self, point: &Point) -> String {
        let key = Key::of(point);
        self.unstable.see(point);
        self.conditions.see(point);
        let mut out = String::new();
        if let Status::NotMeasured { reason } = &point.status {
            let reason = plain(reason);
            if !self.gathered.as_ref().is_some_and(|g| g.takes(point, &reason)) {
                out += &self.flush(Some(point));
                self.gathered = Some(Gathered::new(reason));
            }
            if let Some(gathered) = &mut self.gathered {
                gathered.push(point, key);
            }
            return out;
        }
        out += &self.flush(Some(point));
        if self.table.as_ref().is_none_or(|table| table.key != key) {
            self.open(key);
        }
        out += &self.row(point);
        out
    }

    /// What is left to print when the last point has ended: points still gathered, what the marks mean, what became of
    /// environments, and what links carry.
    pub fn finish(mut self) -> String {
        let mut out = self.flush(None);
        out += &self.mavericks.as_deref().map(fan_out::notes).unwrap_or_default();
        out += &self.notes.concat();
        out += &self.unstable.finish();
        out += &environments::text(&self.conditions);
        out += &links::text(&self.links);
        if let Some(resolution) = self.approximate {
            out += &format!(
                "\n ~ from a histogram, not from every sample: quantiles are exact to {:.2} % of their value\n",
                resolution * 100.0
            );
        }
        out
    }

    fn row(&mut self, point: &Point) -> String {
        let best = Best::of(point, &self.devices);
        let layout = Layout::of(point, best.is_some());
        let Some(table) = &mut self.table else { return String::new() };
        let mut out = String::new();
        if !table.banner_is_out || (table.header.is_some() && table.header != layout && layout.is_some()) {
            out += &row::banner(&table.key.experiment, &table.key.pattern, &table.key.axes, layout);
            table.banner_is_out = true;
            table.header = None;
        }
        if let Status::Failed { error } = &point.status {
            return out + &row::failed(point, &plain(error));
        }
        let Some(layout) = layout else { return out + &row::failed(point, "the record holds no numbers") };
        if table.header != Some(layout) {
            out += &layout.header(self.bandwidth.label);
            table.header = Some(layout);
        }
        if let Some(round) = fan_out::round(point) {
            self.mavericks = Some(round.mavericks.rule.clone());
        }
        let notes = match layout {
            Layout::OpenLoop(_) => &[open_loop::NOTES][..],
            Layout::Pairs(_) => &[pairs::NOTES],
            Layout::Pipeline { kind, .. } => pipeline::notes(kind),
            Layout::Sockets(_) => sockets::notes(point),
            _ => &[],
        };
        for notes in notes {
            if !self.notes.contains(notes) {
                self.notes.push(notes);
            }
        }
        let resolution = point.latency.as_ref().and_then(|l| l.resolution);
        self.approximate = [self.approximate, resolution].into_iter().flatten().reduce(f64::max);
        let of_link = best.filter(|_| layout.has_link()).and_then(|best| {
            self.links.see(&best);
            best.share(point)
        });
        out + &layout.row(point, self.bandwidth, of_link)
    }

    /// Starts a table; its banner comes with its first row.
    fn open(&mut self, key: Key) {
        self.table = Some(Table { key, banner_is_out: false, header: None });
    }

    /// Prints the points that were gathered: inside their table if it is open or about to be, else on their own.
    fn flush(&mut self, next: Option<&Point>) -> String {
        let Some(gathered) = self.gathered.take() else { return String::new() };
        let next_key = next.map(Key::of);
        let is_open = |key: &Key| self.table.as_ref().is_some_and(|table| table.key == *key);
        match (gathered.only_key(), next) {
            (Some(key), _) if is_open(key) => gathered.inside(),
            (Some(key), Some(next)) if next_key.as_ref() == Some(key) && !is_not_measured(next) => {
                let banner = row::banner(&key.experiment, &key.pattern, &key.axes, Layout::of(next, false));
                self.table = Some(Table { key: key.clone(), banner_is_out: true, header: None });
                banner + &gathered.inside()
            }
            _ => gathered.apart(self.table.iter().map(|table| &table.key).chain(&next_key)),
        }
    }
}

/// The tables of a whole run at once, which was measured on these devices.
pub fn tables(points: &[Point], devices: &[Device], bandwidth: Unit) -> Result<String, Error> {
    let mut stream = Stream::new(bandwidth)?;
    stream.measures(devices);
    let lines: String = points.iter().map(|point| stream.line(point)).collect();
    Ok(lines + &stream.finish())
}

fn is_not_measured(point: &Point) -> bool {
    matches!(point.status, Status::NotMeasured { .. })
}

impl Key {
    fn of(point: &Point) -> Self {
        let mut axes = point.axes.clone();
        axes.retain(|name, _| !row::ROW_AXES.contains(&name.as_str()));
        Self { experiment: point.experiment.clone(), pattern: point.pattern.clone(), axes }
    }
}

/// Axes in print: `inline true, poll busy`, those that are wanted.
pub(crate) fn axes_text(axes: &Axes, is_shown: impl Fn(&str) -> bool) -> String {
    let shown = axes.iter().filter(|(name, _)| is_shown(name));
    let texts: Vec<String> =
        shown.map(|(name, value)| plain(&format!("{name} {}", crate::value::text(value)))).collect();
    texts.join(", ")
}

/// Axes that tell the rows of a table apart.
pub(crate) const IN_ROWS: [&str; 9] =
    ["load", "load_bytes", "loaders", "pairs", "peers", "rate_hz", "size_bytes", "step", "values"];

#[cfg(test)]
mod tests;
