//! Code that several patterns share: recording timed messages, and making an outcome from them.

use std::collections::BTreeMap;

use measure::clock::Clock;
use measure::record::{Cpu, LatencyKind};
use measure::samples::{HistogramSamples, RawSamples, Recorder, Samples, Scale};
use measure::step;

use super::outcome::Outcome;
use crate::Error;
use crate::point::{Length, PointSpec, RAW_SAMPLES_MAX};

/// Messages that are timed one by one.
pub(crate) trait Timed {
    /// Exchanges the messages. Returns the CPU time that they cost, also where they failed.
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>);
}

/// Runs `messages` and returns their samples: every sample, or a histogram where there are too many
/// or the plan keeps none.
pub(crate) fn timed(
    messages: impl Timed,
    spec: &PointSpec,
    kind: LatencyKind,
    clock: Clock,
) -> Result<(Samples, Option<Cpu>), Error> {
    let scale = Scale::of(kind);
    let raw = match spec.length {
        Length::Iterations(n) if n <= RAW_SAMPLES_MAX && spec.keep_samples => usize::try_from(n).ok(),
        _ => None,
    };
    if let Some(room) = raw {
        let mut samples = RawSamples::new(room)?;
        let (done, cpu) = messages.run(&mut samples);
        done.map(|()| (samples.finish(&clock, scale), cpu))
    } else {
        let mut samples = HistogramSamples::new(&clock, scale);
        let (done, cpu) = messages.run(&mut samples);
        done.map(|()| (samples.finish(), cpu))
    }
}

/// The outcome of a rank that timed messages, with `posted` messages for each sample.
pub(crate) fn latency_outcome(
    samples: &Samples,
    kind: LatencyKind,
    spec: &PointSpec,
    posted: u64,
) -> Outcome {
    let unstable = step::step(&samples.series()).map(|step| step.to_string());
    Outcome {
        latency: samples.latency(kind, &spec.share_above_ns),
        histogram: samples.raw().is_none().then(|| samples.histogram()),
        counters: packets(samples.count() * posted, spec),
        unstable,
        samples: samples.raw().unwrap_or_default().to_vec(),
        ..Outcome::default()
    }
}

/// The number of packets that the messages were segmented into: one per path MTU, at least one per
/// message (Gamess and Ortiz-Zuazaga 2016, section III.A). Sockets do not report their segments,
/// and shared memory has none.
pub(crate) fn packets(messages: u64, spec: &PointSpec) -> BTreeMap<String, u64> {
    if !spec.message.endpoint.is_verbs() {
        return BTreeMap::new();
    }
    let each = spec.message.size_bytes.div_ceil(u64::from(spec.message.mtu_bytes.unwrap_or(u32::MAX))).max(1);
    BTreeMap::from([("packets_sent".to_owned(), messages * each)])
}
