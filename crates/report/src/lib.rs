//! The presentation of a run: tables for a terminal and one HTML file that works offline.
//! Everything is computed from the record alone ([`measure::record`]), on any machine.
//!
//! * [`terminal`]: tables printed as points end, in perftest's layout;
//! * [`html`]: the report, a single file;
//! * [`expectations`]: whether the run keeps the bounds that the user sets;
//! * [`export`]: the numbers of runs for other programs;
//! * [`figures`]: the charts of the report as files, for papers;
//! * [`advice`]: the best configuration for a goal, and the cost of each step away from it;
//! * [`compare`]: whether a new side differs from a base, and where a series of runs changes;
//! * [`link`]: signal and data rates of links, and the headers of packets;
//! * `link_limit`: the link limit (shown beside every throughput);
//! * [`model`]: models of latency over message size, and where they fail;
//! * `series_table`: the cells of a figure, its repetitions and its published numbers (used by
//!   tables and charts alike);
//! * `costs`: how much more the slower of several modes cost;
//! * [`fleet`]: which member of a fleet is slow;
//! * `findings`: whether the run shows what a paper found;
//! * [`launched`]: the medians over launches, where there are several;
//! * [`repeated`]: whether the mean over repetitions is known as well as the plan asks;
//! * `junit`: the writer of results of tests;
//! * `table`: the writer of tables; the points bring the presentation of a pattern ([`Points`]);
//! * `placement`: whether the whole run ran on CPUs far from each other;
//! * `folded`: one number of all repetitions of a point, and its interval;
//! * `timeline`: medians and largest samples over a point, for the page;
//! * `bins`: histograms of at most 200 bins from raw samples or recorded buckets.

pub mod advice;
mod bins;
pub mod compare;
mod conditions;
mod costs;
mod environments;
mod error;
mod escaped;
pub mod expectations;
pub mod export;
pub mod figures;
mod findings;
pub mod fleet;
mod folded;
pub mod html;
mod junit;
pub mod launched;
pub mod link;
mod link_limit;
mod list;
pub mod model;
mod placement;
mod reason;
pub mod repeated;
mod series_table;
mod settings;
mod table;
pub mod terminal;
mod timeline;
mod unit;
mod value;
mod varying;
pub mod whole;

pub use error::Error;

use measure::presentation::Patterns;
use measure::record::{Device, Point};

/// The points of a run, with what is needed to show them.
#[derive(Clone, Copy, Debug)]
pub struct Points<'a> {
    /// The points.
    pub points: &'a [Point],
    /// The devices that they were measured on.
    pub devices: &'a [Device],
    /// The patterns that the program knows.
    pub patterns: Patterns,
}

/// Gives raw samples: it connects a report to the directory of a run.
pub trait SampleSource {
    /// All samples of the file that a record names, in ns, or why they are not available.
    fn load(&self, path: &str) -> Result<Vec<u64>, String>;
}

/// Points of tests, on no known device.
#[cfg(test)]
pub(crate) fn known(points: &[Point]) -> Points<'_> {
    Points { points, devices: &[], patterns: bench::PATTERNS }
}

impl<F: Fn(&str) -> Result<Vec<u64>, String>> SampleSource for F {
    fn load(&self, path: &str) -> Result<Vec<u64>, String> {
        self(path)
    }
}
