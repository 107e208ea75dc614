//! Samples at a fixed rate: a generator with a timer, a node at each end, and what both ends
//! stamped put together.
//!
//! ```text
//! rank 0: timer ─► signal ─► node ──────────► node :rank 1      (the nodes are endpoints)
//!           due, submitted ─┐      ┌─ received
//!                           └─┬────┘
//!            the coordinator: arrival, one_way, lateness; missed, not transmitted, lost
//! ```
//!
//! # In a plan
//!
//! ```toml
//! [[experiment]]                       # samples at a fixed rate, timed from when they are due: arrival, one_way, lateness
//! name = "samples"
//! pattern = "pipeline"
//! duration = "1s"                      # or iterations: steps
//! sink_dir = "logs"                    # where files of samples stay; without it they are removed once they are written
//! [experiment.axes]
//! rate_hz = ["1k", "100k"]
//! values = [1, 8, 64]                  # a sample has 24 B and 8 for each
//! signal = "random"                    # or "sine", "counter", "mixed"
//! timer = "tsc"                        # or "timerfd"
//! inline_max_bytes = 128               # of verbs: longer samples are gathered from memory
//! rx_filled = "before"                 # of verbs: or "reading": by the receiver, which takes no sample meanwhile
//! sink = "csv"                         # or "human", "parquet" (where it is built in), "null"
//! ```
//!
//! # Invariants
//!
//! * A step that the generator was late for is missed, and a sample for which the node has no room
//!   is not sent. The generator waits for neither, because the next step is due. A sample carries
//!   when it was due and when it was generated, both read after the wait; the sink stamps it where
//!   it arrives. The record also holds the steps that the same timer misses with nothing else to
//!   do: the share of the machine.

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
            // A sample is as long as its values make it, and inline up to a length.
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

/// The samples that arrived, while they were generated.
fn carried(spec: &PointSpec, generated: &Generated, counters: &BTreeMap<String, u64>) -> Option<Throughput> {
    let [steps, missed] = record::steps(counters)?;
    let received = *counters.get("messages_received")?;
    let share = received as f64 / steps.saturating_sub(missed).max(1) as f64;
    Some(Throughput::of(share * generated.achieved_hz, spec.message.size_bytes, Direction::Uni))
}

/// What is wrong where a generator missed steps.
fn missed(generated: &Generated, counters: &BTreeMap<String, u64>) -> Option<String> {
    let [steps, missed] = record::steps(counters)?;
    let waiting = generated.missed_waiting;
    (missed as f64 > MISSED_SHARE_MAX * steps as f64).then(|| {
        format!(
            "the generator was not there for {missed} of {steps} steps, for {waiting} of which it waited for its timer"
        )
    })
}

/// What is wrong where samples could not be written.
fn in_no_file(sink_report: &SinkReport) -> Option<String> {
    let SinkReport { rank, missing, error, .. } = sink_report;
    Some(format!("{missing} samples of rank {rank} are in no file: {}", error.as_ref()?))
}

/// Above this share of missed steps the rate was not what it is said to be.
const MISSED_SHARE_MAX: f64 = 0.01;

/// The receiver may be away for ten milliseconds at 100 kHz; of eight values, all buffers fit in a
/// cache of the second level.
const DEPTH: u32 = 1024;
/// 50 us: that of its histograms of samples at a rate.
const SHARE_ABOVE_NS: [u64; 1] = [50_000];
/// Samples of so many bytes are inline: what the benchmarks of the thesis ask for (V58).
const INLINE_MAX_BYTES: u32 = 128;

#[cfg(test)]
mod tests;
