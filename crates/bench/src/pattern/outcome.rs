//! What ranks report of a point, and how reports are merged. Statistics are not computed here:
//! ranks send them with their samples.

use std::collections::BTreeMap;

use measure::record::{
    self, Cost, Cpu, Direction, Fairness, Histogram, Latency, LatencyKind, OneWay, Oversubscribed, Reported,
    Status, Throughput, Timed,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one rank measured: statistics ready for the record.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outcome {
    /// Latency of the messages that this rank timed.
    pub latency: Option<Latency>,
    /// Further kinds of latency of the same messages.
    pub kinds: Vec<Timed>,
    /// Throughput, always of one direction: of received messages; for a rank that only sends, of
    /// acknowledged messages; for messages at a set rate, of posted messages.
    pub throughput: Option<Throughput>,
    /// The distribution, where raw samples are not kept.
    pub histogram: Option<Histogram>,
    /// CPU time of the thread that measured.
    pub cpu: Option<Cpu>,
    /// What its host counted during the measurement.
    pub host: BTreeMap<String, u64>,
    /// Counters of the pattern and the device.
    pub counters: BTreeMap<String, u64>,
    /// Skew with which the ranks of its host began each message, where this rank led them.
    pub skew: Option<Latency>,
    /// What another program reported, where it measured.
    pub reported: Option<Reported>,
    /// The library that carried its messages, if one did.
    pub library: Option<String>,
    /// The transport that the library chose.
    pub transport: Option<String>,
    /// Present where more ranks run on its CPUs than there are CPUs.
    pub oversubscribed: Option<Oversubscribed>,
    /// Why its numbers are unstable, e.g. a step in the series of samples.
    pub unstable: Option<String>,
    /// What the rank reports in addition, which only the pattern reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Value>,
    /// Words of [`columns`](Self::columns), which follow the samples in the message.
    pub column_words: usize,
    /// Raw samples in ns, where they are kept. They follow the JSON in the message.
    #[serde(skip)]
    pub samples: Vec<u64>,
    /// Long lists of `told`. They follow the samples in the message.
    #[serde(skip)]
    pub columns: Vec<u64>,
}

/// What the ranks of a pattern report to the coordinator in addition to an [`Outcome`]. Long lists
/// are sent separately.
pub(crate) trait Told: Serialize + for<'de> Deserialize<'de> {
    /// Takes the long lists out.
    fn take_columns(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Puts the lists back, taking each from the end of `columns`.
    ///
    /// # Errors
    /// When `columns` is too short.
    fn put_columns(&mut self, _columns: &mut Vec<u64>) -> Result<(), crate::Error> {
        Ok(())
    }
}

impl Told for () {}

/// The merged outcomes of all ranks, as far as a pattern determines them.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// The status of a point that is not measured.
    pub(crate) status: Option<Status>,
    /// The main latency.
    pub(crate) latency: Option<Latency>,
    /// Every kind of latency, the main one first, where there are several.
    pub(crate) kinds: Vec<Timed>,
    /// The main throughput.
    pub(crate) throughput: Option<Throughput>,
    /// The sum of both directions.
    pub(crate) throughput_total: Option<Throughput>,
    /// How evenly the throughput is divided among ranks.
    /// How evenly several ranks had it.
    pub(crate) fairness: Option<Fairness>,
    /// What a point of one-way messages records in addition.
    pub(crate) one_way: Option<OneWay>,
    /// What the generator of samples recorded.
    pub(crate) pipeline: Option<record::Pipeline>,
    /// The cost of one call.
    pub(crate) cost: Option<Cost>,
    /// What only this pattern has: `own` of the point in the record.
    pub(crate) own: Option<Value>,
    /// Raw samples by kind, where the plan keeps them.
    pub(crate) samples: Vec<KeptSamples>,
    /// Counters that follow only from all ranks together.
    pub(crate) counters: BTreeMap<String, u64>,
    /// Why the numbers are unstable.
    pub(crate) unstable: Vec<String>,
    /// Whether losses leave the point stable: nothing keeps the senders from being too fast for the
    /// receivers.
    pub(crate) floods_freely: bool,
}

impl Merged {
    /// The usual merge: the latency of the first rank that timed messages, and the lower of the
    /// ranks' throughputs.
    pub(crate) fn of(outcomes: &[Outcome]) -> Self {
        Self {
            // Of rank 0, or of the only rank that timed messages.
            latency: outcomes.iter().find_map(|outcome| outcome.latency.clone()),
            throughput: slower_end(outcomes),
            ..Self::default()
        }
    }

    /// A point without numbers.
    pub(crate) fn without_numbers(status: Status) -> Self {
        Self { status: Some(status), ..Self::default() }
    }
}

/// The throughput of one direction: the lower of what rank 0 sent and rank 1 received. A receiver
/// that was not scheduled for a while takes all queued messages at once, and a short stream then
/// seems to have arrived faster than memory allows.
fn slower_end(outcomes: &[Outcome]) -> Option<Throughput> {
    let ends = [1, 0].into_iter().filter_map(|rank| outcomes.get(rank)?.throughput.clone());
    ends.min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
}

/// The throughput of both directions: the mean of both ranks, and their sum.
pub(crate) fn both_ways(outcomes: &[Outcome]) -> (Option<Throughput>, Option<Throughput>) {
    let end = |rank: usize| outcomes.get(rank).and_then(|outcome| outcome.throughput.as_ref());
    let Some((one, other)) = end(0).zip(end(1)) else { return (None, None) };
    let sum = |share: f64, direction| Throughput {
        bytes_per_s: share * (one.bytes_per_s + other.bytes_per_s),
        messages_per_s: share * (one.messages_per_s + other.messages_per_s),
        direction,
    };
    (Some(sum(0.5, Direction::BiOne)), Some(sum(1.0, Direction::BiTotal)))
}

/// A kind of latency without samples.
pub(crate) fn timed_alone(latency: Latency) -> Timed {
    Timed { latency, samples: None, histogram: None }
}

/// Raw samples of a point, in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptSamples {
    /// What was timed.
    pub of: Source,
    /// In the order in which the messages were sent.
    pub samples_ns: Vec<u64>,
}

/// What samples were timed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// What this rank timed.
    End(u32),
    /// A kind of latency, computed from the stamps of both ranks.
    Kind(LatencyKind),
}
