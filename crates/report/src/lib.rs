//! What is shown of a run: tables for a terminal and one HTML file that works offline. Everything is computed from
//! the record alone ([`measure::record`]), on any machine.
//!
//! * [`terminal`]: tables printed as points end, in perftest's layout;
//! * [`html`]: the report, a single file;
//! * [`advice`]: which way to send is best for a goal, and what each step away from it costs;
//! * [`link`]: signal and data rates of links, and the headers of packets;
//! * `link_limit`: what a link carries at best (used beside every throughput);
//! * [`model`]: what a latency over message size is made of, and where models of it fail;
//! * `series_table`: the cells of a figure, its repetitions and its published numbers (used by tables and charts alike);
//! * `findings`: whether the run shows what a paper found;
//! * [`repeated`]: whether the mean over repetitions is known as well as was asked for;
//! * `tables`: what is shown of each pattern, a file each; `table`: the writer of tables;
//! * `placement`: whether the run as a whole was made by CPUs far from each other;
//! * `bins`: histograms of at most 200 bins from raw samples or recorded buckets.

pub mod advice;
mod bins;
mod conditions;
mod error;
mod findings;
pub mod html;
pub mod link;
mod link_limit;
pub mod model;
mod placement;
mod reason;
pub mod repeated;
mod series_table;
mod table;
mod tables;
pub mod terminal;
mod unit;
mod value;
mod varying;

pub use error::Error;

/// Where raw samples come from: the glue between a report and the directory of a run.
pub trait SampleSource {
    /// All samples of the file that a record names, in ns, or why they cannot be had.
    fn load(&self, path: &str) -> Result<Vec<u64>, String>;
}

impl<F: Fn(&str) -> Result<Vec<u64>, String>> SampleSource for F {
    fn load(&self, path: &str) -> Result<Vec<u64>, String> {
        self(path)
    }
}
