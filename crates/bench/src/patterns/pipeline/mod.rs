//! Samples at a fixed rate: a generator with a timer, an endpoint at each rank, and the merged
//! stamps of both ranks.
//!
//! ```text
//! rank 0: timer ─► signal ─► endpoint ──────► endpoint :rank 1
//!           due, submitted ─┐      ┌─ received
//!                           └─┬────┘
//!            the coordinator: arrival, one_way, lateness; missed, unsent, lost
//! ```
//!
//! # In a plan
//!
//! ```toml
//! [[experiment]]                       # samples at a fixed rate, timed from when they are due: arrival, one_way, lateness
//! name = "samples"
//! pattern = "pipeline"
//! duration = "1s"                      # or iterations: steps
//! sink_dir = "logs"                    # directory for files of samples; without it they are removed
//! [experiment.axes]
//! rate_hz = ["1k", "100k"]
//! values = [1, 8, 64]                  # a sample has 24 B, and 8 B for each value
//! signal = "random"                    # or "sine", "counter", "mixed"
//! timer = "tsc"                        # or "timerfd"
//! inline_max_bytes = 128               # of verbs: longer samples are gathered from memory
//! rx_filled = "before"                 # of verbs: or "reading": by the receiver, which takes no sample before
//! sink = "csv"                         # or "human", "parquet" (where it is built in), "null"
//! ```
//!
//! # Invariants
//!
//! * A step that the generator was late for is missed, and a sample for which the endpoint has no
//!   room is not sent. The generator waits for neither, because the next step is due. A sample
//!   carries when it was due and when it was generated, both read after the wait; the receiver
//!   stamps its arrival. The record also has the steps that the same timer misses with nothing else
//!   to do: the machine causes these.

pub(crate) mod check;
pub(crate) mod choices;
mod command;
mod merge;
mod run;
mod settings;
mod signal;
mod sink;
mod steps;
mod table;
mod timer;

use std::collections::BTreeMap;

use measure::record::{self, Direction, SinkReport, Throughput};

use self::choices::Filling;
use self::run::{Generated, Told};
use self::settings::Settings;
use super::one_way::why;
use crate::axis::{self, AxisList};
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::defaults::{DURATION_S, Defaults, RATE_HZ};
use crate::pattern::outcome::{Merged, Outcome};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::point::{Carrier, Length, PointSpec};
use crate::topology::{Form, Links, PartSpec, Topology, Usage};

/// The pattern.
pub(crate) struct Samples;

impl Pattern for Samples {
    const ROW: Row = Row {
        check: check::experiment,
        command: command::COMMAND,
        shown: &table::SHOWN,
        axes: settings::AXES,
        size_bytes: Some(settings::size_bytes),
        keeps_files: true,
        can_be_cut: |_| true,
        ..Row::named("pipeline")
    };
    type Told = Told;

    fn defaults(given: &AxisList, _carrier: Carrier) -> Defaults {
        let least_hz = given.get(axis::RATE_HZ).into_iter().min().unwrap_or(RATE_HZ);
        Defaults {
            length: Length::Duration(DURATION_S),
            tx_depth: DEPTH,
            rx_depth: DEPTH,
            signal_interval: None,
            share_above_ns: &SHARE_ABOVE_NS,
            paced_hz: Some(least_hz.max(1)),
            polls_shared_memory: true,
            axes: [Settings::usual(), vec![axis::INLINE_MAX_BYTES.value(INLINE_MAX_BYTES)]].concat(),
            // The values determine the length of a sample, and its length whether it is inline.
            made: &[axis::INLINE.row, axis::SIZE_BYTES.row],
            ..Defaults::default()
        }
    }

