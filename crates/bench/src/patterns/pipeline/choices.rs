//! The words of a pipeline: what it generates, when, and how samples are kept.

use crate::point::choice::choice;

/// Bytes of a sample before its values: its number, when it was due and when it was generated,
/// eight bytes each (Potter 2018, VILLASnode).
const META_BYTES: u64 = 24;
/// Bytes of a value: a float64.
const VALUE_BYTES: u64 = 8;
/// The largest number of values of a sample (Potter 2018, VILLASnode).
pub const VALUES_MAX: u32 = 64;

/// Bytes of a sample with this many values, as the endpoints carry it.
pub fn sample_bytes(values: u64) -> u64 {
    META_BYTES + VALUE_BYTES * values
}

choice! {
    /// When the receives that a queue holds are posted.
    pub enum Filling {
        /// Before the first sample.
        Before = "before",
        /// By the receiver, which takes no sample before all are posted, as VILLASnode's node
        /// `infiniband` fills its queue.
        Reading = "reading",
    }
}

choice! {
    /// The values of samples, as in VILLASnode's node `signal`: amplitude 1, frequency 1 Hz, no
    /// offset.
    pub enum Signal {
        /// The number of the step.
        Counter = "counter",
        /// Each value of another kind, in this order: random, sine, square, triangle, ramp,
        /// counter.
        Mixed = "mixed",
        /// A random walk whose steps are normally distributed.
        Random = "random",
        /// A sine.
        Sine = "sine",
    }
}

choice! {
    /// How a rank of a pipeline keeps its samples.
    pub enum Sink {
        /// In a file of comma-separated values, in VILLASnode's format.
        Csv = "csv",
        /// In a file in VILLASnode's format `villas.human`.
        Human = "human",
        /// Not at all.
        Null = "null",
        /// In a file of Apache Parquet, if the program is built with its feature `parquet`.
        Parquet = "parquet",
    }
}

impl Sink {
    /// Why this program cannot write such a file; `None` where it can.
    pub fn lack(self) -> Option<&'static str> {
        (self == Self::Parquet && !cfg!(feature = "parquet")).then_some(
            "this program is built without Parquet: build it with --features parquet, or keep the samples as csv",
        )
    }

    /// The extension of its files.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Human => "villas",
            Self::Null => "",
            Self::Parquet => "parquet",
        }
    }
}

choice! {
    /// The clock by which a step of a pipeline is due.
    pub enum Timer {
        /// A timer of the kernel, for which the generator sleeps. See timerfd_create(2).
        Timerfd = "timerfd",
        /// The time stamp counter, which the generator polls. It is calibrated against
        /// `CLOCK_MONOTONIC` (`measure::clock`), which replaces it where the counter is not
        /// reliable.
        Tsc = "tsc",
    }
}
