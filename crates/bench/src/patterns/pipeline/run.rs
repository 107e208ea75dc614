//! A rank's share of a pipeline.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use measure::record::{Cpu, LatencyKind, SinkReport, TimerAlone};
use measure::samples::{HistogramSamples, Recorder, Scale, Stamps};
use serde::{Deserialize, Serialize};

use super::choices;
use super::settings::Settings;
use super::signal::Signals;
use super::sink::{ClockReference, Rows, Times};
use super::timer::{Sleeping, Spinning};
use crate::Error;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::pattern::Watch;
use crate::pattern::outcome;
use crate::patterns::one_way::messages::{AFTER, BEFORE, EXCHANGES, exchange};
use crate::patterns::one_way::{Column, Stamped};
use crate::patterns::pipeline::steps::{
    META_WORDS, Received, Schedule, SourceLog, TargetLog, Tick, Timer, await_parting, generate, part, take,
};
use crate::point::{PointSpec, Service};
use crate::rank_clock::RankClock;

/// What the generator of a point reports in addition to its stamps.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Generated {
    /// The rate at which steps were due, in Hz.
    pub rate_hz: f64,
    /// The rate of generated samples, in Hz, by `CLOCK_MONOTONIC`.
    pub achieved_hz: f64,
    /// Steps that were missed while the generator only waited for its timer.
    pub missed_waiting: u64,
    /// The timer alone.
    pub timer: TimerAlone,
}

/// What a rank reports.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    /// The rank's stamps.
    pub(super) stamped: Stamped,
    /// The report of the generator.
    pub(super) generated: Option<Generated>,
    /// The report about the file of samples, where they are kept.
    pub(super) sink_report: Option<SinkReport>,
}

impl outcome::Told for Told {
    fn take_columns(&mut self) -> Vec<u64> {
        self.stamped.take_columns()
    }

    fn put_columns(&mut self, columns: &mut Vec<u64>) -> Result<(), Error> {
        self.stamped.put_columns(columns)
    }
}

/// How long the timer alone is measured, before and after the samples: this share of the steps'
/// time, within limits.
const TRIAL_SHARE: f64 = 0.25;
const TRIAL: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];
/// The fewest steps of the timer alone, at low rates.
const TRIAL_STEPS_MIN: u64 = 10;

/// Where a word may be lost, the receiver waits this much longer than the trial for the word that
/// the generator parts.
const PARTING: Duration = Duration::from_millis(200);

/// Runs a rank's share: rank 0 generates samples, rank 1 takes them. `has_one_clock` says whether
/// both read the same clock.
///
/// # Errors
/// The errors of the endpoint and of the kernel's timer.
pub(crate) fn run<E: Endpoint>(
    endpoint: &mut E,
    spec: &PointSpec,
    rank: u32,
    has_one_clock: bool,
    rank_clock: &RankClock,
) -> Result<(Told, Option<Cpu>), Error> {
    let settings = Settings::of(spec);
    let clock = rank_clock.clock;
    let rate_hz = settings.rate_hz;
    let timer = settings.timer;
    let run = Run { endpoint, spec, settings, rank, has_one_clock, rank_clock };
    match (rank, timer) {
        (1.., _) => run.take(),
        (0, choices::Timer::Tsc) => run.generate(&mut Spinning::new(clock, rate_hz)),
        (0, choices::Timer::Timerfd) => run.generate(&mut Sleeping::new(clock, rate_hz)?),
    }
}

/// A rank of a point.
struct Run<'a, E> {
    endpoint: &'a mut E,
    spec: &'a PointSpec,
    settings: Settings,
    rank: u32,
    has_one_clock: bool,
    rank_clock: &'a RankClock,
}

