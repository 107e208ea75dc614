//! Tables for a terminal, in perftest's layout, printed line by line as points end.
//!
//! Each combination of experiment, pattern and axes is a separate table. Axes of rows do not count:
//! `size_bytes`, of `fan-out` also `peers`, of `pairs` also `pairs`, of `open-loop` also the rate
//! and the load, of `overhead` also `step`. A banner says what is measured. Points that cannot be
//! measured are gathered: one line for consecutive points with the same reason. A `!` behind a row
//! marks an unstable point; [`Stream::finish`] prints the reason. Throughputs with a known link
//! have a column with their share of the link limit.

mod banner;
mod costs;
mod environments;
mod findings;
mod links;
mod skipped_run;
mod spread;
mod unstable;

use measure::figure::Unit;
use measure::presentation::Patterns;
use measure::record::{Device, Point, Status};
use measure::table::{Note, Table, View};
use measure::text::plain;

use crate::conditions::Conditions;
use crate::error::Error;
use crate::link_limit::{LinkLimit, Links};
use crate::table::Heading;
use crate::unit::Scale;
use crate::{Points, table};
use banner::{Key, failed, marks};
pub use costs::costs;
pub use findings::findings;
use skipped_run::SkippedRun;
use unstable::Unstable;

/// Tables printed as points end.
#[derive(Debug)]
pub struct Stream {
    patterns: Patterns,
    bandwidth: Unit,
    devices: Vec<Device>,
    table: Option<Open>,
    skipped: Option<SkippedRun>,
    unstable: Unstable,
    conditions: Conditions,
    links: Links,
    approximate: Option<f64>,
    /// The notes on columns that depend on the last point.
    of_last: String,
    /// The notes on columns, each printed once.
    notes: Vec<String>,
}

/// The table that rows are added to.
#[derive(Debug)]
struct Open {
    key: Key,
    banner_is_out: bool,
    header: Option<Heading>,
}

impl Stream {
    /// Starts tables with throughputs in a unit of bandwidth: Gb/s, MB/s or MiB/s.
    pub fn new(patterns: Patterns, bandwidth: Unit) -> Result<Self, Error> {
        Scale::of(Some(bandwidth), "throughput.bytes_per_s", patterns)?;
        Ok(Self {
            patterns,
            bandwidth,
            devices: Vec::new(),
            table: None,
            skipped: None,
            unstable: Unstable::default(),
            conditions: Conditions::default(),
            links: Links::default(),
            approximate: None,
            of_last: String::new(),
            notes: Vec::new(),
        })
    }

    /// Sets the measured devices, once they are known: throughputs of the points that follow have
    /// their share of the link limit.
    pub fn measures(&mut self, devices: &[Device]) {
        self.devices = devices.to_vec();
    }

    /// Returns the text to print after a point has ended: nothing, or whole lines.
    pub fn line(&mut self, point: &Point) -> String {
        let key = Key::of(point, self.patterns);
        self.unstable.see(point);
        self.conditions.see(point);
        let mut out = String::new();
        if let Status::NotMeasured { reason } = &point.status {
            let reason = plain(reason);
            if !self.skipped.as_ref().is_some_and(|run| run.takes(point, &reason)) {
                out += &self.flush(Some(point));
                self.skipped = Some(SkippedRun::new(reason, self.patterns.of(&point.pattern)));
            }
            if let Some(skipped) = &mut self.skipped {
                skipped.push(point, key);
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

    /// Returns the text to print after the last point: gathered points, the meaning of the marks,
    /// the outcomes of environments, and the link limits.
    pub fn finish(mut self) -> String {
        let mut out = self.flush(None);
        out += &self.of_last;
        out += &self.notes.concat();
        out += &self.unstable.finish();
        out += &environments::text(&self.conditions);
        out += &links::text(&self.links);
        if let Some(resolution) = self.approximate {
            out += &format!(
                "\n ~ from a histogram, not from every sample: percentiles are exact to {:.2} % of their value\n",
                resolution * 100.0
            );
        }
        out
    }

    fn row(&mut self, point: &Point) -> String {
        let limit = LinkLimit::of(point, &self.devices, self.patterns);
        let shown = self.patterns.table(point);
        let of_link = limit.as_ref().and_then(|limit| limit.share(point));
        let view = View { point, bandwidth: self.bandwidth, has_link: limit.is_some(), of_link };
        let heading = shown.map(|shown| Heading::of(shown, &view));
        let Some(table) = &mut self.table else { return String::new() };
        let mut out = String::new();
        if !table.banner_is_out || (table.header.is_some() && heading.is_some() && table.header != heading) {
            out += &table.key.banner(shown, point, self.patterns);
            table.banner_is_out = true;
            table.header = None;
        }
        if let Status::Failed { error } = &point.status {
            return out + &failed(point, self.patterns.of(&point.pattern), &plain(error));
        }
        let Some(shown) = shown else {
            return out + &failed(point, self.patterns.of(&point.pattern), "the record holds no numbers");
        };
        if table.header != heading {
            out += heading.as_ref().map_or("", |heading| &heading.columns);
            table.header = heading;
        }
        self.note(shown, point);
        if let Some(limit) = limit.filter(|_| table::has_link(shown, &view)) {
            self.links.see(&limit);
        }
        out + &table::rows(shown, &view, self.patterns, &marks(point))
    }

    /// Keeps the notes for below the tables.
    fn note(&mut self, shown: &'static Table, point: &Point) {
        let resolution = point.latency.as_ref().and_then(|l| l.resolution);
        self.approximate = [self.approximate, resolution].into_iter().flatten().reduce(f64::max);
        for note in shown.notes {
            let Some(text) = table::note(note, point) else { continue };
            match note {
                Note::Of(_) => self.of_last = text,
                _ if self.notes.contains(&text) => {}
                _ => self.notes.push(text),
            }
        }
    }

    /// Starts a table; its banner is printed with its first row.
    fn open(&mut self, key: Key) {
        self.table = Some(Open { key, banner_is_out: false, header: None });
    }

    /// Prints the gathered points: inside their table if it is open or about to be, otherwise
    /// separately.
    fn flush(&mut self, next: Option<&Point>) -> String {
        let Some(skipped) = self.skipped.take() else { return String::new() };
        let next_key = next.map(|next| Key::of(next, self.patterns));
        let is_open = |key: &Key| self.table.as_ref().is_some_and(|table| table.key == *key);
        match (skipped.only_key(), next) {
            (Some(key), _) if is_open(key) => skipped.inside(),
            (Some(key), Some(next)) if next_key.as_ref() == Some(key) && !is_not_measured(next) => {
                let banner = key.banner(self.patterns.table(next), next, self.patterns);
                self.table = Some(Open { key: key.clone(), banner_is_out: true, header: None });
                banner + &skipped.inside()
            }
            _ => skipped.apart(self.table.iter().map(|table| &table.key).chain(&next_key)),
        }
    }
}

/// The tables of a whole run at once, after a warning if the whole run is unstable.
pub fn tables(run: Points<'_>, bandwidth: Unit) -> Result<String, Error> {
    let mut stream = Stream::new(run.patterns, bandwidth)?;
    stream.measures(run.devices);
    let lines: String = run.points.iter().map(|point| stream.line(point)).collect();
    let headline = crate::placement::headline(run.points).map(|headline| format!("! {headline}\n"));
    Ok(headline.unwrap_or_default() + &lines + &stream.finish())
}

fn is_not_measured(point: &Point) -> bool {
    matches!(point.status, Status::NotMeasured { .. })
}

#[cfg(test)]
mod tests;
