//! Samples: the times of messages, while a hot loop records them and when the run is over.
//!
//! A pattern writes ticks into a [`Recorder`]: [`RawSamples`], an array that is allocated, touched
//! and locked before the clock starts, or [`HistogramSamples`], a histogram of bounded size for
//! runs that are too long for an array. Both become [`Samples`], which are in nanoseconds and
//! provide statistics, a histogram and a series.
//!
//! Neither recorder allocates, takes a lock or calls the system while it records.
//!
//! # Invariants
//!
//! * Every message is timed. Samples go into memory that was allocated, touched and (where allowed)
//!   locked before the clock starts.

use crate::clock::Clock;
pub use crate::record::Scale;
use crate::record::{Histogram, Latency, LatencyKind};
use crate::stats;

mod counted;
mod distribution;
mod memory;
mod raw_file;
mod series;
mod stamps;
#[cfg(test)]
mod tests;

pub use counted::Counted;
pub use distribution::Distribution;
pub use raw_file::{read_raw, write_raw};
pub use series::{SERIES_BLOCKS, blocks};
pub use stamps::Stamps;

use memory::{PAGE_SAMPLES, Pages};

/// The destination of a hot loop's times, one for each message.
pub trait Recorder {
    /// Records the time of the next message, in ticks of the clock.
    fn record(&mut self, ticks: u64);
    /// Whether there is no room for another sample.
    fn is_full(&self) -> bool;
}

/// Every sample, in ticks, in an array made before the run.
#[derive(Debug)]
pub struct RawSamples {
    pages: Pages,
    len: usize,
    capacity: usize,
    missed: u64,
}

impl RawSamples {
    /// Room for `capacity` samples: allocated, every page written, and locked in memory where the
    /// system allows it.
    pub fn new(capacity: usize) -> crate::Result<Self> {
        Ok(Self { pages: Pages::new(capacity)?, len: 0, capacity, missed: 0 })
    }

    /// Why the array is not locked in memory and what to do about it; `None` when it is.
    pub fn not_locked(&self) -> Option<&str> {
        self.pages.not_locked()
    }

    /// Samples so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no samples so far.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Samples that were dropped because the array was full; 0 if the pattern always asks
    /// [`Recorder::is_full`].
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Discards all samples, e.g. those of a warm-up.
    pub fn clear(&mut self) {
        self.len = 0;
        self.missed = 0;
    }

    /// The samples in nanoseconds, in the order in which they were recorded.
    pub fn finish(self, clock: &Clock, scale: Scale) -> Samples {
        let ticks = self.pages.as_slice().iter().flat_map(|page| &page.0).take(self.len);
        Samples::from_ns(ticks.map(|&ticks| clock.ns_scaled(ticks, scale)).collect())
    }
}

impl Recorder for RawSamples {
    #[inline(always)]
    fn record(&mut self, ticks: u64) {
        if self.len < self.capacity {
            self.pages.as_mut_slice()[self.len / PAGE_SAMPLES].0[self.len % PAGE_SAMPLES] = ticks;
            self.len += 1;
        } else {
            self.missed += 1;
        }
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.len >= self.capacity
    }
}

/// A recorder of bounded size (about 300 KiB) for any number of samples. It converts each sample to
/// nanoseconds, scaled and rounded exactly as in an array. So histograms of different clocks have
/// the same buckets and merge without loss.
#[derive(Debug)]
pub struct HistogramSamples {
    clock: Clock,
    scale: Scale,
    distribution: Distribution,
}

impl HistogramSamples {
    /// An empty histogram of times by `clock`, allocated and touched.
    pub fn new(clock: &Clock, scale: Scale) -> Self {
        Self { clock: *clock, scale, distribution: Distribution::new() }
    }

    /// Samples so far.
    pub fn len(&self) -> u64 {
        self.distribution.count()
    }

    /// Whether there are no samples so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Discards all samples, e.g. those of a warm-up.
    pub fn clear(&mut self) {
        self.distribution = Distribution::new();
    }

    /// The distribution of the samples.
    pub fn finish(self) -> Samples {
        Samples { form: Form::Distribution(Box::new(self.distribution)), in_order: true }
    }
}

impl Recorder for HistogramSamples {
    #[inline]
    fn record(&mut self, ticks: u64) {
        self.distribution.add(self.clock.ns_scaled(ticks, self.scale));
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        false
    }
}

/// Samples in nanoseconds: all of them, or their distribution.
#[derive(Clone, Debug)]
pub struct Samples {
    form: Form,
    /// Whether the samples are in the order of time.
    in_order: bool,
}

#[derive(Clone, Debug)]
enum Form {
    Distribution(Box<Distribution>),
    Raw(Vec<u64>),
}

impl Samples {
    /// Every sample, in ns, in the order of time.
    pub fn from_ns(samples_ns: Vec<u64>) -> Self {
        Self { form: Form::Raw(samples_ns), in_order: true }
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        match &self.form {
            Form::Distribution(distribution) => distribution.count(),
            Form::Raw(samples_ns) => samples_ns.len() as u64,
        }
    }

    /// Every sample, in ns, in the order of time; `None` where only the distribution is known.
    pub fn raw(&self) -> Option<&[u64]> {
        match &self.form {
            Form::Distribution(_) => None,
            Form::Raw(samples_ns) => Some(samples_ns),
        }
    }

    /// Statistics, with the share of samples strictly above each threshold; `None` when there is no
    /// sample.
    pub fn latency(&self, kind: LatencyKind, thresholds_ns: &[u64]) -> Option<Latency> {
        match &self.form {
            Form::Distribution(distribution) => stats::from_histogram(kind, &**distribution, thresholds_ns),
            Form::Raw(samples_ns) => stats::latency(kind, samples_ns, thresholds_ns),
        }
    }

    /// At most [`SERIES_BLOCKS`] levels, in ns, in the order of time: medians of blocks of equal
    /// length, for [`crate::step::step`]. Where only the distribution is known they are medians of
    /// the means of shorter blocks. Empty for merged samples, which have no order.
    pub fn series(&self) -> Vec<f64> {
        match &self.form {
            _ if !self.in_order => Vec::new(),
            Form::Distribution(distribution) => series::block_medians(&distribution.block_means_ns()),
            Form::Raw(samples_ns) => series::block_medians(samples_ns),
        }
    }

    /// The distribution in buckets.
    pub fn histogram(&self) -> Histogram {
        match &self.form {
            Form::Distribution(distribution) => distribution.histogram(),
            Form::Raw(samples_ns) => Distribution::of(samples_ns).histogram(),
        }
    }

    /// Adds the samples of another rank or repetition. Exact samples stay exact if both are exact;
    /// the order of time is lost.
    pub fn merge(&mut self, other: &Self) {
        self.in_order = false;
        match (&mut self.form, &other.form) {
            (Form::Raw(all), Form::Raw(more)) => all.extend_from_slice(more),
            (Form::Distribution(all), Form::Raw(more)) => all.merge(&Distribution::of(more)),
            (Form::Distribution(all), Form::Distribution(more)) => all.merge(more),
            (Form::Raw(few), Form::Distribution(more)) => {
                let mut all = Distribution::of(few);
                all.merge(more);
                self.form = Form::Distribution(Box::new(all));
            }
        }
    }
}
