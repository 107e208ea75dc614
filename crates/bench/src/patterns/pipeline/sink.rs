//! How a rank of a pipeline keeps its samples: in memory that is allocated before the first sample,
//! and in a file after the last.
//!
//! A file therefore never delays a sample, and takes no CPU time while samples are measured. During
//! the measurement, keeping a sample costs a copy, which is measured separately.
//!
//! # Invariants
//!
//! * A file of samples is written after the last sample, from memory that was allocated before the
//!   first: its cost is no part of what is timed.

mod file;
#[cfg(feature = "parquet")]
mod parquet;
mod place;

use measure::clock::Clock;
use measure::record::SinkReport;
use measure::samples::Stamps;
use measure::villas::{Format, Head};
use rustix::time::{ClockId, clock_gettime};

use self::file::Written;
use self::place::Place;
use super::choices::Sink;
use super::settings::Settings;
use crate::Error;
use crate::point::{Length, PointSpec};

/// Words of a row before its values: the step, when the sample was generated, when it was received.
const HEAD_WORDS: usize = 3;
/// Rows that are copied to measure the cost of a copy.
const TRIAL_ROWS: u64 = 4096;

/// The samples of a rank.
pub(super) struct Rows {
    sink: Sink,
    words: Vec<u64>,
    stride: usize,
    rows: usize,
    /// The cost of a copy, in ns.
    handing_over_ns: f64,
    place: Place,
}

impl Rows {
    /// Allocates room for a sample of every step and creates the file; `None` where samples are not
    /// kept.
    ///
    /// # Errors
    /// [`Error::Impossible`] where the file cannot be created: the point is not measured.
    pub(super) fn new(spec: &PointSpec, rank: u32, steps: u64, clock: Clock) -> Result<Option<Self>, Error> {
        let settings = Settings::of(spec);
        if let Some(lack) = settings.sink.lack() {
            return Err(Error::Impossible { reason: lack.to_owned() });
        }
        if settings.sink == Sink::Null {
            return Ok(None);
        }
        let values = settings.values as usize;
        let stride = HEAD_WORDS + values;
        let place = Place::new(spec.sink_dir.as_deref(), name(spec, &settings, rank));
        let place = place.map_err(|reason| Error::Impossible { reason })?;
        let samples = usize::try_from(steps).unwrap_or(usize::MAX);
        let count = samples.saturating_mul(stride);
        let mut words = Vec::new();
        words.try_reserve_exact(count).map_err(|cause| {
            let bytes = count.saturating_mul(size_of::<u64>());
            Error::Measure(measure::Error::Memory { samples, bytes, cause })
        })?;
        // Writing the memory now avoids page faults in the measurement.
        words.resize(count, Stamps::NONE);
        let mut rows = Self { sink: settings.sink, words, stride, rows: 0, handing_over_ns: 0.0, place };
        let trial = TRIAL_ROWS.min(steps);
        let before = clock.now();
        for row in 0..trial {
            let values = std::hint::black_box(row);
            rows.fill([row, before.0, before.0], |value| Ok(values + value as u64))?;
        }
        let ticks = clock.now().since(before);
        rows.handing_over_ns = clock.ns_f64(ticks) / trial.max(1) as f64;
        rows.rows = 0;
        Ok(Some(rows))
    }

