//! Tables for a terminal, in perftest's layout, printed line by line as points end.
//!
//! Each combination of experiment, pattern and axes is a separate table. Axes of rows do not count:
//! `size_bytes`, of `fan-out` also `peers`, of `pairs` also `pairs`, of `open-loop` also the rate
//! and the load, of `overhead` also `step`. A banner says what is measured. Points that cannot be
//! measured are gathered: one line for consecutive points with the same reason. A `!` behind a row
//! marks an unstable point; [`Stream::finish`] prints the reason. Throughputs with a known link
//! have a column with their share of the link limit.

mod banner;
mod below;
mod colour;
mod costs;
mod environments;
mod findings;
mod links;
mod page;
mod skipped_run;
mod spread;
mod summary;
mod unstable;

use measure::figure::Unit;
use measure::presentation::Patterns;
use measure::record::{Device, Point, Status};
use measure::table::View;
use measure::text::plain;

use crate::error::Error;
use crate::link_limit::LinkLimit;
use crate::table::Heading;
use crate::unit::Scale;
use crate::{Points, table};
use banner::{Key, failed, marks};
use below::Below;
pub use colour::coloured;
pub use costs::costs;
pub use findings::findings;
pub(crate) use findings::{indented, rule};
pub use page::folded;
use skipped_run::SkippedRun;
pub use summary::Summary;

/// Tables printed as points end.
#[derive(Debug)]
pub struct Stream {
    patterns: Patterns,
    bandwidth: Unit,
    line: Option<usize>,
    devices: Vec<Device>,
    table: Option<Open>,
    skipped: Option<SkippedRun>,
    below: Below,
}

/// The table that rows are added to.
#[derive(Debug)]
struct Open {
    key: Key,
    banner_is_out: bool,
    header: Option<Heading>,
}

impl Stream {
    /// Starts tables with throughputs in a unit of bandwidth: Gb/s, MB/s or MiB/s. Columns that are
    /// less important are left out if a line of the page has too few characters for them.
    pub fn new(patterns: Patterns, bandwidth: Unit, line: Option<usize>) -> Result<Self, Error> {
        Scale::of(Some(bandwidth), "throughput.bytes_per_s", patterns)?;
        Ok(Self {
            patterns,
            bandwidth,
            line,
            devices: Vec::new(),
            table: None,
            skipped: None,
            below: Below::default(),
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
        self.below.see(point);
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
        self.flush(None) + &self.below.finish()
    }

    fn row(&mut self, point: &Point) -> String {
        let limit = LinkLimit::of(point, &self.devices, self.patterns);
        let shown = self.patterns.table(point);
        let of_link = limit.as_ref().and_then(|limit| limit.share(point));
        let view =
            View { point, bandwidth: self.bandwidth, line: self.line, has_link: limit.is_some(), of_link };
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
        self.below.note(shown, &view, limit.as_ref());
        out + &table::rows(shown, &view, self.patterns, &marks(point))
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

/// The tables of a whole run at once, after a warning if the whole run is unstable; `line` as in
/// [`Stream::new`].
pub fn tables(run: Points<'_>, bandwidth: Unit, line: Option<usize>) -> Result<String, Error> {
    let mut stream = Stream::new(run.patterns, bandwidth, line)?;
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