impl<E: Endpoint> Run<'_, E> {
    /// What both ranks have to do.
    fn schedule(&self) -> Schedule {
        Schedule {
            steps: self.spec.warmup + self.spec.length.iterations().unwrap_or(0),
            start_message: ClockReference::now(&self.rank_clock.clock).words(),
            period: Duration::from_secs_f64(1.0 / self.settings.rate_hz as f64),
            is_reliable: self.spec.message.service == Service::Rc,
        }
    }

    /// Generates samples, with a timer that polls or sleeps.
    fn generate<T: Timer>(mut self, timer: &mut T) -> Result<(Told, Option<Cpu>), Error> {
        let clock = self.rank_clock.clock;
        let schedule = self.schedule();
        let settings = &self.settings;
        // A generator that sleeps has no preemptions to watch for: it does not run while it sleeps.
        let spins = settings.timer == choices::Timer::Tsc;
        let mut signals = Signals::new(settings.signal, settings.values, settings.rate_hz as f64);
        let rows = Rows::new(self.spec, self.rank, schedule.steps, clock)?;
        let mut log = Source::new(&schedule, self.spec.warmup, rows)?;
        let mut watch = Watch::for_gaps(clock);
        let mut alone = Alone::new(clock, spins, &schedule);
        alone.try_out(timer)?;
        let mut exchanged = self.exchange(BEFORE)?;
        let before = Instant::now(&clock);
        let (done, cpu) =
            watched(clock, || generate(self.endpoint, timer, &mut signals, &mut log, &mut watch, &schedule));
        let steps = done?;
        let tick_hz = Instant::now(&clock).tick_hz(&before);
        exchanged.extend(self.exchange(AFTER)?);
        alone.try_out(timer)?;
        part(self.endpoint, &schedule)?;
        let source = ClockReference::of_words(schedule.start_message);
        let times = Times { source: Some(source), target: source, is_one: true };
        let sink_report = log.rows.take().map(|rows| rows.write(self.rank, &times, clock));
        let generated = Generated {
            rate_hz: 1e9 / timer.period_ns(),
            achieved_hz: log.rate(tick_hz),
            missed_waiting: log.missed_waiting,
            timer: alone.finish(self.spec).ok_or(Error::TooFewMessages { messages: 0 })?,
        };
        let columns = [
            (Column::Due, log.due.first(steps)),
            (Column::Submitted, log.submitted.first(steps)),
            (Column::Exchanged, exchanged),
        ];
        let stamped = Stamped::by(self.rank_clock, spins.then_some(watch), columns);
        Ok((Told { stamped, generated: Some(generated), sink_report }, cpu))
    }

    /// Takes the samples.
    fn take(mut self) -> Result<(Told, Option<Cpu>), Error> {
        let clock = self.rank_clock.clock;
        let schedule = self.schedule();
        let rows = Rows::new(self.spec, self.rank, schedule.steps, clock)?;
        let mut log = Target { received: stamps(&schedule)?, rows, source: None };
        let mut watch = Watch::for_gaps(clock);
        let mut exchanged = self.exchange(BEFORE)?;
        let (done, cpu) = watched(clock, || take(self.endpoint, &mut log, &mut watch, &schedule));
        done?;
        exchanged.extend(self.exchange(AFTER)?);
        // The following work, writing files and sending stamps, would disturb the timer alone,
        // which the generator measures now.
        await_parting(self.endpoint, &schedule, trial_at_most(&schedule) + PARTING)?;
        let target = ClockReference::of_words(schedule.start_message);
        let times = Times { source: log.source, target, is_one: self.has_one_clock };
        let sink_report = log.rows.take().map(|rows| rows.write(self.rank, &times, clock));
        let watch = (!self.spec.message.poll.sleeps()).then_some(watch);
        let columns = [(Column::Received, log.received.to_vec()), (Column::Exchanged, exchanged)];
        let stamped = Stamped::by(self.rank_clock, watch, columns);
        Ok((Told { stamped, generated: None, sink_report }, cpu))
    }

    /// Exchanges stamped messages, where the ranks have different clocks.
    fn exchange(&mut self, first: u32) -> Result<Vec<u64>, Error> {
        let count = if self.has_one_clock { 0 } else { EXCHANGES };
        let mut exchanged = Vec::with_capacity(2 * count as usize);
        exchange(self.endpoint, self.rank == 0, first..first + count, None, &mut exchanged)?;
        Ok(exchanged)
    }
}

fn stamps(schedule: &Schedule) -> Result<Stamps, Error> {
    Ok(Stamps::new(usize::try_from(schedule.steps).unwrap_or(usize::MAX))?)
}

/// The stamps of the generator.
struct Source {
    due: Stamps,
    submitted: Stamps,
    /// The first step that counts.
    first: u64,
    /// The number of samples that count, and when the first and the last were generated.
    samples: u64,
    span: [u64; 2],
    /// Steps that were missed while the generator only waited.
    missed_waiting: u64,
    rows: Option<Rows>,
}

impl Source {
    fn new(schedule: &Schedule, first: u64, rows: Option<Rows>) -> Result<Self, Error> {
        let due = stamps(schedule)?;
        let submitted = stamps(schedule)?;
        Ok(Self { due, submitted, first, samples: 0, span: [0; 2], missed_waiting: 0, rows })
    }

    /// The rate of samples per second, by a clock of `tick_hz` ticks per second.
    fn rate(&self, tick_hz: f64) -> f64 {
        let [first, last] = self.span;
        self.samples.saturating_sub(1) as f64 * tick_hz / last.saturating_sub(first).max(1) as f64
    }
}

impl SourceLog for Source {
    #[inline(always)]
    fn generated(&mut self, step: u64, tick: &Tick, values: &[f64], is_transmitted: bool) {
        self.due.set(step, Ticks(tick.due));
        if is_transmitted {
            self.submitted.set(step, tick.now);
        }
        if !tick.is_behind {
            // Only steps that count: the wait may have begun at a step of the warm-up.
            self.missed_waiting += (step + tick.passed).saturating_sub(self.first.max(step + 1));
        }
        if step >= self.first {
            self.span = [if self.samples == 0 { tick.now.0 } else { self.span[0] }, tick.now.0];
            self.samples += 1;
        }
        if let Some(rows) = &mut self.rows {
            // The closure never fails: a slice has every value.
            let _ = rows.fill([step, tick.now.0, Stamps::NONE], |value| Ok(values[value].to_bits()));
        }
    }
}

