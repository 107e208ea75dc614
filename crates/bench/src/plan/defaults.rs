//! The defaults of plans, with the reason for each, and an experiment with every default filled in.

use super::model::Experiment;
use crate::axis::{self, Axis, AxisList};
use crate::pattern::defaults::{Defaults, ITERATIONS, are_all};
use crate::pattern::experiment::{Filled, WARMUP_SHARE, least_depth};
use crate::point::{Carrier, Family, Flow, Length, Operation, Poll, Protocol, Service};

impl Filled {
    /// An experiment for each of its endpoints, with the axes that apply to the endpoint.
    pub(super) fn each(experiment: &Experiment) -> Vec<Self> {
        carriers(experiment).iter().map(|carrier| Self::new(experiment, *carrier)).collect()
    }

    fn new(experiment: &Experiment, carrier: Carrier) -> Self {
        let pattern = experiment.pattern;
        let mut settings = experiment.settings.clone();
        settings.axes.retain(|axis| (axis.row.is_for)(carrier));
        settings.axes.put(axis::ENDPOINT.value(carrier));
        let defaults = pattern.entry().defaults(&settings.axes, carrier);
        let length = match (settings.iterations, settings.duration_s) {
            (Some(iterations), _) => Length::Iterations(iterations),
            (None, Some(duration_s)) => Length::Duration(duration_s),
            (None, None) => defaults.length,
        };
        let (warmup, timeout_s) = match length {
            Length::Iterations(iterations) => {
                let warmup = (iterations / WARMUP_SHARE).max(WARMUP_MIN);
                let steps = iterations.saturating_add(warmup) as f64;
                (warmup, TIMEOUT_S + defaults.paced_hz.map_or(0.0, |rate_hz| steps / rate_hz as f64))
            }
            Length::Duration(duration_s) => (ITERATIONS / WARMUP_SHARE, TIMEOUT_S + duration_s),
        };
        let tx_depth = settings.tx_depth.unwrap_or(defaults.tx_depth);
        Self {
            name: experiment.name.clone(),
            pattern,
            carrier,
            length,
            bytes_max: settings.bytes_max,
            warmup: settings.warmup.unwrap_or(warmup),
            repetitions: settings.repetitions.unwrap_or(match settings.within {
                Some(_) => REPETITIONS_WITHIN.min(settings.repetitions_max.unwrap_or(u32::MAX)),
                None => REPETITIONS,
            }),
            launches: settings.launches.unwrap_or(LAUNCHES),
            within: settings
                .within
                .map(|within| (within, settings.repetitions_max.unwrap_or(REPETITIONS_MAX))),
            tx_depth,
            rx_depth: settings.rx_depth.unwrap_or(defaults.rx_depth),
            keep_samples: settings.keep_samples.unwrap_or(KEEP_SAMPLES),
            share_above_ns: settings
                .share_above_ns
                .clone()
                .unwrap_or_else(|| defaults.share_above_ns.to_vec()),
            timeout_s: settings.timeout_s.unwrap_or(timeout_s),
            axes: axes(
                defaults,
                carrier,
                &settings.axes,
                least_depth(&settings.axes, axis::TX_DEPTH).unwrap_or(tx_depth),
            ),
            settings,
            place: experiment.place.clone(),
        }
    }
}

/// The endpoints of an experiment, in order.
pub(super) fn carriers(experiment: &Experiment) -> Vec<Carrier> {
    let given = &experiment.settings.axes;
    match given.find(axis::ENDPOINT.row.name) {
        Some(_) => given.get(axis::ENDPOINT),
        None => vec![experiment.pattern.row().carrier],
    }
}

/// The given axes, and then the default axes of every point. The environment comes first and the
/// size last, whatever their place in the plan.
fn axes(defaults: Defaults, carrier: Carrier, given: &AxisList, tx_depth: u32) -> AxisList {
    let is_atomic = are_all(given, axis::OPERATION, Operation::is_atomic);
    let size_bytes = if is_atomic { SIZE_BYTES_ATOMIC } else { defaults.size_bytes };
    let polls =
        carrier.is_verbs() || carrier.is_mpi() || (defaults.polls_shared_memory && carrier == Carrier::Shmem);
    let usual = [
        axis::SERVICE.value(Service::Rc),
        axis::OPERATION.value(defaults.operation),
        axis::DIRECTION.value(Flow::Uni),
        // Sockets sleep.
        axis::POLL.value(if polls { Poll::Busy } else { Poll::Event }),
        axis::INLINE.value(false),
        axis::SIGNAL_INTERVAL.value(defaults.signal_interval.map(|every| every.min(tx_depth))),
        axis::MTU_BYTES.value(None),
        axis::SIGNAL_RATE.value(None),
        axis::SIZE_BYTES.value(size_bytes),
        axis::FAMILY.value(Family::Ipv4),
        axis::PROTOCOL.value(Protocol::PubSub),
    ];
    let is_had = |axis: &Axis| {
        (axis.row.is_for)(carrier) && !defaults.made.iter().any(|made| made.name == axis.row.name)
    };
    let mut axes = given.clone();
    for default in usual.into_iter().chain(defaults.axes).filter(is_had) {
        if given.find(default.row.name).is_none() {
            axes.put(default);
        }
    }
    axes.sort();
    axes
}

/// The fewest warm-up messages, unless `bytes_max` bounds them.
const WARMUP_MIN: u64 = 10;
/// Repetitions multiply the time of a run, so a plan must ask for them.
const REPETITIONS: u32 = 1;
/// Ranks are started as the points need them.
const LAUNCHES: u32 = 1;
/// The least and the most repetitions of netperf for a confidence interval (`-i`).
const REPETITIONS_WITHIN: u32 = 3;
const REPETITIONS_MAX: u32 = 30;
/// Every sample is kept, up to [`crate::point::RAW_SAMPLES_MAX`].
const KEEP_SAMPLES: bool = true;
/// Far longer than a healthy point takes, but short enough to wait for. A duration is added to it.
const TIMEOUT_S: f64 = 60.0;
/// The only size of atomics.
const SIZE_BYTES_ATOMIC: u64 = 8;
