//! The words of a pipeline: what it generates, when, and where samples are kept.

use crate::point::choice::choice;

/// Bytes of a sample beside its values: its number, when it was due and when it was generated,
/// eight each (V60 of the evaluations).
const META_BYTES: u64 = 24;
/// Bytes of a value: a float64.
const VALUE_BYTES: u64 = 8;
/// Values of a sample at most (V63).
pub const VALUES_MAX: u32 = 64;

/// Bytes of a sample of so many values, as the nodes carry it.
pub fn sample_bytes(values: u64) -> u64 {
    META_BYTES + VALUE_BYTES * values
}

choice! {
    /// When the receives of a queue are posted that are kept there.
    pub enum Filling {
        /// Before there is anything to take.
        Before = "before",
        /// By the receiver, which takes no sample before all are posted. So VILLASnode's node
        /// `infiniband` fills its queue (V56 of the evaluations).
        Reading = "reading",
    }
}

choice! {
    /// What the values of samples are, as in VILLASnode's node `signal`: of amplitude 1, frequency
    /// 1 Hz and no offset.
    pub enum Signal {
        /// The number of the step.
        Counter = "counter",
        /// Each value of another kind, in turn: random, sine, square, triangle, ramp, counter.
        Mixed = "mixed",
        /// A random walk whose steps are normally distributed.
        Random = "random",
        /// A sine.
        Sine = "sine",
    }
}

choice! {
    /// Where an end of a pipeline keeps its samples.
    pub enum Sink {
        /// A file of comma-separated values, as VILLASnode has it.
        Csv = "csv",
        /// A file in VILLASnode's own format `villas.human`.
        Human = "human",
        /// Nowhere.
        Null = "null",
        /// A file of Apache Parquet, where the program is built with its feature `parquet`.
        Parquet = "parquet",
    }
}

impl Sink {
    /// Why it cannot be had, where it cannot.
    pub fn lack(self) -> Option<&'static str> {
        (self == Self::Parquet && !cfg!(feature = "parquet")).then_some(
            "this program is built without Parquet: build it with --features parquet, or keep them as csv",
        )
    }

    /// What its files end in.
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
    /// What tells when a step of a pipeline is due.
    pub enum Timer {
        /// The kernel's timer, for which the generator sleeps. See timerfd_create(2).
        Timerfd = "timerfd",
        /// The time stamp counter, which the generator reads again and again. It is calibrated
        /// against `CLOCK_MONOTONIC` (`measure::clock`), which takes its place where it cannot be
        /// trusted.
        Tsc = "tsc",
    }
}