    /// Keeps a sample, whose values `value` returns by index. Ignores a sample for which there is
    /// no room, as when a datagram arrives twice.
    ///
    /// # Errors
    /// The errors of `value`.
    #[inline]
    pub(super) fn fill(
        &mut self,
        head: [u64; HEAD_WORDS],
        value: impl Fn(usize) -> Result<u64, Error>,
    ) -> Result<(), Error> {
        let start = self.rows * self.stride;
        let Some(row) = self.words.get_mut(start..start + self.stride) else { return Ok(()) };
        let (first, rest) = row.split_at_mut(HEAD_WORDS);
        first.copy_from_slice(&head);
        for (index, word) in rest.iter_mut().enumerate() {
            *word = value(index)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Writes the samples to their file. An error is part of the report, and the file has whole
    /// lines.
    pub(super) fn write(mut self, rank: u32, times: &Times, clock: Clock) -> SinkReport {
        let before = clock.now();
        let written = match self.sink {
            Sink::Null => Written::default(),
            Sink::Csv => self.text(Format::Csv, times),
            Sink::Human => self.text(Format::Human, times),
            Sink::Parquet => self.columns(times),
        };
        let write_ns = clock.ns(clock.now().since(before));
        self.place.is_written = written.bytes > 0;
        let path = self.place.path.as_ref().filter(|_| self.place.is_written);
        SinkReport {
            rank,
            format: if self.sink == Sink::Human { "villas.human" } else { self.sink.ending() }.to_owned(),
            path: path.map(|path| path.to_string_lossy().into_owned()),
            handing_over_ns: self.handing_over_ns,
            samples: written.samples,
            missing: self.rows as u64 - written.samples,
            bytes: written.bytes,
            write_ns,
            error: written.error,
        }
    }

    /// The rows: each has the words of its head, and then its values.
    fn rows(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.words[..self.rows * self.stride].chunks_exact(self.stride)
    }

    fn text(&self, format: Format, times: &Times) -> Written {
        file::write(&self.place, &format.header(self.stride - HEAD_WORDS), self.rows(), |row, out| {
            let (head, values) = times.split(row);
            format.write(&head, values.iter().copied().map(f64::from_bits), out);
        })
    }

    #[cfg(feature = "parquet")]
    fn columns(&self, times: &Times) -> Written {
        parquet::write(&self.place, self.stride - HEAD_WORDS, self.rows(), |row| times.split(row))
    }

    #[cfg(not(feature = "parquet"))]
    fn columns(&self, _: &Times) -> Written {
        Written { error: self.sink.lack().map(str::to_owned), ..Written::default() }
    }
}

/// The name of a rank's file, as the benchmarks of VILLASnode name theirs, with the number of all
/// steps, warm-up included.
fn name(spec: &PointSpec, settings: &Settings, rank: u32) -> String {
    let node = match spec.message.endpoint.is_verbs() {
        true => spec.message.service.word(),
        false => spec.message.endpoint.word(),
    };
    let steps = match spec.length {
        Length::Iterations(steps) => spec.warmup + steps,
        Length::Duration(_) => 0,
    };
    let Settings { values, rate_hz, .. } = settings;
    let way = if rank == 0 { "input" } else { "output" };
    let ending = settings.sink.ending();
    format!("{:06}_{node}-{values}-{rate_hz}-{steps}_{way}.{ending}", spec.id)
}

/// The same instant by the clock that stamps and by `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReference {
    ticks: u64,
    realtime_ns: u64,
    tick_hz: f64,
}

impl ClockReference {
    pub(super) fn now(clock: &Clock) -> Self {
        let now = clock_gettime(ClockId::Realtime);
        let realtime_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        Self { ticks: clock.now().0, realtime_ns, tick_hz: clock.tick_hz() }
    }

    /// The three words in which it is sent.
    pub(super) fn words(&self) -> [u64; 3] {
        [self.ticks, self.realtime_ns, self.tick_hz.to_bits()]
    }

    pub(super) fn of_words([ticks, realtime_ns, tick_hz]: [u64; 3]) -> Self {
        Self { ticks, realtime_ns, tick_hz: f64::from_bits(tick_hz) }
    }

    /// Converts a stamp to ns since 1970.
    fn realtime_ns(&self, ticks: u64) -> u64 {
        let ns = ticks.wrapping_sub(self.ticks).cast_signed() as f64 * 1e9 / self.tick_hz;
        self.realtime_ns.saturating_add_signed(ns.round() as i64)
    }
}

/// The references that convert stamps to times of day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The reference of the generator, if it is known.
    pub(super) source: Option<ClockReference>,
    /// The reference of the receiver.
    pub(super) target: ClockReference,
    /// Whether both belong to one clock.
    pub(super) is_one: bool,
}

impl Times {
    /// Splits a row into its head and its values.
    fn split<'a>(&self, row: &'a [u64]) -> (Head, &'a [u64]) {
        let (head, values) = row.split_at(HEAD_WORDS);
        (self.head([head[0], head[1], head[2]]), values)
    }

    /// The head of a sample. With two clocks, the offset is as exact as their times of day.
    fn head(&self, [sequence, submitted, received]: [u64; HEAD_WORDS]) -> Head {
        let origin_ns = self.source.map(|source| source.realtime_ns(submitted));
        let offset_ns = match (self.is_one, origin_ns) {
            _ if received == Stamps::NONE => None,
            (true, _) => {
                let ticks = received.wrapping_sub(submitted).cast_signed();
                Some((ticks as f64 * 1e9 / self.target.tick_hz).round() as i64)
            }
            (false, Some(origin_ns)) => {
                Some(self.target.realtime_ns(received).wrapping_sub(origin_ns).cast_signed())
            }
            (false, None) => None,
        };
        Head { origin_ns, offset_ns, sequence }
    }
}

#[cfg(test)]
mod tests;