/// The stamps of the receiver.
struct Target {
    received: Stamps,
    rows: Option<Rows>,
    /// The reference of the generator's clock.
    source: Option<ClockReference>,
}

impl TargetLog for Target {
    fn started(&mut self, words: [u64; 3]) {
        self.source = Some(ClockReference::of_words(words));
    }

    #[inline(always)]
    fn received<E: Endpoint>(&mut self, sample: &Received, endpoint: &E) -> Result<(), Error> {
        // A datagram may arrive twice.
        let is_first = self.received.set_first(sample.step, sample.at);
        let Some(rows) = self.rows.as_mut().filter(|_| is_first) else { return Ok(()) };
        let head = [sample.step, sample.submitted, sample.at.0];
        rows.fill(head, |value| endpoint.get(META_WORDS + value))
    }
}

/// The same instant by the clock that stamps and by the clock that defines a second.
struct Instant {
    ticks: Ticks,
    reference_ns: u64,
}

impl Instant {
    fn now(clock: &Clock) -> Self {
        Self { ticks: clock.now(), reference_ns: clock.reference_ns() }
    }

    /// The ticks per second between an earlier instant and this one.
    fn tick_hz(&self, earlier: &Self) -> f64 {
        let ns = self.reference_ns.saturating_sub(earlier.reference_ns).max(1);
        self.ticks.since(earlier.ticks) as f64 * 1e9 / ns as f64
    }
}

/// The longest time for which the timer alone is measured.
fn trial_at_most(schedule: &Schedule) -> Duration {
    TRIAL[1].max(schedule.period.saturating_mul(TRIAL_STEPS_MIN as u32))
}

/// The timer alone: a wait for its steps without any other work.
struct Alone {
    clock: Clock,
    /// Whether the loop never sleeps.
    spins: bool,
    lateness: HistogramSamples,
    steps: u64,
    missed: u64,
    ns: u64,
    /// Ticks during which the loop was preempted.
    away: u64,
    /// The time of one trial.
    trial: Duration,
}

impl Alone {
    fn new(clock: Clock, spins: bool, schedule: &Schedule) -> Self {
        let [least, most] = TRIAL;
        let all_s = schedule.period.as_secs_f64() * schedule.steps as f64;
        let trial = Duration::from_secs_f64(TRIAL_SHARE * all_s).clamp(least, most);
        Self {
            clock,
            spins,
            trial,
            lateness: HistogramSamples::new(&clock, Scale::Whole),
            steps: 0,
            missed: 0,
            ns: 0,
            away: 0,
        }
    }

    /// Waits for the steps of one trial.
    fn try_out<T: Timer>(&mut self, timer: &mut T) -> Result<(), Error> {
        let steps = (self.trial.as_nanos() as f64 / timer.period_ns()).round() as u64;
        let steps = steps.max(TRIAL_STEPS_MIN);
        let mut watch = Watch::for_gaps(self.clock);
        timer.start()?;
        let mut step = 0;
        let began_ns = self.clock.reference_ns();
        while step < steps {
            let tick = timer.wait(step, |now| {
                // As in the generator's loop.
                watch.see(now);
                Ok(())
            })?;
            watch.see(tick.now);
            watch.pass();
            self.lateness.record(tick.now.0 - tick.due);
            self.missed += tick.passed - 1;
            step += tick.passed;
        }
        self.ns += self.clock.reference_ns() - began_ns;
        self.steps += step;
        self.away += watch.seen().total;
        Ok(())
    }

    fn finish(self, spec: &PointSpec) -> Option<TimerAlone> {
        let rate_hz = self.steps as f64 * 1e9 / self.ns.max(1) as f64;
        let lateness = self.lateness.finish().latency(LatencyKind::Lateness, &spec.share_above_ns)?;
        let away_share = self.clock.ns_f64(self.away) / self.ns.max(1) as f64;
        let away_share = self.spins.then_some(away_share);
        Some(TimerAlone { steps: self.steps, missed: self.missed, rate_hz, away_share, lateness })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Missed steps of the warm-up do not count, even where a stall of a warm-up step lasts until
    /// steps that count.
    #[test]
    fn steps_that_are_missed_waiting_are_those_that_count() {
        let start_message = [0; 3];
        let schedule =
            Schedule { start_message, steps: 100, period: Duration::from_millis(1), is_reliable: true };
        let missed = |step: u64, passed: u64, is_behind: bool| {
            let mut source = Source::new(&schedule, 10, None).unwrap();
            source.generated(step, &Tick { due: 0, now: Ticks(1), passed, is_behind }, &[], true);
            source.missed_waiting
        };
        assert_eq!([missed(3, 1, false), missed(3, 7, false)], [0, 0]);
        // Step 9 belongs to the warm-up.
        assert_eq!([missed(8, 5, false), missed(9, 4, false), missed(10, 4, false)], [3, 3, 3]);
        assert_eq!(missed(10, 4, true), 0);
    }
}