    fn topology(spec: &PointSpec) -> Topology {
        let fills_late = Settings::of(spec).rx_filled == Filling::Reading;
        let usage = Usage { form: Form::Written, fills_late, ..Usage::PACED };
        Topology::of_one(PartSpec::main(&spec.message, usage, Links::of_two()))
    }

    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<Told>), PointError> {
        let spec = rank.spec;
        let number = rank.rank;
        let rank_clock = rank.rank_clock;
        let has_one_clock = rank.has_one_clock();
        let (told, cpu) = run::run(rank.main()?, spec, number, has_one_clock, rank_clock)?;
        Ok((Outcome { cpu, ..Outcome::default() }, Some(told)))
    }

    fn merge(spec: &PointSpec, outcomes: &mut Vec<Outcome>, told: Vec<Option<Told>>) -> Merged {
        let told: Vec<_> = told.into_iter().flatten().collect();
        let [source, target] = &told[..] else { return Merged::of(outcomes) };
        let (mut merged, sinks) = match merge::merge(spec, &source.stamped, &target.stamped) {
            Ok(joined) => {
                (joined.merged(outcomes), vec![source.sink_report.clone(), target.sink_report.clone()])
            }
            Err(error) => {
                outcomes.clear();
                let mut merged = Merged::without_numbers(why(&error));
                if source.generated.is_none() {
                    return merged;
                }
                // That nothing arrives is no reason to forget what was sent.
                outcomes.push(Outcome::default());
                let first = usize::try_from(spec.warmup).unwrap_or(usize::MAX);
                merged.counters = merge::fates(first, &source.stamped, &target.stamped);
                (merged, vec![source.sink_report.clone()])
            }
        };
        let sinks: Vec<SinkReport> = sinks.into_iter().flatten().collect();
        let Some(generated) = &source.generated else { return merged };
        let own = missed(generated, &merged.counters).into_iter().chain(sinks.iter().filter_map(in_no_file));
        merged.unstable = own.chain(std::mem::take(&mut merged.unstable)).collect();
        merged.throughput = carried(spec, generated, &merged.counters).or(merged.throughput);
        let Generated { rate_hz, achieved_hz, missed_waiting, timer } = generated.clone();
        let inline = spec.message.endpoint.is_verbs().then_some(spec.message.inline);
        merged.pipeline =
            Some(record::Pipeline { rate_hz, achieved_hz, missed_waiting, inline, timer, sinks });
        merged
    }
}

/// The throughput of the samples that arrived, over the time in which they were generated.
fn carried(spec: &PointSpec, generated: &Generated, counters: &BTreeMap<String, u64>) -> Option<Throughput> {
    let [steps, missed] = record::steps(counters)?;
    let received = *counters.get("messages_received")?;
    let share = received as f64 / steps.saturating_sub(missed).max(1) as f64;
    Some(Throughput::of(share * generated.achieved_hz, spec.message.size_bytes, Direction::Uni))
}

/// Why the point is unstable, where the generator missed too many steps.
fn missed(generated: &Generated, counters: &BTreeMap<String, u64>) -> Option<String> {
    let [steps, missed] = record::steps(counters)?;
    let waiting = generated.missed_waiting;
    let share = missed as f64 / steps as f64;
    (share > MISSED_SHARE_MAX).then(|| {
        let percent = 100.0 * share;
        format!(
            "the generator was late and missed {percent:.1} % of {steps} steps; at {waiting} of them it only waited for its timer"
        )
    })
}

/// Why the point is unstable, where samples could not be written.
fn in_no_file(sink_report: &SinkReport) -> Option<String> {
    let SinkReport { rank, missing, error, .. } = sink_report;
    Some(format!("{missing} samples of rank {rank} are not in its file: {}", error.as_ref()?))
}

/// Above this share of missed steps, the rate was not held.
const MISSED_SHARE_MAX: f64 = 0.01;

/// The receiver may be late by ten milliseconds at 100 kHz; with eight values, all buffers fit into
/// a level 2 cache.
const DEPTH: u32 = 1024;
/// 50 us: the threshold of the histograms in Potter 2018 for samples at a fixed rate.
const SHARE_ABOVE_NS: [u64; 1] = [50_000];
/// Samples up to this many bytes are inline, as in the benchmarks of Potter 2018.
const INLINE_MAX_BYTES: u32 = 128;

#[cfg(test)]
mod tests;
